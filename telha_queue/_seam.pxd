"""The part of `_seam` that `_rocks` reads. The types of its fields are in ext/."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from record cimport Bytes
from row cimport Row


cdef class NewJob:
    cdef readonly str kind
    cdef readonly bytes payload
    cdef readonly str idempotency_key
    cdef readonly uint8_t priority
    cdef int64_t not_before_us  # -1 for none, here and below
    cdef int64_t attempts_ceiling
    cdef int64_t expires_at_us
    cdef bytes headers_value  # as they are stored, or None


cdef class Token:
    cdef Row _row  # the record that it was made of, or null; what is below then points into it
    cdef bytes _scope
    cdef bytes _job_id
    cdef str _worker_id
    cdef const char* scope_key  # NULL for any
    cdef const char* id_bytes
    cdef Bytes worker
    cdef readonly uint64_t lease_generation
