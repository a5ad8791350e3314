"""A store's life, as Python calls it: opened, taken to disk, opened again, closed. Needs the GIL."""

from convert cimport read_config
from faults cimport error_of, lock_error, open_error, raise_for, shown
from meta cimport restore
from outcome cimport Fault
from store cimport Store, is_child


cdef inline int open_store(Store* store, bytes path, config, bint recovers) except -1:
    """Own and open a directory that exists."""
    cdef const char* c_path = path
    cdef int error
    cdef Fault fault
    cdef bytes place
    with nogil:
        error = store.owner.acquire(c_path)
    if error != 0:
        raise lock_error(error, path, store.owner.owner_pid())
    place = store.owner.directory()  # by which it is reached from here on, whatever the path comes to mean
    read_config(place, config, &store.settings)
    with nogil:
        fault = store.open(recovers)
        if fault.ok():
            fault = restore(store)
        if not fault.ok():
            store.close()
    if not fault.ok():
        raise open_error(&fault, path, place)
    return 0


cdef inline object recovered_of(Store* store):
    """What was given up when the store was opened, a telha_queue.job.Recovered, or None."""
    from telha_queue.job import Recovered

    if store.dropped.damage.empty():
        return None
    damage = shown(store.dropped.damage.c_str()).decode(errors="replace")
    return Recovered(tuple(damage.split("; ")), store.dropped.sequence_numbers)


cdef inline object failure_of(Store* store):
    """Why the store takes no writes now, as text, or None."""
    cdef Fault fault
    if is_child() or not store.failure.is_set():
        return None
    with nogil:
        fault = store.failure.fault()
    return None if fault.status().ok() else shown(fault.status().ToString()).decode(errors="replace")  # or it is over


cdef inline int flush_store(Store* store) except -1:
    cdef Fault fault
    with nogil:
        fault = store.flush()
    return raise_for(&fault)


cdef inline int reopen_store(Store* store) except -1:
    cdef Fault fault
    with nogil:
        fault = store.reopen()
    return raise_for(&fault)


cdef inline int close_store(Store* store) except -1:
    cdef Fault fault
    cdef bytes place
    if is_child():
        return 0
    place = store.owner.directory()
    where = shown(place)  # which nobody can tell when it is closed
    with nogil:
        fault = store.close()
    if not fault.ok():
        raise error_of(&fault, None, 0, place, where)
    return 0
