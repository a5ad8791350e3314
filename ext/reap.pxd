"""The reaper's pass: finds leases that have run out, in all scopes, and takes them back. Touches only leased rows."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libcpp.string cimport string

from announce cimport announce_row
from keys cimport DEAD, JOB_ID_AT, JOB_ID_BYTES, LEASED, STATE_PREFIX_BYTES, key_state, state_prefix
from lookup cimport get
from record cimport View
from rocksdb cimport PinnableSlice, WriteBatch
from scan cimport Cursor, has_job_key, list_scopes
from store cimport (
    CODE_NOT_FOUND,
    JOBS,
    Fault,
    List,
    Lock,
    Name,
    Row,
    Store,
    Visit,
    set_text,
    slice_of,
)
from transit cimport transit
from transitions cimport REAP, Command, later_us

cdef enum:
    # Jobs per write. Claims are held for one write at a time, so that no worker waits for a whole pass.
    REAP_BATCH_JOBS = 256
    # Dead jobs told of one by one; further ones are only counted, so that a pass has a bound in memory.
    MAX_DEAD_TOLD = 1000

cdef struct Reaped:
    uint64_t reclaimed
    uint64_t dead
    uint64_t corrupt


cdef inline Fault reap(Store* store, int64_t now_us, Reaped* counts, List[Row]* dead_rows) noexcept nogil:
    """Take back every lease whose deadline, grace included, has passed.

    Adds the rows of up to MAX_DEAD_TOLD jobs that died to `dead_rows`.
    """
    cdef Visit visit
    cdef List[string] scopes
    cdef size_t i
    cdef Fault fault = visit.enter(store)
    if not fault.ok():
        return fault
    store.see(now_us)
    fault = list_scopes(store, &scopes)
    for i in range(scopes.size()):
        if fault.ok():
            fault = _reap_scope(store, scopes.at(i).data(), now_us, counts, dead_rows)
    return fault


cdef inline Fault _reap_scope(
    Store* store, const char* scope, int64_t now_us, Reaped* counts, List[Row]* dead_rows
) noexcept nogil:
    cdef Cursor cursor
    cdef char[STATE_PREFIX_BYTES] prefix
    cdef List[string] expired
    cdef View job
    cdef Fault fault
    state_prefix(prefix, scope, LEASED)
    cursor.open(store, prefix, STATE_PREFIX_BYTES)
    while fault.ok() and cursor.is_on_row():
        if not has_job_key(store, cursor.key()) or not cursor.view(&job).ok():
            counts.corrupt += 1
        elif later_us(job.lease_deadline, store.settings.lease_grace_us) <= now_us:
            set_text(expired.add(), cursor.key().data(), cursor.key().size())
            if expired.size() == REAP_BATCH_JOBS:
                fault = _reap_batch(store, &expired, now_us, counts, dead_rows)
                expired.clear()
        cursor.step()
    if fault.ok():
        fault = cursor.fault()
    if fault.ok() and expired.size() > 0:
        fault = _reap_batch(store, &expired, now_us, counts, dead_rows)
    return fault


cdef inline Fault _reap_batch(
    Store* store, List[string]* expired, int64_t now_us, Reaped* counts, List[Row]* dead_rows
) noexcept nogil:
    """Reap jobs that the walk saw expired, as they are now: under their claims, each is read again."""
    cdef List[string] names
    cdef List[Row] moved
    cdef WriteBatch batch
    cdef Lock lock
    cdef size_t i
    cdef Fault fault
    for i in range(expired.size()):
        set_text(names.add(), expired.at(i).data() + JOB_ID_AT, JOB_ID_BYTES)
    lock = Lock(store.mutex)
    store.claims.wait_and_take(lock, names.items())
    lock.unlock()
    for i in range(expired.size()):
        if fault.ok():
            fault = _reap_one(store, expired.at(i), now_us, &batch, counts, &moved, dead_rows)
    if fault.ok() and batch.Count() > 0:
        fault = store.commit(&batch)
    lock.lock()
    for i in range(names.size()):
        store.claims.give_back(Name(names.at(i)[0]))
    if fault.ok():
        for i in range(moved.size()):
            announce_row(store, moved.at(i))
    return fault


cdef inline Fault _reap_one(
    Store* store,
    const string* key,
    int64_t now_us,
    WriteBatch* batch,
    Reaped* counts,
    List[Row]* moved,
    List[Row]* dead_rows,
) noexcept nogil:
    cdef PinnableSlice value
    cdef Row before
    cdef Row after
    cdef Command command
    cdef Fault fault = get(store, JOBS, slice_of(key[0]), &value)
    if fault.code == CODE_NOT_FOUND:
        return Fault()  # it left the Leased state since the walk
    if not fault.ok():
        return fault
    before.set(key.data(), key.size(), value.data(), value.size())
    command.verb = REAP
    if not transit(store, &before, &command, now_us, batch, &after).ok():
        return Fault()  # its deadline moved since the walk
    moved.add()[0] = after
    if key_state(after.key.data()) != DEAD:
        counts.reclaimed += 1
        return Fault()
    counts.dead += 1
    if dead_rows.size() < MAX_DEAD_TOLD:
        dead_rows.add()[0] = after
    return Fault()
