"""The second half of a check: side rows that no job accounts for, and what the store keeps of itself.

Where as many rows stand in a family as jobs account for, none of them can be an orphan, and no row is looked at.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcmp
from libcpp.string cimport string

from audit cimport (
    CLOCK_WRONG,
    EXPIRY_ORPHAN,
    FLOOR_WRONG,
    ID_ORPHAN,
    KEY_ORPHAN,
    MAX_PENDING,
    PAYLOAD_ORPHAN,
    RESULT_ORPHAN,
    Audit,
    Found,
    find_at,
    find_in,
)
from batch cimport EXPIRY_BYTES, TIME_BYTES
from keys cimport COMPLETED, JOB_ID_BYTES, KEY_BYTES, SCOPE_BYTES, get_be64
from memory cimport JobId, id_of_text
from mend cimport drop_orphans
from meta cimport is_clock, is_floor, put_clock, put_floor
from outcome cimport CODE_CLOSED, CODE_NOT_FOUND, Fault, fault_of, set_text
from record cimport Bytes, View, has_result_aside, is_nil, same
from rocksdb cimport PinnableSlice, Slice, WriteBatch
from store cimport EXPIRIES, IDEMPOTENCY, IDS, META, PAYLOADS, RESULTS, Cursor, Family, Store, bytes_of, view_row


cdef inline Fault check_sides(Store* store, Audit* audit) noexcept nogil:
    """Find the side rows without a job; the id rows last, because the others are judged by them."""
    cdef Fault fault
    if audit.lost_ids.is_full() or audit.lost_names.is_full():
        audit.is_partial = True  # too much is wrong to tell an orphan from the row of a job that is not found
        return fault
    fault = _check_family(store, audit, IDEMPOTENCY, audit.names)
    if fault.ok():
        fault = _check_family(store, audit, PAYLOADS, audit.payloads)
    if fault.ok():
        fault = _check_family(store, audit, EXPIRIES, audit.expiries)
    if fault.ok():
        fault = _check_family(store, audit, RESULTS, audit.results)
    if fault.ok():
        fault = _check_family(store, audit, IDS, audit.ids)
    return fault


cdef inline Fault _check_family(Store* store, Audit* audit, Family family, uint64_t expected) noexcept nogil:
    cdef Cursor rows
    cdef bint differs = audit.has_mended
    cdef Fault fault
    if not differs:
        fault = _count(store, audit, family, expected, &differs)
    if not fault.ok() or not differs:
        return fault
    rows.survey(family, audit.survey.moment())
    rows.open(store, NULL, 0)
    while fault.ok() and rows.is_on_row():
        if not store.is_open():
            return fault_of(CODE_CLOSED)  # close() waits for this visit
        if family == IDEMPOTENCY:
            fault = _check_name(audit, rows.key(), rows.value())
        elif family == PAYLOADS or family == RESULTS:
            fault = _check_aside(audit, family, rows.key())
        elif family == EXPIRIES:
            fault = _check_expiry(audit, rows.key())
        else:
            fault = _check_id(audit, rows.key(), rows.value())
        if fault.ok() and audit.drops.size() >= MAX_PENDING:
            fault = drop_orphans(store, audit)
        rows.step()
    return rows.fault() if fault.ok() else fault


cdef inline Fault _count(
    Store* store, Audit* audit, Family family, uint64_t expected, bint* differs
) noexcept nogil:
    cdef Cursor rows
    cdef uint64_t found = 0
    rows.survey(family, audit.survey.moment())
    rows.open(store, NULL, 0)
    while rows.is_on_row():
        if not store.is_open():
            return fault_of(CODE_CLOSED)
        found += 1
        rows.step()
    differs[0] = found != expected
    return rows.fault()


cdef inline void _note(
    Audit* audit, Found kind, Family family, Slice row, const char* scope, const char* job_id, bint is_certain,
    const char* detail
) noexcept nogil:
    audit.add(kind, row, scope, job_id, detail)
    if audit.is_repairing and is_certain:
        audit.drop(kind, family, row)


cdef inline Fault _check_name(Audit* audit, Slice row, Slice value) noexcept nogil:
    """Whether an idempotency row leads to a job of its scope that has its key."""
    cdef PinnableSlice stored
    cdef char[KEY_BYTES] key
    cdef View job
    cdef Bytes asked
    cdef string name
    cdef const char* scope = row.data() if row.size() > SCOPE_BYTES else <const char*>NULL
    cdef const char* job_id = value.data() if value.size() == JOB_ID_BYTES else <const char*>NULL
    cdef const char* detail = b"it leads to no job"
    cdef Fault fault
    set_text(&name, row.data(), row.size())
    if audit.lost_names.has(id_of_text(name)):
        return fault  # the job that has this key has told of it
    if scope == NULL or job_id == NULL:
        detail = b"its key or its value has a wrong length"
    else:
        fault = find_in(audit, job_id, key, &stored)
        if fault.ok():
            asked.data = row.data() + SCOPE_BYTES
            asked.size = row.size() - SCOPE_BYTES
            if not view_row(key, bytes_of(stored), &job).ok():
                return fault
            if same(job.idempotency_key, asked) and memcmp(key, scope, SCOPE_BYTES) == 0:
                return fault
            detail = b"the job that it leads to has another key"
        elif fault.code != CODE_NOT_FOUND or audit.lost_ids.has(JobId(job_id)):
            return Fault() if fault.code == CODE_NOT_FOUND else fault
    _note(audit, KEY_ORPHAN, IDEMPOTENCY, row, scope, job_id, audit.knows_names(), detail)
    return Fault()


cdef inline Fault _check_aside(Audit* audit, Family family, Slice row) noexcept nogil:
    """Whether a row of a payload or a result belongs to a job whose record says that it stands there.

    The result of a job that is not completed is told of and left: the job may be completed by now, with that row.
    """
    cdef PinnableSlice stored
    cdef char[KEY_BYTES] key
    cdef View job
    cdef const char* job_id = row.data() if row.size() == JOB_ID_BYTES else <const char*>NULL
    cdef const char* scope = NULL
    cdef const char* detail = b"its key has a wrong length"
    cdef bint is_settled = True
    cdef Fault fault
    if job_id != NULL:
        detail = b"there is no such job"
        fault = find_in(audit, job_id, key, &stored)
        if fault.ok():
            if not view_row(key, bytes_of(stored), &job).ok():
                return fault
            if is_nil(job.payload) if family == PAYLOADS else has_result_aside(job):
                return fault
            scope = key
            detail = b"the job's record does not say so"
            is_settled = family == PAYLOADS or job.state == COMPLETED
        elif fault.code != CODE_NOT_FOUND or audit.lost_ids.has(JobId(job_id)):
            return Fault() if fault.code == CODE_NOT_FOUND else fault
    if family == PAYLOADS:
        _note(audit, PAYLOAD_ORPHAN, family, row, scope, job_id, audit.knows_jobs(), detail)
    else:
        _note(audit, RESULT_ORPHAN, family, row, scope, job_id, audit.knows_jobs() and is_settled, detail)
    return Fault()


cdef inline Fault _check_expiry(Audit* audit, Slice row) noexcept nogil:
    """Whether a row of the expiries family belongs to a job that expires then; whether it has ended is all one."""
    cdef PinnableSlice stored
    cdef char[KEY_BYTES] key
    cdef View job
    cdef const char* job_id = row.data() + TIME_BYTES if row.size() == EXPIRY_BYTES else <const char*>NULL
    cdef const char* scope = NULL
    cdef const char* detail = b"its key has a wrong length"
    cdef Fault fault
    if job_id != NULL:
        detail = b"there is no such job"
        fault = find_in(audit, job_id, key, &stored)
        if fault.ok():
            if not view_row(key, bytes_of(stored), &job).ok() or job.expires_at == <int64_t>get_be64(row.data()):
                return fault
            scope = key
            detail = b"the job expires at another time or never"
        elif fault.code != CODE_NOT_FOUND or audit.lost_ids.has(JobId(job_id)):
            return Fault() if fault.code == CODE_NOT_FOUND else fault
    _note(audit, EXPIRY_ORPHAN, EXPIRIES, row, scope, job_id, audit.knows_jobs(), detail)
    return Fault()


cdef inline Fault _check_id(Audit* audit, Slice row, Slice value) noexcept nogil:
    """Whether an id row leads to a job."""
    cdef PinnableSlice stored
    cdef char[KEY_BYTES] key
    cdef const char* job_id = row.data() if row.size() == JOB_ID_BYTES else <const char*>NULL
    cdef const char* detail = b"its key has a wrong length"
    cdef Fault fault
    if job_id != NULL:
        detail = b"there is no such job"
        fault = find_at(audit, value, job_id, key, &stored)
        if fault.code != CODE_NOT_FOUND or audit.lost_ids.has(JobId(job_id)):
            return Fault() if fault.code == CODE_NOT_FOUND else fault
    _note(audit, ID_ORPHAN, IDS, row, NULL, job_id, audit.knows_jobs(), detail)
    return Fault()


cdef inline Fault check_notes(Store* store, Audit* audit) noexcept nogil:
    """What the store keeps of itself, its format excepted, without which it would not be open."""
    cdef PinnableSlice stored
    cdef WriteBatch batch
    cdef Slice name = Slice(b"clock", 5)
    cdef Fault fault = audit.survey.get(META, name, &stored)
    if fault.ok() and not is_clock(stored):
        audit.add(CLOCK_WRONG, name, NULL, NULL, b"")
        if audit.is_repairing:
            put_clock(store, &batch)
            audit.findings.mend(CLOCK_WRONG)
    if fault.ok() or fault.code == CODE_NOT_FOUND:
        name = Slice(b"floor", 5)
        fault = audit.survey.get(META, name, &stored)
        if fault.ok() and not is_floor(stored):
            audit.add(FLOOR_WRONG, name, NULL, NULL, b"")
            if audit.is_repairing:
                put_floor(store, &batch)
                audit.findings.mend(FLOOR_WRONG)
    if (fault.ok() or fault.code == CODE_NOT_FOUND) and batch.Count() > 0:
        return store.commit(&batch)
    return Fault() if fault.code == CODE_NOT_FOUND else fault
