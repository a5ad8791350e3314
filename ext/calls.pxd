"""The verbs that write, called with the GIL released and a turn in hand, their faults raised. Needs the GIL."""

from libc.stdint cimport int64_t

from command cimport Command
from convert cimport bytes_or_null, read_wanted
from enqueue cimport NewJob as CoreJob
from enqueue cimport enqueue
from faults cimport raise_for
from keys cimport SCOPE_BYTES
from lease cimport complete_and_lease, lease
from memory cimport Kinds
from move cimport Move, move_jobs
from outcome cimport Fault, List, Outcome
from scan cimport Wanted
from store cimport Store


cdef inline int call_enqueue(
    Store* store, bytes scope, const CoreJob* jobs, size_t n, bint atomic, int64_t now_us, List[Outcome]* out
) except -1:
    cdef const char* c_scope = bytes_or_null(scope, SCOPE_BYTES)
    cdef Fault fault
    with nogil:
        store.take_turn()
        fault = enqueue(store, c_scope, jobs, n, atomic, now_us, out)
    store.give_turn_back()
    return raise_for(&fault)


cdef inline int call_lease(
    Store* store, bytes scope, size_t n, int64_t max_bytes, tuple kinds, Command* command, int64_t now_us,
    List[Outcome]* out
) except -1:
    cdef const char* c_scope = bytes_or_null(scope, SCOPE_BYTES)
    cdef Kinds c_kinds
    cdef Wanted wanted
    cdef Fault fault
    read_wanted(kinds, now_us, &c_kinds, &wanted)
    with nogil:
        store.take_turn()
        fault = lease(store, c_scope, wanted, n, max_bytes, command, out)
    store.give_turn_back()
    return raise_for(&fault)


cdef inline int call_complete_and_lease(
    Store* store, const Move* move, tuple kinds, Command* command, int64_t now_us, Outcome* completed,
    List[Outcome]* out
) except -1:
    cdef Kinds c_kinds
    cdef Wanted wanted
    cdef Fault fault
    read_wanted(kinds, now_us, &c_kinds, &wanted)
    with nogil:
        store.take_turn()
        fault = complete_and_lease(store, move, wanted, command, completed, out)
    store.give_turn_back()
    return raise_for(&fault)


cdef inline int call_moves(
    Store* store, const Move* moves, size_t n, bint atomic, int64_t now_us, List[Outcome]* out
) except -1:
    cdef Fault fault
    with nogil:
        store.take_turn()
        fault = move_jobs(store, moves, n, atomic, now_us, out)
    store.give_turn_back()
    return raise_for(&fault)
