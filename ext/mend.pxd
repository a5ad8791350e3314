"""The repairs of a check: side rows that jobs are given again, orphans that are removed; some hundred in a write."""

from libcpp.string cimport string

from audit cimport EXPIRY_MISSING, FOUND_COUNT, Audit, Mend
from batch cimport put_expiry
from keys cimport JOB_ID_AT, JOB_ID_BYTES
from lookup cimport ID_ROW_BYTES, encode_id_row, get
from memory cimport JobId, Lock, id_of_text
from outcome cimport CODE_NOT_FOUND, Fault, List
from record cimport Bytes, same
from rocksdb cimport PinnableSlice, Slice, WriteBatch
from store cimport IDEMPOTENCY, IDS, Store, bytes_of, fresh_batch, slice_of


cdef inline Fault mend_jobs(Store* store, Audit* audit) noexcept nogil:
    """Write the side rows that sound jobs lack. The rows of one job come in one write.

    An idempotency row is claimed, because callers may be enqueueing with that key, and left alone if one of them has
    changed it.
    """
    cdef WriteBatch* batch = fresh_batch()
    cdef List[JobId] claimed
    cdef Lock lock
    cdef size_t i
    cdef Fault fault
    if audit.mends.size() == 0:
        return fault
    for i in range(audit.mends.size()):
        if audit.mends[i].named != FOUND_COUNT:
            claimed.add()[0] = id_of_text(audit.mends[i].name)
    lock = Lock(store.mutex)
    store.claims.wait_and_take(lock, claimed.items())
    lock.unlock()
    for i in range(audit.mends.size()):
        if fault.ok():
            fault = _mend(store, audit, &audit.mends[i], batch)
    if fault.ok() and batch.Count() > 0:
        fault = store.commit(batch)
    lock.lock()
    for i in range(claimed.size()):
        store.claims.give_back(claimed.at(i)[0])
    audit.mends.clear()
    audit.has_mended = True
    return fault


cdef inline Fault _mend(Store* store, Audit* audit, const Mend* mend, WriteBatch* batch) noexcept nogil:
    cdef PinnableSlice stored
    cdef char[ID_ROW_BYTES] id_row
    cdef const char* key = mend.key.data()
    cdef Slice job_id = Slice(key + JOB_ID_AT, JOB_ID_BYTES)
    cdef Bytes seen
    cdef Fault fault
    if mend.id != FOUND_COUNT:
        encode_id_row(id_row, key, key)
        batch.Put(store.database.family(IDS), job_id, Slice(id_row, ID_ROW_BYTES))
        audit.findings.mend(mend.id)
    if mend.expires_at >= 0:
        put_expiry(store, batch, mend.expires_at, key + JOB_ID_AT)
        audit.findings.mend(EXPIRY_MISSING)
    if mend.named == FOUND_COUNT:
        return fault
    fault = get(store, IDEMPOTENCY, slice_of(mend.name), &stored)
    seen.data = mend.seen.data()
    seen.size = mend.seen.size()
    if (fault.code == CODE_NOT_FOUND and seen.size == 0) or (fault.ok() and same(bytes_of(stored), seen)):
        batch.Put(store.database.family(IDEMPOTENCY), slice_of(mend.name), job_id)
        audit.findings.mend(mend.named)
    return Fault() if fault.code == CODE_NOT_FOUND else fault


cdef inline Fault drop_orphans(Store* store, Audit* audit) noexcept nogil:
    """Remove the rows that were found to belong to nobody."""
    cdef WriteBatch* batch = fresh_batch()
    cdef size_t i
    cdef Fault fault
    for i in range(audit.drops.size()):
        batch.Delete(store.database.family(audit.drops[i].family), slice_of(audit.drops[i].key))
    if batch.Count() > 0:
        fault = store.commit(batch)
    audit.drops.clear()
    return fault
