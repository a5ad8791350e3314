"""One transition is one WriteBatch: what a new job and a moved job are made of on disk.

Every row that belongs to a job is written in the batch that writes the job, so that no crash can part them.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy
from libcpp.string cimport string

from keys cimport JOB_ID_BYTES, KEY_BYTES, key_priority, key_state, put_be64
from lookup cimport ID_ROW_BYTES, encode_id_row
from record cimport Bytes, is_nil
from rocksdb cimport ColumnFamilyHandle, Slice, WriteBatch
from row cimport Row
from store cimport EXPIRIES, IDEMPOTENCY, IDS, JOBS, PAYLOADS, RESULTS, Store, slice_of, slice_of_bytes

cdef enum:
    TIME_BYTES = 8
    EXPIRY_BYTES = TIME_BYTES + 16  # and a job id
    # A longer payload or result stands in a row of its own, so that no transition has to copy it.
    MAX_INLINE_BYTES = 4096


cdef inline void encode_expiry(char* out, int64_t expires_at, const char* job_id) noexcept nogil:
    """Write the key of a job's row in the expiries family, which has no value."""
    put_be64(out, <uint64_t>expires_at)
    memcpy(out + TIME_BYTES, job_id, JOB_ID_BYTES)


cdef inline void put_expiry(Store* store, WriteBatch* batch, int64_t expires_at, const char* job_id) noexcept nogil:
    cdef char[EXPIRY_BYTES] expiry
    encode_expiry(expiry, expires_at, job_id)
    batch.Put(store.database.family(EXPIRIES), Slice(expiry, EXPIRY_BYTES), Slice())


cdef inline void drop_expiry(Store* store, WriteBatch* batch, int64_t expires_at, const char* job_id) noexcept nogil:
    cdef char[EXPIRY_BYTES] expiry
    encode_expiry(expiry, expires_at, job_id)
    batch.Delete(store.database.family(EXPIRIES), Slice(expiry, EXPIRY_BYTES))


cdef inline void put_new_job(
    Store* store,
    WriteBatch* batch,
    const Row& row,
    Bytes payload_aside,
    const string* idempotency_name,
    int64_t expires_at,
) noexcept nogil:
    """Add a job with its side rows. A payload of nil stands in the record; a NULL name means no idempotency key."""
    cdef char[ID_ROW_BYTES] id_row
    cdef Slice job_id = Slice(row.job_id(), JOB_ID_BYTES)
    encode_id_row(id_row, row.key(), row.key())
    batch.Put(store.database.family(JOBS), Slice(row.key(), KEY_BYTES), slice_of_bytes(row.value()))
    batch.Put(store.database.family(IDS), job_id, Slice(id_row, ID_ROW_BYTES))
    if idempotency_name != NULL:
        batch.Put(store.database.family(IDEMPOTENCY), slice_of(idempotency_name[0]), job_id)
    if not is_nil(payload_aside):
        batch.Put(store.database.family(PAYLOADS), job_id, slice_of_bytes(payload_aside))
    if expires_at >= 0:
        put_expiry(store, batch, expires_at, row.job_id())


cdef inline void put_moved_job(Store* store, WriteBatch* batch, const Row& old, const Row& row) noexcept nogil:
    """Add a transition: the old row goes, the new one comes; the id row follows a new priority. See put_result."""
    cdef ColumnFamilyHandle* jobs = store.database.family(JOBS)
    cdef char[ID_ROW_BYTES] id_row
    cdef bint has_place = key_priority(old.key()) == key_priority(row.key())
    if key_state(old.key()) != key_state(row.key()) or not has_place:  # the rest of a key never changes
        batch.Delete(jobs, Slice(old.key(), KEY_BYTES))
    batch.Put(jobs, Slice(row.key(), KEY_BYTES), slice_of_bytes(row.value()))
    if not has_place:
        encode_id_row(id_row, row.key(), row.key())
        batch.Put(store.database.family(IDS), Slice(row.job_id(), JOB_ID_BYTES), Slice(id_row, ID_ROW_BYTES))


cdef inline void put_result(Store* store, WriteBatch* batch, const Row& row, Bytes result_aside) noexcept nogil:
    """Add the result of a job that is completed in the same batch."""
    batch.Put(store.database.family(RESULTS), Slice(row.job_id(), JOB_ID_BYTES), slice_of_bytes(result_aside))
