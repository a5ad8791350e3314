"""Enqueue: from arguments to rows, for one job and for many, in one write."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libcpp.string cimport string

from announce cimport tell_new
from batch cimport MAX_INLINE_BYTES, put_new_job
from keys cimport JOB_ID_BYTES, KEY_BYTES, PENDING, SCOPE_BYTES, encode_key, make_job_id
from lookup cimport find_claimed, find_row, get
from memory cimport JobId, Lock, id_of_text
from outcome cimport (
    CODE_CORRUPT,
    CODE_NOT_FOUND,
    CODE_UNSUPPORTED_VERSION,
    Fault,
    List,
    Outcome,
    append_text,
    fault_corrupt,
    set_text,
)
from record cimport Bytes, NewEvent, View, is_nil, nil, text
from rocksdb cimport PinnableSlice, WriteBatch
from row cimport Row, encode_row
from store cimport IDEMPOTENCY, Store, Visit, fresh_batch, slice_of, view_row


cdef struct NewJob:
    Bytes kind
    Bytes payload
    Bytes idempotency_key  # nil for none, and below
    Bytes headers
    uint8_t priority
    int64_t not_before  # -1 for none, here and below
    int64_t max_attempts
    int64_t expires_at


cdef inline Fault enqueue(
    Store* store, const char* scope, const NewJob* jobs, size_t n, bint atomic, int64_t now_us, List[Outcome]* out
) noexcept nogil:
    """Store n jobs in one write and add one outcome each, in order.

    A job whose idempotency key is taken has the job that took it as its outcome, or the fault of a row that does not
    decode; with `atomic` that fault is the call's, and nothing is stored. The keys are claimed from the look-up until
    the write, so that callers with the same key take turns.
    """
    cdef Visit visit
    cdef WriteBatch* batch = fresh_batch()
    cdef List[string] names
    cdef List[JobId] claimed
    cdef Lock lock
    cdef size_t i
    cdef size_t distinct = 0
    cdef uint64_t moves = store.moves.load()
    cdef Fault fault = visit.enter(store)
    if not fault.ok():
        return fault
    store.see(now_us)
    out.reserve(n)
    name_keys(scope, jobs, n, &names)
    if names.size() > 0:
        for i in range(names.size()):
            claimed.add()[0] = id_of_text(names.at(i)[0])
        lock = Lock(store.mutex)
        distinct = store.claims.wait_and_take(lock, claimed.items())
        lock.unlock()
    fault = gather_new(store, scope, jobs, n, atomic, now_us, &names, distinct < names.size(), False, batch, out)
    if fault.ok() and batch.Count() > 0:
        fault = store.commit(batch)
    lock = Lock(store.mutex)
    for i in range(claimed.size()):
        store.claims.give_back(claimed.at(i)[0])
    if fault.ok():
        for i in range(n):
            if out.at(i).is_written:
                tell_new(store, out.at(i), moves)
    return fault


cdef inline void name_keys(const char* scope, const NewJob* jobs, size_t n, List[string]* names) noexcept nogil:
    """Add the keys of the rows that stand for the jobs' idempotency keys, in order."""
    cdef size_t i
    for i in range(n):
        if not is_nil(jobs[i].idempotency_key):
            set_text(names.add(), scope, SCOPE_BYTES)
            append_text(names.at(names.size() - 1), jobs[i].idempotency_key.data, jobs[i].idempotency_key.size)


cdef inline Fault gather_new(
    Store* store,
    const char* scope,
    const NewJob* jobs,
    size_t n,
    bint atomic,
    int64_t now_us,
    List[string]* names,
    bint has_repeats,
    bint has_claims,
    WriteBatch* batch,
    List[Outcome]* out,
) noexcept nogil:
    """Fill the batch with the jobs that are new, and the outcomes with all of them. The names are claimed.

    `has_claims`: so are the jobs that have the names.
    """
    cdef size_t i
    cdef size_t keyed = 0
    cdef string* name
    cdef Outcome* outcome
    cdef View found
    cdef Fault fault
    for i in range(n):
        outcome = out.add()
        name = NULL
        if not is_nil(jobs[i].idempotency_key):
            name = names.at(keyed)
            keyed += 1
            if has_repeats and _took_it(jobs, i, out, names, name[0], outcome):
                continue
            fault = _find_keyed(store, scope, name, has_claims, &outcome.row)
            if fault.ok():
                # Here, while nothing is written: the caller cannot be given a row that does not decode.
                fault = view_row(outcome.row.key(), outcome.row.value(), &found)
                if fault.ok():
                    continue
            if not atomic and (fault.code == CODE_CORRUPT or fault.code == CODE_UNSUPPORTED_VERSION):
                outcome.fault = fault
                continue
            if fault.code != CODE_NOT_FOUND:
                return fault
        _add_new(store, scope, &jobs[i], now_us, name, batch, outcome)
    return Fault()


cdef inline bint _took_it(
    const NewJob* jobs, size_t i, List[Outcome]* out, List[string]* names, const string& name, Outcome* outcome
) noexcept nogil:
    """Whether a job before job i in this call has its idempotency key; copies what became of that one."""
    cdef size_t j
    cdef size_t keyed = 0
    for j in range(i):
        if not is_nil(jobs[j].idempotency_key):
            if names.at(keyed)[0] == name:
                outcome.fault = out.at(j).fault
                outcome.row = out.at(j).row
                return True
            keyed += 1
    return False


cdef inline Fault _find_keyed(
    Store* store, const char* scope, const string* name, bint has_claim, Row* out
) noexcept nogil:
    """The row of the job that has an idempotency key; CODE_NOT_FOUND when none has."""
    cdef PinnableSlice job_id
    cdef Fault fault = get(store, IDEMPOTENCY, slice_of(name[0]), &job_id)
    if not fault.ok():
        return fault
    if job_id.size() != JOB_ID_BYTES:
        return fault_corrupt(b"the idempotency row has a wrong length")
    if has_claim:
        fault = find_claimed(store, scope, job_id.data(), NULL, PENDING, out)
    else:
        fault = find_row(store, scope, job_id.data(), out)
    if fault.code == CODE_NOT_FOUND:
        return fault_corrupt(b"the idempotency row names no job")
    return fault


cdef inline void _add_new(
    Store* store,
    const char* scope,
    const NewJob* job,
    int64_t now_us,
    const string* name,
    WriteBatch* batch,
    Outcome* outcome,
) noexcept nogil:
    cdef View record
    cdef NewEvent enqueued
    cdef char[KEY_BYTES] key
    cdef char[JOB_ID_BYTES] job_id
    cdef Bytes aside = nil()
    record.created_at = store.next_created_at(now_us)
    make_job_id(job_id, record.created_at, store.random())
    encode_key(key, scope, PENDING, job.priority, record.created_at, job_id)
    record.job_id.data = job_id
    record.job_id.size = JOB_ID_BYTES
    record.kind = job.kind
    record.payload_bytes = job.payload.size
    if job.payload.size > MAX_INLINE_BYTES:
        aside = job.payload
    else:
        record.payload = job.payload
    record.priority = job.priority
    record.not_before = job.not_before
    record.idempotency_key = job.idempotency_key
    record.max_attempts = job.max_attempts
    record.headers = job.headers
    record.expires_at = job.expires_at
    enqueued.at = now_us
    enqueued.transition = text(b"enqueued")
    outcome.row = encode_row(key, record, &enqueued)
    outcome.due_us = job.not_before
    outcome.is_written = True
    put_new_job(store, batch, outcome.row, aside, name, job.expires_at)
