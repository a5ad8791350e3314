"""What verbs return, as Cython sees it: faults, outcomes, and lists of them."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libcpp.string cimport string
from libcpp.vector cimport vector

from rocksdb cimport Status
from row cimport Row

cdef extern from "fault.hpp" namespace "telha" nogil:
    cdef enum Code "telha::Code":
        CODE_OK "telha::Code::kOk"
        CODE_NOT_FOUND "telha::Code::kNotFound"
        CODE_LEASE_CONFLICT "telha::Code::kLeaseConflict"
        CODE_INVALID_TRANSITION "telha::Code::kInvalidTransition"
        CODE_CORRUPT "telha::Code::kCorrupt"
        CODE_UNSUPPORTED_VERSION "telha::Code::kUnsupportedVersion"
        CODE_CLOSED "telha::Code::kClosed"
        CODE_FORKED "telha::Code::kForked"
        CODE_FAILED "telha::Code::kFailed"
        CODE_STORAGE "telha::Code::kStorage"

    cdef cppclass Fault:
        Fault() noexcept
        Code code
        bint outcome_unknown
        uint8_t state
        uint64_t held
        const char* why
        Status status() noexcept
        bint ok() noexcept

    Fault fault_of "telha::Fault::of"(Code code) noexcept
    Fault fault_read "telha::Fault::read"(Status status) noexcept
    Fault fault_refused "telha::Fault::refused"(Code code, uint64_t held, uint8_t state) noexcept
    Fault fault_corrupt "telha::Fault::corrupt"(const char* why) noexcept

cdef extern from "rows.hpp" namespace "telha" nogil:
    cdef cppclass Outcome:
        Fault fault
        Row row
        Row before
        int64_t due_us
        bint is_written

    cdef cppclass ScopeName:
        string scope
        string name

    cdef cppclass List[Item]:
        size_t size() noexcept
        Item* at(size_t index) noexcept
        Item* data() noexcept
        Item* add() noexcept
        void resize(size_t size) noexcept
        void reserve(size_t size) noexcept
        void remove_last() noexcept
        void clear() noexcept
        vector[Item]& items() noexcept

    # The members of libcpp's string may raise, which no code without the GIL can do.
    void set_text(string* out, const char* data, size_t size) noexcept
    void sort_unique(List[string]* names) noexcept
    void append_text(string* out, const char* data, size_t size) noexcept
