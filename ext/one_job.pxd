"""One job of a check: whether its row is sound, and whether its side rows are there and lead to it."""

from libc.stdint cimport int64_t
from libc.string cimport memcmp
from libcpp.string cimport string

from audit cimport (
    EXPIRY_MISSING,
    FOUND_COUNT,
    ID_MISSING,
    ID_WRONG,
    JOB_RECORD,
    JOB_TIME,
    JOB_TWICE,
    JOB_VERSION,
    KEY_MISSING,
    KEY_SHARED,
    KEY_WRONG,
    MAX_PENDING,
    PAYLOAD_MISSING,
    PAYLOAD_WRONG,
    RESULT_MISSING,
    RESULT_WRONG,
    Audit,
    Found,
    Mend,
    find_at,
    find_in,
)
from batch cimport EXPIRY_BYTES, encode_expiry
from keys cimport JOB_ID_AT, JOB_ID_BYTES, KEY_BYTES, LEASED, PENDING, SCOPE_BYTES
from lookup cimport ID_ROW_BYTES, encode_id_row
from memory cimport JobId, id_of_text
from mend cimport mend_jobs
from meta cimport is_made_at
from outcome cimport CODE_NOT_FOUND, CODE_UNSUPPORTED_VERSION, Fault, append_text, set_text
from record cimport Bytes, View, has_result_aside, is_nil, same
from rocksdb cimport PinnableSlice, Slice
from store cimport EXPIRIES, IDEMPOTENCY, IDS, PAYLOADS, RESULTS, Family, Store, bytes_of, slice_of, view_row


cdef inline Fault check_job(Store* store, Audit* audit, const char* key, Bytes value) noexcept nogil:
    """One job and the side rows that it ought to have."""
    cdef View job
    cdef Mend* mend
    cdef string name
    cdef PinnableSlice seen
    cdef Found id_finding = FOUND_COUNT
    cdef Found name_finding = FOUND_COUNT
    cdef bint is_whole = is_sound(audit, key, value, &job)
    cdef bint has_id = False
    cdef bint lacks_expiry = False
    cdef bint stands = False
    cdef int64_t size_bytes
    cdef Fault fault = _check_id(audit, key, is_whole, &has_id, &id_finding)
    audit.jobs += 1
    if not is_whole or not fault.ok() or id_finding == JOB_TWICE:
        return fault  # the side rows of a job that is there twice are those of the row that its id leads to
    if not is_made_at(key + JOB_ID_AT, job.created_at):
        audit.add(JOB_TIME, Slice(key, KEY_BYTES), key, key + JOB_ID_AT, b"the id is of another time than created_at")
    if not is_nil(job.idempotency_key):
        set_text(&name, key, SCOPE_BYTES)
        append_text(&name, job.idempotency_key.data, job.idempotency_key.size)
        fault = _check_name(audit, key, name, has_id, &seen, &name_finding)
    if fault.ok() and is_nil(job.payload):
        # 0: an older writer did not say
        size_bytes = <int64_t>job.payload_bytes if job.payload_bytes > 0 else -1
        fault = _check_aside(audit, PAYLOADS, key, size_bytes, PAYLOAD_MISSING, PAYLOAD_WRONG, &stands)
        audit.payloads += stands and has_id
    if fault.ok() and has_result_aside(job):
        fault = _check_aside(audit, RESULTS, key, job.result_bytes, RESULT_MISSING, RESULT_WRONG, &stands)
        audit.results += stands and has_id
    if fault.ok() and job.expires_at >= 0:
        fault = _check_expiry(audit, key, &job, has_id, &lacks_expiry)
    if not fault.ok() or not audit.is_repairing:
        return fault
    if id_finding == FOUND_COUNT and name_finding == FOUND_COUNT and not lacks_expiry:
        return fault
    mend = audit.mend(Slice(key, KEY_BYTES))
    if lacks_expiry:
        mend.expires_at = job.expires_at
    mend.id = id_finding
    mend.named = name_finding
    if name_finding != FOUND_COUNT:
        mend.name = name
        set_text(&mend.seen, seen.data(), seen.size())
    return mend_jobs(store, audit) if audit.mends.size() >= MAX_PENDING else fault


cdef inline bint is_sound(Audit* audit, const char* key, Bytes value, View* job) noexcept nogil:
    """Whether a row decodes and stands under its own key."""
    cdef Fault fault = view_row(key, value, job)
    cdef Found kind = JOB_VERSION if fault.code == CODE_UNSUPPORTED_VERSION else JOB_RECORD
    if not fault.ok():
        audit.add(kind, Slice(key, KEY_BYTES), key, key + JOB_ID_AT, fault.why)
    return fault.ok()


