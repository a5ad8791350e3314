"""The keeper of leases, as Cython sees it. keeper.hpp says the rest."""

from libc.stdint cimport int64_t, uint64_t
from libcpp cimport bool
from libcpp.vector cimport vector

from record cimport Bytes

cdef extern from "hold.hpp" namespace "telha" nogil:
    cdef enum Renewed "telha::Renewed":
        RENEWED_KEPT "telha::Renewed::kKept"
        RENEWED_LOST "telha::Renewed::kLost"
        RENEWED_COMPLETED "telha::Renewed::kCompleted"
        RENEWED_FAILED "telha::Renewed::kFailed"

    cdef cppclass Renewal:
        const char* scope
        const char* job_id
        const char* known_key
        Bytes worker_id
        uint64_t lease_generation
        Renewed renewed
        int64_t deadline_us
        int64_t ttl_us

    cdef enum Over "telha::Over":
        pass

    cdef cppclass Hold:
        Over over() noexcept
        void progress() noexcept
        void* face

    cdef cppclass Held:
        Held() noexcept
        Hold* get() noexcept

    Held make_hold(const Renewal& lease, int64_t timeout_us, int64_t progress_us) noexcept

cdef extern from "keeper.hpp" namespace "telha" nogil:
    enum:
        KEEPER_CLOSED "telha::Keeper::kClosed"

    cdef cppclass Renewer:
        void* store
        bool (*renew)(void* store, Renewal* renewals, size_t count, int64_t now_us) noexcept nogil
        int64_t (*seen_us)(void* store) noexcept nogil

    cdef cppclass Keeper:
        Keeper(const Renewer& renewer, int64_t now_us) noexcept
        bint is_forked() noexcept
        int hold(const Held* holds, size_t count) noexcept
        void end(const Held& held) noexcept
        bint wait(int64_t timeout_us, vector[Held]* found) noexcept
        void close() noexcept
