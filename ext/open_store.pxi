# An open queue directory, a part of _rocks.pyx: how it is opened and closed, and what is done to all of it at once.


cdef class OpenStore:
    """What a store is besides its verbs. After close() every call raises StoreClosed."""

    cdef CoreStore* _c
    cdef object __weakref__

    def __cinit__(self, *args, **kwargs):
        self._c = new CoreStore()

    def __init__(self, bytes path not None, config not None, bint recovers=False):
        """Own and open a directory that exists. Settings are those of telha_queue.config.QueueConfig."""
        refuse_in_child()
        open_store(self._c, path, config, recovers)

    def __dealloc__(self):
        # In a forked child nothing may be touched: the copy is left as it is, on purpose.
        if is_child():
            return
        with nogil:
            self._c.close()
            del self._c

    def renewer(self):
        """How a keeper of leases reaches this store."""
        cdef Renewer renewer = Renewer.__new__(Renewer)
        renewer.owner, renewer.core.store = self, self._c
        renewer.core.renew, renewer.core.seen_us = renew, last_seen_of
        return renewer

    def wake(self):
        with nogil:
            wake_all(self._c)

    def last_seen_us(self):
        return self._c.last_seen_us()

    def check_rows(self, bint is_repairing):
        """Check all rows but the names of scopes, as telha_queue.engine.Engine.fsck says."""
        return call_fsck(self._c, is_repairing)

    def list_names(self, bytes after not None, size_t limit):
        """Rows that hold names of scopes, key and value, behind a key."""
        return call_list_names(self._c, after, limit)

    def drop_name(self, bytes key not None, bytes seen not None):
        """Remove a row that holds no name, if it still has that value."""
        call_drop_name(self._c, key, seen)

    def directory(self):
        """Where the directory is now: it may have been moved since it was opened."""
        return shown(self._c.owner.directory())

    def copy_to(self, bytes path not None):
        """Copy the database as it is now to a path at which nothing is; what mark_copy asks for."""
        return call_checkpoint(self._c, path)

    def fence(self, int64_t now_us, int64_t seen_us):
        """End all leases, and see that none given out before is ever accepted: for a store that nobody uses yet."""
        return call_fence(self._c, now_us, seen_us)

    @property
    def corrupt_rows(self):
        return self._c.corrupt_rows.load()

    @property
    def recovered(self):
        return recovered_of(self._c)

    @property
    def failure(self):
        return failure_of(self._c)

    def flush(self):
        flush_store(self._c)

    def reopen(self):
        reopen_store(self._c)

    def close(self):
        close_store(self._c)
