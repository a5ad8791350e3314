"""One transition is one WriteBatch: what a new job and a moved job are made of on disk.

Every row that belongs to a job is written in the batch that writes the job, so that no crash can part them.
"""

from libcpp.string cimport string

from keys cimport JOB_ID_BYTES, KEY_BYTES, key_state
from lookup cimport ID_ROW_BYTES, encode_id_row
from record cimport Bytes, is_nil
from rocksdb cimport ColumnFamilyHandle, Slice, WriteBatch
from row cimport Row
from store cimport IDEMPOTENCY, IDS, JOBS, PAYLOADS, RESULTS, Store, slice_of, slice_of_bytes

cdef enum:
    # A longer payload or result stands in a row of its own, so that no transition has to copy it.
    MAX_INLINE_BYTES = 4096


cdef inline void put_new_job(
    Store* store, WriteBatch* batch, const Row& row, Bytes payload_aside, const string* idempotency_name
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


cdef inline void put_moved_job(Store* store, WriteBatch* batch, const Row& old, const Row& row) noexcept nogil:
    """Add a transition: the row under its old key goes, the new one comes. Side rows do not change, see put_result."""
    cdef ColumnFamilyHandle* jobs = store.database.family(JOBS)
    if key_state(old.key()) != key_state(row.key()):  # the rest of a key never changes
        batch.Delete(jobs, Slice(old.key(), KEY_BYTES))
    batch.Put(jobs, Slice(row.key(), KEY_BYTES), slice_of_bytes(row.value()))


cdef inline void put_result(Store* store, WriteBatch* batch, const Row& row, Bytes result_aside) noexcept nogil:
    """Add the result of a job that is completed in the same batch."""
    batch.Put(store.database.family(RESULTS), Slice(row.job_id(), JOB_ID_BYTES), slice_of_bytes(result_aside))
