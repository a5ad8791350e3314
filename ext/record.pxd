"""The record codec, as Cython sees it. record.hpp says what each part promises."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libcpp.string cimport string

cdef extern from "bytes.hpp" namespace "telha" nogil:
    ctypedef struct Bytes:
        const char* data
        size_t size

    bint is_nil(const Bytes& bytes) noexcept
    bint is_printable_ascii(const Bytes& text) noexcept
    bint same(const Bytes& left, const Bytes& right) noexcept
    Bytes nil() noexcept
    Bytes text(const char* literal) noexcept

cdef extern from "record.hpp" namespace "telha::record" nogil:
    enum:
        kMaxKindBytes
        kWholeProgress

    ctypedef struct NewEvent:
        int64_t at
        Bytes transition
        Bytes detail
        Bytes prefix
        Bytes suffix

    cdef cppclass View:
        View() noexcept
        Bytes head
        Bytes job_id
        Bytes kind
        Bytes payload
        Bytes worker_id
        Bytes idempotency_key
        Bytes continuation
        Bytes events
        Bytes last_event
        Bytes dead_reason
        Bytes reaped_worker_id
        Bytes headers
        Bytes progress_text
        Bytes durable_continuation
        Bytes result
        Bytes extra
        uint64_t created_at
        uint64_t lease_generation
        uint64_t payload_bytes
        uint64_t events_dropped
        uint64_t detail_bytes
        int64_t lease_deadline
        int64_t not_before
        int64_t max_attempts
        int64_t lease_ttl_us
        int64_t expires_at
        int64_t progress
        int64_t result_bytes
        uint32_t attempts
        uint32_t crashes
        uint32_t events_count
        uint32_t extra_count
        uint8_t priority
        uint8_t state

    ctypedef enum Decoded:
        kOk
        kCorrupt
        kUnsupportedVersion

    Decoded decode(const char* data, size_t size, View* out, const char** why) noexcept
    void encode(const View& view, const NewEvent* appended, string* out) noexcept
    void read_holder(const Bytes& record, Bytes* worker_id, uint64_t* lease_generation) noexcept
    Bytes kind_of(const Bytes& record) noexcept
    bint has_result_aside(const View& view) noexcept
    bint matches_key(const View& view, const char* key) noexcept
