"""Verbs on jobs that the caller names: what happens to a job between its lease and its end, and what operators ask.

Read, decide, write, all under the claims of the jobs concerned. What is decided is transitions.pxd's affair.
"""

from libc.stdint cimport int64_t
from libc.string cimport memcmp

from announce cimport tell_moved
from batch cimport put_result
from command cimport CANCEL, RESCHEDULE, RETRY, Command, Verb
from keys cimport DEAD, JOB_ID_BYTES, LEASED, PENDING, SCOPE_BYTES, State
from lookup cimport find_claimed
from memory cimport JobId, Lock
from outcome cimport CODE_NOT_FOUND, Fault, List, Outcome, fault_of
from record cimport is_nil
from rocksdb cimport WriteBatch
from row cimport Row
from store cimport Store, Visit, fresh_batch
from transit cimport transit

# Which job, and what is asked of it. A scope of NULL takes the job of any scope.
cdef struct Move:
    const char* scope
    const char* job_id
    const char* known_key  # the job's key in some state, which saves a look-up; or NULL
    Command command


cdef inline Fault move_jobs(
    Store* store, const Move* moves, size_t n, bint atomic, int64_t now_us, List[Outcome]* out
) noexcept nogil:
    """Make n moves in one write; adds one outcome each, in order.

    A refused move changes nothing and harms no other, unless the call is to be `atomic`: then nothing is written, and
    the outcomes up to the refused one count. Moves of the same job are made one after the other.
    """
    cdef Visit visit
    cdef WriteBatch* batch = fresh_batch()
    cdef List[JobId] ids
    cdef Lock lock
    cdef size_t i
    cdef size_t distinct
    cdef bint is_off = False
    cdef Fault fault = visit.enter(store)
    if not fault.ok():
        return fault
    store.see(now_us)
    ids.resize(n)
    for i in range(n):
        ids.at(i)[0] = JobId(moves[i].job_id)
    out.resize(n)
    lock = Lock(store.mutex)
    distinct = store.claims.wait_and_take(lock, ids.items())
    for i in range(n):
        out.at(i).row = find_leased(store, &moves[i])
    lock.unlock()
    is_off = not gather_moves(store, moves, n, distinct < n, atomic, now_us, batch, out) and atomic
    if batch.Count() > 0 and not is_off:
        fault = store.commit(batch)
    lock.lock()
    for i in range(n):
        store.claims.give_back(ids.at(i)[0])
        if fault.ok() and out.at(i).fault.ok() and not is_off:
            tell_moved(store, out.at(i))
    return fault


cdef inline bint gather_moves(
    Store* store,
    const Move* moves,
    size_t n,
    bint has_repeats,
    bint atomic,
    int64_t now_us,
    WriteBatch* batch,
    List[Outcome]* out,
) noexcept nogil:
    """Fill the batch with moves of jobs whose claims are held, and the outcomes; whether none was refused.

    `out` has n outcomes, with the rows of those that `find_leased` knows. With `atomic` it ends at the first refusal.
    """
    cdef Row row
    cdef size_t i
    cdef bint is_good = True
    for i in range(n):
        out.at(i).fault = _find(store, moves, i, has_repeats, out, &row)
        if out.at(i).fault.ok():
            out.at(i).fault = transit(store, row, &moves[i].command, now_us, batch, out.at(i))
            if not is_nil(moves[i].command.result_aside) and out.at(i).fault.ok():
                put_result(store, batch, out.at(i).row, moves[i].command.result_aside)
        is_good = is_good and out.at(i).fault.ok()
        if atomic and not is_good:
            break
    return is_good


cdef inline Fault _find(
    Store* store, const Move* moves, size_t i, bint has_repeats, List[Outcome]* out, Row* row
) noexcept nogil:
    """The row as this call has it so far: as an earlier move of the same job left it, or as it is stored."""
    cdef State likely = _likely_state(moves[i].command.verb)
    cdef size_t j = i if has_repeats else 0
    while j > 0:
        j -= 1
        if out.at(j).fault.ok() and memcmp(moves[j].job_id, moves[i].job_id, JOB_ID_BYTES) == 0:
            if moves[i].scope != NULL and memcmp(moves[i].scope, out.at(j).row.key(), SCOPE_BYTES) != 0:
                return fault_of(CODE_NOT_FOUND)
            row[0] = out.at(j).row
            return Fault()
    if not out.at(i).row.is_null():
        row[0] = out.at(i).row
        return Fault()
    return find_claimed(store, moves[i].scope, moves[i].job_id, moves[i].known_key, likely, row)


cdef inline State _likely_state(Verb verb) noexcept nogil:
    """Where to look first for a job that is to be moved so."""
    if verb == RETRY:
        return DEAD
    return PENDING if verb == CANCEL or verb == RESCHEDULE else LEASED


cdef inline Row find_leased(Store* store, const Move* move) noexcept nogil:
    """The row of a leased job from memory, if it is there and in the scope that is asked for; else null."""
    cdef Row leased = store.leased.find(move.job_id)
    if not leased.is_null() and move.scope != NULL and memcmp(move.scope, leased.key(), SCOPE_BYTES) != 0:
        return Row()
    return leased
