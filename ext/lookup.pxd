"""From a job's id to its row: one get in the ids family, then one in the jobs family per state that it may be in."""

from libc.stdint cimport uint8_t
from libc.string cimport memcmp, memcpy

from keys cimport (
    COMPLETED,
    DEAD,
    JOB_ID_BYTES,
    KEY_BYTES,
    LEASED,
    PENDING,
    SCOPE_BYTES,
    State,
    encode_key,
    get_be64,
    patch_state,
)
from memory cimport JobId, Lock
from outcome cimport CODE_NOT_FOUND, Fault, List, fault_corrupt, fault_of, fault_read
from record cimport View
from rocksdb cimport PinnableSlice, ReadOptions, Slice, Status
from row cimport Row, row_of
from store cimport IDS, JOBS, PAYLOADS, Family, Store, Visit, bytes_of, view_row

cdef enum:
    ID_ROW_BYTES = SCOPE_BYTES + 1 + 8


cdef inline Fault get(Store* store, Family family, Slice key, PinnableSlice* out) noexcept nogil:
    """Read one value; CODE_NOT_FOUND when there is none."""
    cdef ReadOptions options
    cdef Status status = store.database.db().Get(options, store.database.family(family), key, out)
    if status.IsNotFound():
        return fault_of(CODE_NOT_FOUND)
    return fault_read(status)


cdef inline Fault get_job(Store* store, const char* key, Row* out) noexcept nogil:
    """Read the row of a job under a key that is known; CODE_NOT_FOUND when the job has moved on."""
    cdef PinnableSlice value
    cdef Fault fault = get(store, JOBS, Slice(key, KEY_BYTES), &value)
    if fault.ok():
        out[0] = row_of(key, bytes_of(value))
    return fault


cdef inline void encode_id_row(char* out, const char* scope, const char* key) noexcept nogil:
    """Write what the ids family keeps of a job: its scope, priority and created_at, as in its key."""
    memcpy(out, scope, SCOPE_BYTES)
    memcpy(out + SCOPE_BYTES, key + SCOPE_BYTES + 1, 1 + 8)


cdef inline Fault find_key(Store* store, const char* scope, const char* job_id, char* key) noexcept nogil:
    """Write the key of a job, all but its state. A scope of NULL takes the job of any scope.

    A job of another scope is not found, and nothing of it is decoded.
    """
    cdef PinnableSlice stored
    cdef Fault fault = get(store, IDS, Slice(job_id, JOB_ID_BYTES), &stored)
    cdef const char* row
    if not fault.ok():
        return fault
    if stored.size() != ID_ROW_BYTES:
        return fault_corrupt(b"the id row has a wrong length")
    row = stored.data()
    if scope != NULL and memcmp(scope, row, SCOPE_BYTES) != 0:
        return fault_of(CODE_NOT_FOUND)
    encode_key(key, row, PENDING, <uint8_t>row[SCOPE_BYTES], get_be64(row + SCOPE_BYTES + 1), job_id)
    return fault


cdef inline Fault get_row(Store* store, char* key, State likely, Row* out) noexcept nogil:
    """Read the row of a job whose state is not known, trying the likely state first.

    CODE_NOT_FOUND when it is in none, which is certain only while the job's claim is held: else it may have moved from
    a state that was still to be tried to one that was.
    """
    cdef State[5] states
    cdef PinnableSlice value
    cdef Fault fault
    cdef int i
    states[0], states[1], states[2], states[3], states[4] = likely, LEASED, PENDING, COMPLETED, DEAD
    for i in range(5):
        if i > 0 and states[i] == likely:
            continue
        patch_state(key, <uint8_t>states[i])
        fault = get(store, JOBS, Slice(key, KEY_BYTES), &value)
        if fault.code != CODE_NOT_FOUND:
            if fault.ok():
                out[0] = row_of(key, bytes_of(value))
            return fault
    return fault


cdef inline Fault find_claimed(
    Store* store, const char* scope, const char* job_id, const char* known_key, State likely, Row* out
) noexcept nogil:
    """The row of a job whose claim is held, so that it stays where it is. `known_key`: its key in any state."""
    cdef char[KEY_BYTES] key
    cdef Fault fault
    if known_key != NULL:
        memcpy(key, known_key, KEY_BYTES)
        fault = get_row(store, key, likely, out)
        if fault.code != CODE_NOT_FOUND:
            return fault
    fault = find_key(store, scope, job_id, key)
    if not fault.ok():
        return fault
    fault = get_row(store, key, likely, out)
    if fault.code == CODE_NOT_FOUND:
        return fault_corrupt(b"the job has an id row and no row of its own")
    return fault


cdef inline Fault find_row(Store* store, const char* scope, const char* job_id, Row* out) noexcept nogil:
    """The row of a job that others may be moving: looks again under the job's claim before it says that none is."""
    cdef char[KEY_BYTES] key
    cdef List[JobId] ids
    cdef Lock lock
    cdef Fault fault = find_key(store, scope, job_id, key)
    if not fault.ok():
        return fault
    fault = get_row(store, key, PENDING, out)
    if fault.code != CODE_NOT_FOUND:
        return fault
    ids.add()[0] = JobId(job_id)
    lock = Lock(store.mutex)
    store.claims.wait_and_take(lock, ids.items())
    lock.unlock()
    fault = find_claimed(store, scope, job_id, NULL, PENDING, out)
    lock.lock()
    store.claims.give_back(ids.at(0)[0])
    return fault


cdef inline Fault read_job(Store* store, const char* scope, const char* job_id, Row* out) noexcept nogil:
    """The job of that id in that scope, or in any for NULL; a fault when its row does not decode."""
    cdef Visit visit
    cdef View job
    cdef Fault fault = visit.enter(store)
    if fault.ok():
        fault = find_row(store, scope, job_id, out)
    if fault.ok():
        fault = view_row(out.key(), out.value(), &job)
    return fault


cdef inline Fault read_aside(
    Store* store, Visit* visit, Family family, const char* job_id, PinnableSlice* out
) noexcept nogil:
    """A payload or a result that stands in a row of its own. `out` may pin a block, so it goes before the visit."""
    cdef Fault fault = visit.enter(store)
    if fault.ok():
        fault = get(store, family, Slice(job_id, JOB_ID_BYTES), out)
    if fault.code == CODE_NOT_FOUND and family == PAYLOADS:
        return fault_corrupt(b"its payload row is missing")
    if fault.code == CODE_NOT_FOUND:
        return fault_corrupt(b"its result row is missing")
    return fault
