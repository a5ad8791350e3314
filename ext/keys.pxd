"""Where a job lives: its 58-byte key. Knows bytes and offsets; knows nothing of RocksDB, Python or time.

    [ scope 32 ][ state 1 ][ priority 1 ][ created_at_us 8, big-endian ][ job_id 16 ]

Big-endian so that byte order is time order: the oldest job of a band is its first key. No function here checks
a length: every `key` has KEY_BYTES, every `scope` SCOPE_BYTES.
"""

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy

cdef enum:
    KEY_BYTES = 58
    SCOPE_BYTES = 32
    STATE_AT = 32
    PRIORITY_AT = 33
    CREATED_AT_AT = 34
    JOB_ID_AT = 42
    JOB_ID_BYTES = 16
    STATE_PREFIX_BYTES = 33

cdef enum State:
    PENDING = 0
    LEASED = 1
    COMPLETED = 2
    FAILED = 3  # reserved in the key space, never written
    DEAD = 4


cdef inline void encode_key(
    char* out, const char* scope, uint8_t state, uint8_t priority, uint64_t created_at_us, const char* job_id
) noexcept nogil:
    """Write the key of a job to `out`."""
    memcpy(out, scope, SCOPE_BYTES)
    out[STATE_AT] = <char>state
    out[PRIORITY_AT] = <char>priority
    put_be64(out + CREATED_AT_AT, created_at_us)
    memcpy(out + JOB_ID_AT, job_id, JOB_ID_BYTES)


cdef inline void patch_state(char* key, uint8_t state) noexcept nogil:
    """Rewrite the state byte of an existing key. Most transitions change nothing else, so it needs no scope."""
    key[STATE_AT] = <char>state


cdef inline uint8_t key_state(const char* key) noexcept nogil:
    return <uint8_t>key[STATE_AT]


cdef inline uint8_t key_priority(const char* key) noexcept nogil:
    return <uint8_t>key[PRIORITY_AT]


cdef inline uint64_t key_created_at_us(const char* key) noexcept nogil:
    return get_be64(key + CREATED_AT_AT)


cdef inline const char* key_job_id(const char* key) noexcept nogil:
    return key + JOB_ID_AT


cdef inline void state_prefix(char* out, const char* scope, uint8_t state) noexcept nogil:
    """Write the STATE_PREFIX_BYTES that the keys of all jobs of one scope and state begin with."""
    memcpy(out, scope, SCOPE_BYTES)
    out[STATE_AT] = <char>state


cdef inline size_t prefix_successor(char* prefix, size_t n) noexcept nogil:
    """Turn a prefix into the least string that is greater than all that begin with it; return its length.

    0 means that there is none: the prefix was all 0xFF, or empty.
    """
    while n > 0 and <uint8_t>prefix[n - 1] == 0xFF:
        n -= 1
    if n > 0:
        prefix[n - 1] = <char>(<uint8_t>prefix[n - 1] + 1)
    return n


cdef inline void make_job_id(char* out, uint64_t created_at_us, uint64_t random) noexcept nogil:
    """Write a UUIDv7 that sorts as `created_at_us` does; the low 62 bits of `random` fill its tail."""
    cdef uint64_t VERSION_7 = 0x7000
    cdef uint64_t VARIANT = <uint64_t>1 << 63
    cdef uint64_t RANDOM_BITS = ~(<uint64_t>3 << 62)
    put_be64(out, ((created_at_us // 1000) << 16) | VERSION_7 | (created_at_us % 1000))
    put_be64(out + 8, VARIANT | (random & RANDOM_BITS))


cdef inline void put_be64(char* out, uint64_t number) noexcept nogil:
    # Byte by byte: the compiler makes one swapped store of it, and no alignment or byte order is assumed.
    out[0] = <char>(number >> 56)
    out[1] = <char>(number >> 48)
    out[2] = <char>(number >> 40)
    out[3] = <char>(number >> 32)
    out[4] = <char>(number >> 24)
    out[5] = <char>(number >> 16)
    out[6] = <char>(number >> 8)
    out[7] = <char>number


cdef inline uint64_t get_be64(const char* data) noexcept nogil:
    return (
        <uint64_t><uint8_t>data[0] << 56
        | <uint64_t><uint8_t>data[1] << 48
        | <uint64_t><uint8_t>data[2] << 40
        | <uint64_t><uint8_t>data[3] << 32
        | <uint64_t><uint8_t>data[4] << 24
        | <uint64_t><uint8_t>data[5] << 16
        | <uint64_t><uint8_t>data[6] << 8
        | <uint64_t><uint8_t>data[7]
    )
