"""The second half of the reaper's pass: buries pending jobs whose time is over, by the rows of the expiries family.

It walks them from their head up to now, so that it costs one seek when nothing has expired. The row of a job that is
leased stays: the job may come back to Pending.
"""

from libc.stdint cimport int64_t, uint64_t
from libcpp.string cimport string

from announce cimport commit_claimed
from batch cimport EXPIRY_BYTES, TIME_BYTES, drop_expiry
from command cimport EXPIRE, Command
from keys cimport LEASED, PENDING, get_be64
from lookup cimport find_claimed
from memory cimport JobId, Lock
from outcome cimport CODE_CORRUPT, CODE_NOT_FOUND, CODE_UNSUPPORTED_VERSION, Fault, List, Outcome, append_text, set_text
from record cimport View
from rocksdb cimport WriteBatch
from row cimport Row
from store cimport EXPIRIES, Cursor, Store, fresh_batch, view_row
from transit cimport transit_viewed

cdef enum:
    # Rows per write, as many as the reaper takes leases.
    EXPIRE_BATCH_ROWS = 256


cdef inline Fault expire(Store* store, int64_t now_us, uint64_t* expired) noexcept nogil:
    """Bury every pending job that has expired, and remove the rows that have done their work; counts the jobs."""
    cdef List[string] rows
    cdef string last
    cdef Fault fault
    while True:
        rows.clear()
        fault = _read(store, now_us, &last, &rows)
        if not fault.ok() or rows.size() == 0:
            return fault
        fault = _bury_batch(store, &rows, now_us, expired)
        if not fault.ok() or rows.size() < EXPIRE_BATCH_ROWS:
            return fault


cdef inline Fault _read(Store* store, int64_t now_us, string* last, List[string]* rows) noexcept nogil:
    """Read the next rows behind `last` whose time has come, for one write; `last` is then the last of them."""
    cdef Cursor cursor
    cursor.survey(EXPIRIES, NULL)
    cursor.open_at(store, NULL, 0, last.data(), last.size())
    while cursor.is_on_row() and rows.size() < EXPIRE_BATCH_ROWS:
        if cursor.key().size() == EXPIRY_BYTES:  # any other is for a check to find
            if get_be64(cursor.key().data()) > <uint64_t>now_us:
                break
            set_text(rows.add(), cursor.key().data(), EXPIRY_BYTES)
        cursor.step()
    if rows.size() > 0:
        set_text(last, rows.at(rows.size() - 1).data(), EXPIRY_BYTES)
        append_text(last, b"\0", 1)  # the least key behind it
    return cursor.fault()


cdef inline Fault _bury_batch(Store* store, List[string]* rows, int64_t now_us, uint64_t* expired) noexcept nogil:
    cdef List[JobId] ids
    cdef List[Outcome] seen
    cdef WriteBatch* batch = fresh_batch()
    cdef Lock lock
    cdef size_t i
    cdef Fault fault
    for i in range(rows.size()):
        ids.add()[0] = JobId(rows.at(i).data() + TIME_BYTES)
    lock = Lock(store.mutex)
    store.claims.wait_and_take(lock, ids.items())
    lock.unlock()
    for i in range(rows.size()):
        if fault.ok():
            fault = _bury_one(store, rows.at(i).data(), now_us, batch, &seen)
    fault = commit_claimed(store, batch, &ids, &seen, fault)
    if fault.ok():
        expired[0] += seen.size()
    return fault


cdef inline Fault _bury_one(
    Store* store, const char* expiry, int64_t now_us, WriteBatch* batch, List[Outcome]* seen
) noexcept nogil:
    """The job of one row: buried if it is pending. The row goes with it, or because nobody needs it any more."""
    cdef Row row
    cdef View job
    cdef Command command
    cdef Fault fault = find_claimed(store, NULL, expiry + TIME_BYTES, NULL, PENDING, &row)
    cdef bint is_its = False
    if fault.ok():
        fault = view_row(row.key(), row.value(), &job)
    if fault.code == CODE_CORRUPT or fault.code == CODE_UNSUPPORTED_VERSION:
        return Fault()  # it is left as it is, and so is its row
    if fault.ok():
        is_its = job.expires_at == <int64_t>get_be64(expiry)
        if is_its and job.state == LEASED:
            return fault
        if is_its and job.state == PENDING:
            command.verb = EXPIRE
            fault = transit_viewed(store, row, &job, &command, now_us, batch, seen.add())
            if not fault.ok():
                seen.remove_last()
                return Fault()
    elif fault.code != CODE_NOT_FOUND:
        return fault
    drop_expiry(store, batch, <int64_t>get_be64(expiry), expiry + TIME_BYTES)
    return Fault()
