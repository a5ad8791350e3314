"""A transaction: moves of jobs, new jobs and rows of the program's own, all in one write or none of them.

What an enqueue may have to wait for are the jobs that have its idempotency keys. So the keys are claimed first, then
all jobs at once, those included: whoever holds the claim of a job waits for no other.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcmp
from libcpp.string cimport string

from announce cimport tell_moved, tell_new
from enqueue cimport NewJob, gather_new, name_keys
from keys cimport JOB_ID_BYTES
from lookup cimport get
from memory cimport JobId, Lock, id_of_text
from move cimport Move, find_leased, gather_moves
from outcome cimport CODE_NOT_FOUND, Fault, List, Outcome, set_text
from record cimport Bytes, is_nil, same
from rocksdb cimport PinnableSlice, WriteBatch
from store cimport DATA, IDEMPOTENCY, Cursor, Store, Visit, bytes_of, fresh_batch, slice_of, slice_of_bytes

# New jobs of one scope: `count` of those of the transaction, from `first` on.
cdef struct Group:
    const char* scope
    size_t first
    size_t count

# A row of the program's own. A value of nil deletes it.
cdef struct Put:
    Bytes key
    Bytes value

cdef struct Work:
    const Move* moves
    size_t moves_count
    const NewJob* jobs
    const Group* groups
    size_t groups_count
    const Put* puts
    size_t puts_count


cdef inline Fault transact(
    Store* store, const Work* work, int64_t now_us, List[Outcome]* moved, List[List[Outcome]]* stored
) noexcept nogil:
    """Do all of it in one write; adds one outcome per move to `moved`, and a list of them per group to `stored`.

    When a move is refused nothing is written: the first that `moved` has with a fault is the reason.
    """
    cdef Visit visit
    cdef WriteBatch* batch = fresh_batch()
    cdef List[List[string]] names
    cdef List[JobId] keys
    cdef List[JobId] ids
    cdef Lock lock
    cdef size_t i
    cdef size_t j
    cdef uint64_t moves = store.moves.load()
    cdef bint keys_repeat = False
    cdef bint jobs_repeat
    cdef bint is_good = False
    cdef Fault fault = visit.enter(store)
    if not fault.ok():
        return fault
    store.see(now_us)
    for i in range(work.groups_count):
        name_keys(work.groups[i].scope, work.jobs + work.groups[i].first, work.groups[i].count, names.add())
        for j in range(names.at(i).size()):
            keys.add()[0] = id_of_text(names.at(i).at(j)[0])
    if keys.size() > 0:
        lock = Lock(store.mutex)
        keys_repeat = store.claims.wait_and_take(lock, keys.items()) < keys.size()
        lock.unlock()
    for i in range(work.moves_count):
        ids.add()[0] = JobId(work.moves[i].job_id)
    for i in range(names.size()):
        if fault.ok():
            fault = _add_keyed(store, names.at(i), &ids)
    moved.resize(work.moves_count)
    lock = Lock(store.mutex)
    jobs_repeat = store.claims.wait_and_take(lock, ids.items()) < ids.size()
    for i in range(work.moves_count):
        moved.at(i).row = find_leased(store, &work.moves[i])
    lock.unlock()
    if fault.ok():
        is_good = gather_moves(store, work.moves, work.moves_count, jobs_repeat, True, now_us, batch, moved)
    if is_good:
        fault = _gather_groups(store, work, &names, keys_repeat, now_us, batch, stored)
        _put(store, work, batch)
    if fault.ok() and is_good and batch.Count() > 0:
        fault = store.commit(batch)
    is_good = is_good and fault.ok()
    lock.lock()
    if is_good:
        _tell(store, work, moves, moved, stored)
    for i in range(ids.size()):
        store.claims.give_back(ids.at(i)[0])
    for i in range(keys.size()):
        store.claims.give_back(keys.at(i)[0])
    lock.unlock()
    return fault


cdef inline Fault _add_keyed(Store* store, List[string]* names, List[JobId]* ids) noexcept nogil:
    """Add the ids of the jobs that have the idempotency keys by now."""
    cdef PinnableSlice job_id
    cdef size_t i
    cdef Fault fault
    for i in range(names.size()):
        job_id.Reset()
        fault = get(store, IDEMPOTENCY, slice_of(names.at(i)[0]), &job_id)
        if fault.ok() and job_id.size() == JOB_ID_BYTES:
            ids.add()[0] = JobId(job_id.data())
        elif not fault.ok() and fault.code != CODE_NOT_FOUND:
            return fault
    return Fault()


cdef inline Fault _gather_groups(
    Store* store,
    const Work* work,
    List[List[string]]* names,
    bint has_repeats,
    int64_t now_us,
    WriteBatch* batch,
    List[List[Outcome]]* stored,
) noexcept nogil:
    cdef const Group* group
    cdef size_t i
    cdef Fault fault
    stored.resize(work.groups_count)
    for i in range(work.groups_count):
        group = work.groups + i
        fault = gather_new(
            store,
            group.scope,
            work.jobs + group.first,
            group.count,
            True,
            now_us,
            names.at(i),
            has_repeats,
            True,
            batch,
            stored.at(i),
        )
        if not fault.ok():
            break
    return fault


cdef inline void _put(Store* store, const Work* work, WriteBatch* batch) noexcept nogil:
    cdef size_t i
    for i in range(work.puts_count):
        if is_nil(work.puts[i].value):
            batch.Delete(store.database.family(DATA), slice_of_bytes(work.puts[i].key))
        else:
            batch.Put(
                store.database.family(DATA), slice_of_bytes(work.puts[i].key), slice_of_bytes(work.puts[i].value)
            )


cdef inline void _tell(
    Store* store, const Work* work, uint64_t moves, List[Outcome]* moved, List[List[Outcome]]* stored
) noexcept nogil:
    """Tell of every job, and give those that an idempotency key found as the moves have left them."""
    cdef Outcome* job
    cdef size_t i
    cdef size_t j
    cdef size_t k
    for i in range(moved.size()):
        tell_moved(store, moved.at(i))
    for i in range(stored.size()):
        for j in range(stored.at(i).size()):
            job = stored.at(i).at(j)
            if job.is_written:
                tell_new(store, job, moves)
                continue
            for k in range(moved.size()):
                if memcmp(work.moves[k].job_id, job.row.job_id(), JOB_ID_BYTES) == 0:
                    job.row = moved.at(k).row


cdef inline Fault get_data(Store* store, Visit* visit, Bytes key, PinnableSlice* out) noexcept nogil:
    """The value of a row of the program's own. `out` may pin a block of the store, so it goes before the visit."""
    cdef Fault fault = visit.enter(store)
    return get(store, DATA, slice_of_bytes(key), out) if fault.ok() else fault


cdef inline Fault scan_data(
    Store* store, Bytes prefix, Bytes after, size_t limit, size_t max_bytes, List[string]* out
) noexcept nogil:
    """Add up to `limit` keys and their values, in turn, that begin with a prefix and stand behind a key.

    Stops before they come to more than `max_bytes`, but not before it has one.
    """
    cdef Visit visit
    cdef Cursor rows
    cdef size_t bytes = 0
    cdef Fault fault = visit.enter(store)
    if not fault.ok():
        return fault
    rows.survey(DATA, NULL)
    rows.open_at(store, prefix.data, prefix.size, after.data, after.size)
    while out.size() < 2 * limit and rows.is_on_row():
        if not same(bytes_of(rows.key()), after):
            bytes += rows.key().size() + rows.value().size()
            if out.size() > 0 and bytes > max_bytes:
                break
            set_text(out.add(), rows.key().data(), rows.key().size())
            set_text(out.add(), rows.value().data(), rows.value().size())
        rows.step()
    return rows.fault()
