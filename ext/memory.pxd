"""What a store keeps in memory, as Cython sees it. All of it wants the store's mutex held."""

from libc.stdint cimport int64_t, uint64_t
from libcpp.string cimport string
from libcpp.vector cimport vector

from outcome cimport List, Outcome
from record cimport Bytes
from row cimport Row

cdef extern from "<mutex>" nogil:
    cdef cppclass Mutex "std::mutex":
        pass

    cdef cppclass Lock "std::unique_lock<std::mutex>":
        Lock() noexcept
        Lock(Mutex& mutex) noexcept
        void lock() noexcept
        void unlock() noexcept

cdef extern from "job_id.hpp" namespace "telha" nogil:
    cdef cppclass JobId:
        JobId() noexcept
        JobId(const char* bytes) noexcept

    JobId id_of_text "telha::JobId::of_text"(const string& text) noexcept

cdef extern from "job_table.hpp" namespace "telha" nogil:
    cdef enum Claim "telha::Claim":
        CLAIM_NONE "telha::Claim::kNone"
        CLAIM_LEASE "telha::Claim::kLease"
        CLAIM_OTHER "telha::Claim::kOther"

cdef extern from "claims.hpp" namespace "telha" nogil:
    cdef cppclass Claims:
        Claim of(const JobId& id) noexcept
        void take(const JobId& id, Claim why) noexcept
        void wait_for(Lock& lock, JobId id) noexcept
        size_t wait_and_take(Lock& lock, const vector[JobId]& ids) noexcept
        void give_back(const JobId& id) noexcept

cdef extern from "kinds.hpp" namespace "telha" nogil:
    enum:
        kMaxKinds

    cdef cppclass KindPattern:
        Bytes text
        bint is_exact

    cdef cppclass Kinds:
        Kinds() noexcept
        size_t count
        KindPattern* patterns

cdef extern from "due.hpp" namespace "telha" nogil:
    cdef cppclass DueHeap:
        void push(int64_t at_us, const char* key) noexcept
        const char* top(int64_t now_us) noexcept
        void pop() noexcept
        bint is_past_horizon(int64_t now_us) noexcept
        void clear() noexcept

cdef extern from "window.hpp" namespace "telha" nogil:
    cdef cppclass ReadyJob:
        const char* key "key.bytes"
        Row row

    cdef cppclass Window:
        Kinds kinds
        const char* scope() noexcept
        void offer(const Row& row, int64_t not_before_us, bint is_current) noexcept
        void add(const char* key, const Bytes& value, int64_t not_before_us) noexcept
        const ReadyJob* first(int64_t now_us) noexcept
        int64_t next_due_us() noexcept
        bint is_complete() noexcept
        const char* cursor() noexcept
        size_t cursor_size() noexcept
        void begin_scan() noexcept
        void end_scan(const char* last_order) noexcept
        void restart() noexcept

ctypedef Window* WindowPtr

cdef extern from "windows.hpp" namespace "telha" nogil:
    cdef cppclass Windows:
        Window* find(const char* scope, const Kinds& kinds) noexcept
        const vector[WindowPtr]* of(const char* scope) noexcept
        void count(Window* window) noexcept
        void trim() noexcept
        void withdraw(const char* key) noexcept

cdef extern from "known_scopes.hpp" namespace "telha" nogil:
    cdef cppclass KnownScopes:
        bint is_complete() noexcept
        void set_complete() noexcept
        void add(const char* scope) noexcept
        void copy_to(List[string]* out) noexcept

cdef extern from "leased.hpp" namespace "telha" nogil:
    cdef cppclass LeasedRows:
        void put(const Row& row) noexcept
        void forget(const char* job_id) noexcept
        Row find(const char* job_id) noexcept

cdef extern from "waiters.hpp" namespace "telha" nogil:
    cdef cppclass Waiter:
        Waiter() noexcept
        const char* scope
        const void* kinds
        const char* job_id
        Waiter* next

    cdef cppclass EndWaiters:
        uint64_t ticket(const char* job_id) noexcept
        void announce(const char* job_id) noexcept
        bint sleep(Lock& lock, Waiter* self, uint64_t held_ticket, int64_t timeout_us) noexcept

    cdef cppclass Waiters:
        EndWaiters ends
        uint64_t ticket(const char* scope) noexcept
        void announce(const char* scope) noexcept
        Waiter* first() noexcept
        void wake(Waiter* waiter) noexcept
        void wake_all() noexcept
        bint sleep(Lock& lock, Waiter* self, uint64_t held_ticket, int64_t timeout_us) noexcept

cdef extern from "taken.hpp" namespace "telha" nogil:
    cdef cppclass Taken:
        Taken() noexcept
        List[ReadyJob] picked
        size_t done
        List[Outcome] left
        List[size_t] gone
        int64_t room_bytes
        bint is_full
        bint is_blocked