cdef inline Fault _check_id(
    Audit* audit, const char* key, bint is_whole, bint* has_id, Found* finding
) noexcept nogil:
    """Whether a job's id leads to it. One whose row is not sound is given no new id row: its key may be damaged."""
    cdef PinnableSlice stored
    cdef PinnableSlice other
    cdef char[ID_ROW_BYTES] expected
    cdef char[KEY_BYTES] other_key
    cdef const char* job_id = key + JOB_ID_AT
    cdef Found kind = ID_WRONG
    cdef Fault fault = audit.survey.get(IDS, Slice(job_id, JOB_ID_BYTES), &stored)
    encode_id_row(expected, key, key)
    if fault.ok() and stored.size() == ID_ROW_BYTES and memcmp(stored.data(), expected, ID_ROW_BYTES) == 0:
        audit.ids += 1
        has_id[0] = True
        return fault
    if fault.ok():
        fault = find_at(audit, stored, job_id, other_key, &other)
        if fault.ok():
            audit.add(JOB_TWICE, Slice(key, KEY_BYTES), key, job_id, b"the id leads to another row, which is there")
            finding[0] = JOB_TWICE
            return fault
    elif fault.code == CODE_NOT_FOUND:
        kind = ID_MISSING
    if fault.code != CODE_NOT_FOUND:
        return fault
    audit.lost_ids.add(JobId(job_id))
    if is_whole or kind == ID_WRONG:
        audit.add(kind, Slice(job_id, JOB_ID_BYTES), key, job_id, b"")
    if is_whole:
        finding[0] = kind
    return Fault()


cdef inline Fault _check_name(
    Audit* audit, const char* key, const string& name, bint has_id, PinnableSlice* stored, Found* finding
) noexcept nogil:
    """Whether a job's idempotency key leads to it, or else to another job that has the same one."""
    cdef PinnableSlice other
    cdef char[KEY_BYTES] other_key
    cdef View owner
    cdef Bytes asked
    cdef const char* job_id = key + JOB_ID_AT
    cdef Found kind = KEY_WRONG
    cdef Fault fault = audit.survey.get(IDEMPOTENCY, slice_of(name), stored)
    if fault.ok() and stored.size() == JOB_ID_BYTES:
        if memcmp(stored.data(), job_id, JOB_ID_BYTES) == 0:
            audit.names += has_id
            return fault
        fault = find_in(audit, stored.data(), other_key, &other)
        if fault.ok():
            asked.data = name.data() + SCOPE_BYTES
            asked.size = name.size() - SCOPE_BYTES
            # One that does not decode may have the key as well as not.
            if not view_row(other_key, bytes_of(other), &owner).ok() or (
                same(owner.idempotency_key, asked) and memcmp(other_key, key, SCOPE_BYTES) == 0
            ):
                audit.add(KEY_SHARED, slice_of(name), key, job_id, b"the key leads to another job")
                return fault
        elif fault.code != CODE_NOT_FOUND or audit.lost_ids.has(JobId(stored.data())):
            return Fault() if fault.code == CODE_NOT_FOUND else fault
    elif fault.code == CODE_NOT_FOUND:
        kind = KEY_MISSING
    elif not fault.ok():
        return fault
    audit.lost_names.add(id_of_text(name))
    audit.add(kind, slice_of(name), key, job_id, b"")
    finding[0] = kind
    return Fault()


cdef inline Fault _check_aside(
    Audit* audit, Family family, const char* key, int64_t size_bytes, Found missing, Found wrong, bint* stands
) noexcept nogil:
    """Whether what a job's record has not, its payload or its result, stands in a row, as long as that says.

    -1: nothing says how long it is.
    """
    cdef PinnableSlice stored
    cdef Slice job_id = Slice(key + JOB_ID_AT, JOB_ID_BYTES)
    cdef Fault fault = audit.survey.get(family, job_id, &stored)
    stands[0] = fault.ok()
    if fault.code == CODE_NOT_FOUND:
        audit.add(missing, job_id, key, key + JOB_ID_AT, b"")
        return Fault()
    if fault.ok() and 0 <= size_bytes != <int64_t>stored.size():
        audit.add(wrong, job_id, key, key + JOB_ID_AT, b"it has another length than the record says")
    return fault


cdef inline Fault _check_expiry(
    Audit* audit, const char* key, const View* job, bint has_id, bint* is_lacking
) noexcept nogil:
    """Whether the row is there by which a job is buried at its time. One that has ended may have lost it since."""
    cdef PinnableSlice stored
    cdef char[EXPIRY_BYTES] expiry
    cdef Fault fault
    encode_expiry(expiry, job.expires_at, key + JOB_ID_AT)
    fault = audit.survey.get(EXPIRIES, Slice(expiry, EXPIRY_BYTES), &stored)
    if fault.ok():
        audit.expiries += has_id
    elif fault.code == CODE_NOT_FOUND:
        is_lacking[0] = job.state == PENDING or job.state == LEASED
        if is_lacking[0]:
            audit.add(EXPIRY_MISSING, Slice(expiry, EXPIRY_BYTES), key, key + JOB_ID_AT, b"")
        return Fault()
    return fault
