"""The fence of a restored store: no lease that was given out before, here or by the original, is accepted any more.

A store from a snapshot cannot know which leases the original has given out since. So its own begin at a floor that no
other has reached: generations grow by one with each lease of a job, and the floor is the time in microseconds, at which
no job can be leased so often. Two stores of one snapshot differ in it too. Where the clock is behind what is known, it
is what is known and a random number.
"""

from libc.stdint cimport INT64_MAX, int64_t, uint64_t
from libcpp.string cimport string

from command cimport RESTORE, Command
from keys cimport KEY_BYTES, LEASED, STATE_PREFIX_BYTES, state_prefix
from meta cimport put_floor
from outcome cimport Fault, List, Outcome
from record cimport View
from rocksdb cimport WriteBatch
from row cimport row_of
from scan cimport list_scopes, view_at
from store cimport Cursor, Store, Visit, bytes_of, fresh_batch
from transit cimport transit_viewed

cdef extern from "checkpoint.hpp" namespace "telha" nogil:
    Fault make_checkpoint(Store* store, const char* path, uint64_t* sequence) noexcept
    int mark_copy(const string& directory, uint64_t sequence) noexcept

cdef enum:
    FENCE_BATCH_JOBS = 256
    # Where the clock does not help: how far the floor lies above every generation in the store, at least, and at most.
    FENCE_GAP = 1 << 20
    RANDOM_BITS = 32

cdef struct Restored:
    uint64_t jobs
    uint64_t leases_ended
    uint64_t corrupt


cdef inline Fault checkpoint(Store* store, const char* path, uint64_t* sequence) noexcept nogil:
    """Copy the store as it is now to a path at which nothing is; `sequence` is what mark_copy asks for."""
    cdef Visit visit
    cdef Fault fault = visit.enter(store)
    return make_checkpoint(store, path, sequence) if fault.ok() else fault


cdef inline Fault fence(Store* store, int64_t now_us, int64_t seen_us, Restored* counts) noexcept nogil:
    """Raise the floor and end all leases. Nobody else may be using the store.

    `now_us` is what the clock says, `seen_us` the latest time that the snapshot knows of. The floor is written first,
    so that no lease is ever below it.
    """
    cdef Visit visit
    cdef List[string] scopes
    cdef WriteBatch* batch = fresh_batch()
    cdef uint64_t known = 0
    cdef uint64_t most = <uint64_t>INT64_MAX - FENCE_GAP - (<uint64_t>1 << RANDOM_BITS) - 1
    cdef size_t i
    cdef Fault fault = visit.enter(store)
    if not fault.ok():
        return fault
    store.see(seen_us)
    fault = _greatest_generation(store, &known, counts)
    if not fault.ok():
        return fault
    known = min(max(min(max(known, store.generation_floor), most) + FENCE_GAP, store.last_seen_us()), most)
    if <uint64_t>now_us > known:
        store.generation_floor = <uint64_t>now_us
    else:
        store.generation_floor = known + 1 + (store.random() >> (64 - RANDOM_BITS))
    now_us = max(store.see(now_us), <int64_t>store.last_seen_us())
    put_floor(store, batch)
    fault = store.commit(batch)
    if fault.ok():
        fault = list_scopes(store, &scopes)
    for i in range(scopes.size()):
        if fault.ok():
            fault = _end_leases(store, scopes.at(i).data(), now_us, counts)
    return fault


cdef inline Fault _greatest_generation(Store* store, uint64_t* greatest, Restored* counts) noexcept nogil:
    """Read every job; rows that do not decode are counted and left as they are."""
    cdef Cursor rows
    cdef View job
    rows.open(store, NULL, 0)
    while rows.is_on_row():
        if rows.key().size() != KEY_BYTES or not view_at(&rows, &job).ok():
            counts.corrupt += 1
        else:
            counts.jobs += 1
            greatest[0] = max(greatest[0], job.lease_generation)
        rows.step()
    return rows.fault()


cdef inline Fault _end_leases(Store* store, const char* scope, int64_t now_us, Restored* counts) noexcept nogil:
    """Put the leased jobs of one scope back in line, as if their workers had released them."""
    cdef Cursor rows
    cdef char[STATE_PREFIX_BYTES] prefix
    cdef WriteBatch* batch = fresh_batch()
    cdef Command command
    cdef View job
    cdef Outcome moved
    cdef Fault fault
    command.verb = RESTORE
    state_prefix(prefix, scope, LEASED)
    rows.open(store, prefix, STATE_PREFIX_BYTES)  # sees the store as it is now, whatever is written below
    while fault.ok() and rows.is_on_row():
        if rows.key().size() == KEY_BYTES and view_at(&rows, &job).ok():
            fault = transit_viewed(
                store, row_of(rows.key().data(), bytes_of(rows.value())), &job, &command, now_us, batch, &moved
            )
            counts.leases_ended += fault.ok()
        rows.step()
        if fault.ok() and (batch.Count() >= 2 * FENCE_BATCH_JOBS or (batch.Count() > 0 and not rows.is_on_row())):
            fault = store.commit(batch)
            batch = fresh_batch()
    return rows.fault() if fault.ok() else fault
