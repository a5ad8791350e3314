"""From a fault of the core to an error of telha_queue/errors.py. Needs the GIL; errors are made nowhere else."""

from libc.errno cimport EAGAIN
from libc.stdint cimport uint64_t

from command cimport RETRY
from outcome cimport (
    CODE_CLOSED,
    CODE_CORRUPT,
    CODE_FAILED,
    CODE_FORKED,
    CODE_INVALID_TRANSITION,
    CODE_LEASE_CONFLICT,
    CODE_NOT_FOUND,
    CODE_UNSUPPORTED_VERSION,
    Fault,
)


cdef inline object error_of(
    Fault* fault, bytes job_id, uint64_t presented, bytes place=None, bytes where=None, int verb=RETRY
):
    """The exception that a fault stands for. What of its text leads through `place` is told as being in `where`."""
    from telha_queue import errors

    job = None if job_id is None else _uuid(job_id)
    if fault.code == CODE_NOT_FOUND:
        return errors.JobNotFound(job)
    if fault.code == CODE_LEASE_CONFLICT:
        return errors.LeaseConflict(job, held=fault.held, presented=presented, state=fault.state)
    if fault.code == CODE_INVALID_TRANSITION:
        from telha_queue.command import Verb

        return errors.InvalidTransition(job, verb=Verb(verb).name.lower(), state=fault.state)
    if fault.code == CODE_CORRUPT:
        return errors.CorruptRecord(f"job {job}: {fault.why.decode()}" if job else fault.why.decode())
    if fault.code == CODE_UNSUPPORTED_VERSION:
        return errors.UnsupportedVersion("written in a format of a newer release")
    if fault.code == CODE_CLOSED:
        return errors.StoreClosed()
    if fault.code == CODE_FORKED:
        return forked()
    cdef bytes told = fault.status().ToString()
    text = (shown(told) if place is None else told.replace(place, where)).decode(errors="replace")
    if fault.code == CODE_FAILED:
        text = f"an earlier write failed, and until the queue is opened again it takes no more: {text}"
    outcome = "unknown" if fault.outcome_unknown else "none"
    if fault.status().IsNoSpace():
        return errors.StorageFull(text, outcome=outcome)
    if fault.status().IsCorruption():
        return errors.CorruptionError(text, outcome=outcome)
    return errors.StorageError(text, outcome=outcome)


cdef inline bytes shown(bytes text):
    """A text with the directories named that it reaches through descriptors, see place.hpp."""
    import re
    from os import readlink

    for way in sorted(set(re.findall(rb"/proc/self/fd/[0-9]+", text)), key=len, reverse=True):
        try:
            text = text.replace(way, readlink(way))
        except OSError:  # it was closed
            pass
    return text


cdef inline int raise_for(Fault* fault) except -1:
    """Raise what a fault stands for, if it is one."""
    if not fault.ok():
        raise error_of(fault, None, 0)
    return 0


cdef inline object open_error(Fault* fault, bytes path, bytes place):
    """The exception for a store that could not be opened."""
    from os import fsdecode

    from telha_queue import errors

    text = fault.status().ToString().decode(errors="replace")
    where = fsdecode(path)
    # RocksDB's own lock: somebody has opened the database without this library.
    if "lock hold by current process" in text or f"{fsdecode(place)}/LOCK: Resource temporarily unavailable" in text:
        return errors.StoreLocked(where, None)
    error = error_of(fault, None, 0, place, path)
    return error if isinstance(error, errors.StoreClosed) else type(error)(f"{where}: {error}")


cdef inline object lock_error(int error, bytes path, int owner_pid):
    """The exception for a directory that could not be owned."""
    from os import fsdecode

    from telha_queue import errors

    where = fsdecode(path)
    if error == EAGAIN:  # the lock is somebody's
        return errors.StoreLocked(where, owner_pid or None)
    return errors.path_error(where, error)


cdef inline object forked():
    """The exception for a process that may use no store."""
    from telha_queue import errors

    return errors.StoreForked()


cdef inline object _uuid(bytes job_id):
    from uuid import UUID

    return UUID(bytes=job_id)
