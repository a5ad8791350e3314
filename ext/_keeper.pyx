"""Python's face of the keeper of leases: what telha_queue/keeper.py calls `Renewals`. Links nothing."""

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t
from libcpp.vector cimport vector

from keeper cimport KEEPER_CLOSED, Renewal, make_hold
from keeper cimport Held as CoreHeld
from keeper cimport Keeper as CoreKeeper
from telha_queue._codec cimport JobRecord
from telha_queue._seam cimport Token

import threading
from os import strerror

from telha_queue._seam import tokens
from telha_queue.errors import StorageError, StoreClosed, StoreForked

# Ctrl-C is noticed by the main thread between two slices of a wait.
cdef enum:
    SIGNAL_SLICE_US = 50_000

cdef tuple REASONS = (None, "lost", "timeout", "stalled", "ended")


@cython.final
cdef class Renewer:
    """How a keeper reaches the store that made this."""


@cython.final
@cython.freelist(256)
cdef class Held:
    """One lease that is kept. Two that stand for the same hold are never there at once."""

    cdef CoreHeld _c

    def __dealloc__(self):
        if self._c.get() != NULL:
            self._c.get().face = NULL

    @property
    def over(self):
        """Why it is no longer renewed, or None while it is."""
        return None if self._c.get() == NULL else REASONS[<int>self._c.get().over()]

    def progress(self):
        """The holder is getting on."""
        if self._c.get() != NULL:
            self._c.get().progress()


@cython.final
@cython.no_gc_clear  # the thread may be using what the renewer points into until this is freed
cdef class Keeper:
    """Renews leases in a native thread, which starts with the first hold. Safe to call from many threads."""

    cdef CoreKeeper* _c
    cdef Renewer _renewer
    cdef int64_t _default_ttl_us

    def __init__(self, Renewer renewer not None, int64_t now_us, int64_t default_ttl_us):
        if self._c != NULL or renewer.core.store == NULL:
            raise TypeError("a keeper is made once, of the renewer of a store")
        self._renewer = renewer
        self._default_ttl_us = default_ttl_us
        self._c = new CoreKeeper(renewer.core, now_us)

    def __dealloc__(self):
        # In a forked child nothing may be touched: the copy is left as it is, on purpose.
        if self._c == NULL or self._c.is_forked():
            return
        with nogil:
            del self._c

    def hold(self, leases, int64_t timeout_us, progress_us):
        cdef int64_t c_progress_us = -1 if progress_us is None else progress_us
        cdef vector[CoreHeld] holds
        cdef list found = []
        cdef Held held
        cdef Token token
        cdef int started
        self._check()
        leases = tuple(leases)  # nobody else can change this one
        for token, lease in zip(tokens(leases), leases):
            held = Held.__new__(Held)
            held._c = self._new_hold(token, lease, timeout_us, c_progress_us)
            held._c.get().face = <void*>held
            holds.push_back(held._c)
            found.append(held)
        with nogil:
            started = self._c.hold(holds.data(), holds.size())
        if started == KEEPER_CLOSED:
            raise _closed()
        if started != 0:
            raise StorageError(f"no room for the thread of a keeper: {strerror(started)}")
        return found

    cdef CoreHeld _new_hold(self, Token token, lease, int64_t timeout_us, int64_t progress_us) except *:
        cdef Renewal kept
        kept.scope = token.scope_key
        kept.job_id = token.id_bytes
        kept.known_key = NULL
        kept.worker_id = token.worker
        kept.lease_generation = token.lease_generation
        kept.ttl_us = self._default_ttl_us
        kept.deadline_us = -1
        if not token._row.is_null():
            kept.known_key = token._row.key()
            kept.deadline_us = (<JobRecord>lease).view().lease_deadline
            if (<JobRecord>lease).view().lease_ttl_us > 0:
                kept.ttl_us = (<JobRecord>lease).view().lease_ttl_us
        return make_hold(kept, timeout_us, progress_us)

    def end(self, holds):
        cdef vector[CoreHeld] ended
        cdef size_t i
        for held in holds:
            if type(held) is not Held or (<Held>held)._c.get() == NULL:
                raise TypeError(f"not {type(held).__name__}")
            ended.push_back((<Held>held)._c)
        self._check()
        with nogil:
            for i in range(ended.size()):
                self._c.end(ended[i])

    def wait(self, int64_t wait_us):
        cdef bint is_main = threading.current_thread() is threading.main_thread()
        cdef vector[CoreHeld] found
        cdef bint is_open = True
        cdef int64_t slice_us = 0
        self._check()
        while True:
            slice_us = min(wait_us, <int64_t>SIGNAL_SLICE_US) if is_main else wait_us
            with nogil:
                is_open = self._c.wait(slice_us, &found)
            if not is_open:
                raise _closed()
            wait_us -= slice_us
            if not found.empty() or wait_us <= 0:
                return [_held_of(found[i]) for i in range(found.size())]
            PyErr_CheckSignals()

    def close(self):
        if self._c == NULL or self._c.is_forked():
            return
        with nogil:
            self._c.close()

    cdef int _check(self) except -1:
        if self._c == NULL:
            raise TypeError("a keeper is made of a renewer")
        if self._c.is_forked():
            raise StoreForked
        return 0


cdef Held _held_of(const CoreHeld& hold):
    """The object of a hold: the one that somebody has, or a new one if nobody has."""
    cdef Held held
    if hold.get().face != NULL:
        return <Held>hold.get().face
    held = Held.__new__(Held)
    held._c = hold
    hold.get().face = <void*>held
    return held


cdef object _closed():
    return StoreClosed("this keeper is closed")
