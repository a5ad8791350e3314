"""The open store, as Cython sees it, and the small steps that every verb is made of. store.hpp says the rest."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libcpp.string cimport string

from backoff cimport Policy
from memory cimport Claims, DueHeap, KnownScopes, LeasedRows, Mutex, Waiters, Windows
from outcome cimport CODE_UNSUPPORTED_VERSION, Fault, fault_corrupt
from record cimport Bytes, View, decode, kOk, kUnsupportedVersion, matches_key
from rocksdb cimport DB, ColumnFamilyHandle, Slice, Snapshot, Status, WriteBatch
from row cimport Row

cdef extern from "settings.hpp" namespace "telha" nogil:
    cdef enum Durability "telha::Durability":
        pass

    cdef cppclass Settings:
        Durability durability
        int64_t group_sync_ms
        uint64_t memtable_bytes
        uint64_t block_cache_bytes
        uint64_t window_jobs
        int64_t max_attempts
        int64_t max_crashes
        int64_t lease_grace_us
        int64_t backoff_base_secs
        int64_t backoff_factor
        int64_t backoff_cap_secs
        void set_path(const char* data, size_t size) noexcept
        void add_kind_base(const char* kind, size_t size, int64_t base_secs) noexcept
        int64_t kind_base_secs(const char* kind, size_t size) noexcept

cdef extern from "database.hpp" namespace "telha" nogil:
    cdef enum Family "telha::Family":
        META "telha::Family::kMeta"
        JOBS "telha::Family::kJobs"
        IDS "telha::Family::kIds"
        IDEMPOTENCY "telha::Family::kIdempotency"
        PAYLOADS "telha::Family::kPayloads"
        RESULTS "telha::Family::kResults"
        EXPIRIES "telha::Family::kExpiries"
        DATA "telha::Family::kData"

    cdef cppclass Dropped:
        string damage
        uint64_t sequence_numbers

    cdef cppclass Database:
        DB* db() noexcept
        ColumnFamilyHandle* family(Family family) noexcept

cdef extern from "failure.hpp" namespace "telha" nogil:
    cdef cppclass Failure:
        bint is_set() noexcept
        Fault fault() noexcept

cdef extern from "owner_lock.hpp" namespace "telha" nogil:
    cdef cppclass OwnerLock:
        int acquire(const char* directory) noexcept
        const string& directory() noexcept
        int owner_pid() noexcept

cdef extern from "store.hpp" namespace "telha" nogil:
    cdef cppclass Corrupt "std::atomic<uint64_t>":
        uint64_t load() noexcept
        uint64_t fetch_add(uint64_t more) noexcept

    cdef cppclass Store:
        Store() noexcept
        OwnerLock owner
        Settings settings
        Database database
        Mutex reaping
        Mutex mending
        Mutex mutex
        Claims claims
        Waiters waiters
        KnownScopes scopes
        Windows windows
        LeasedRows leased
        DueHeap leases
        bint knows_leases
        uint64_t generation_floor
        uint64_t corrupt_leases
        Corrupt moves
        Corrupt corrupt_rows
        Dropped dropped
        Failure failure
        Fault open(bint recovers) noexcept
        Fault close() noexcept
        void take_turn() noexcept
        void give_turn_back() noexcept
        bint is_open() noexcept
        Fault commit(WriteBatch* batch) noexcept
        Fault flush() noexcept
        Fault reopen() noexcept
        void heal() noexcept
        uint64_t next_created_at(int64_t now_us) noexcept
        uint64_t random() noexcept
        uint64_t last_seen_us() noexcept
        int64_t see(int64_t now_us) noexcept
        void restore_clock(uint64_t last_created_at, uint64_t seen_us) noexcept

    size_t close_all_stores() noexcept

    cdef cppclass Visit:
        Visit() noexcept
        Fault enter(Store* store) noexcept

cdef extern from "cursor.hpp" namespace "telha" nogil:
    cdef cppclass Cursor:
        Cursor() noexcept
        void survey(Family family, const Snapshot* moment) noexcept
        void open(Store* store, const char* prefix, size_t size) noexcept
        void open_at(Store* store, const char* prefix, size_t size, const char* start, size_t start_size) noexcept
        void seek(const char* key, size_t size) noexcept
        bint is_on_row() noexcept
        void step() noexcept
        Slice key() noexcept
        Slice value() noexcept
        Fault fault() noexcept
        bint skip_scope(const char* scope, size_t size) noexcept

cdef extern from "fork.hpp" namespace "telha::fork" nogil:
    bint is_child() noexcept
    void skip_destructors() noexcept
    int watch() noexcept


cdef extern from "batches.hpp" namespace "telha" nogil:
    # An empty batch, the calling thread's own: valid until the thread asks for the next.
    WriteBatch* fresh_batch() noexcept


cdef inline Slice slice_of(const string& text) noexcept nogil:
    return Slice(text.data(), text.size())


cdef inline Bytes bytes_of(const Slice& slice) noexcept nogil:
    cdef Bytes span
    span.data = slice.data()
    span.size = slice.size()
    return span


cdef inline Slice slice_of_bytes(const Bytes& span) noexcept nogil:
    return Slice(span.data, span.size)


cdef inline Fault view_row(const char* key, const Bytes& value, View* out) noexcept nogil:
    """Take a row of the jobs family apart; its key has its right length."""
    cdef const char* why = NULL
    cdef int decoded = decode(value.data, value.size, out, &why)
    cdef Fault fault
    if decoded != kOk:
        fault = fault_corrupt(why)
        if decoded == kUnsupportedVersion:
            fault.code = CODE_UNSUPPORTED_VERSION
        return fault
    if not matches_key(out[0], key):
        return fault_corrupt(b"record and key disagree")
    return fault


cdef inline void policy_for(Store* store, Bytes kind, Policy* out) noexcept nogil:
    """What the settings say for a job of this kind; a kind with a base of its own has it as floor of its cap."""
    cdef int64_t base_secs = store.settings.kind_base_secs(kind.data, kind.size)
    cdef int64_t cap_secs = store.settings.backoff_cap_secs
    if base_secs < 0:
        base_secs = store.settings.backoff_base_secs
    else:
        cap_secs = max(base_secs, cap_secs)
    out.max_attempts = <uint64_t>store.settings.max_attempts
    out.lease_grace_us = store.settings.lease_grace_us
    out.backoff_base_secs = <uint64_t>base_secs
    out.backoff_factor = <uint64_t>store.settings.backoff_factor
    out.backoff_cap_secs = <uint64_t>cap_secs
    out.max_crashes = <uint64_t>store.settings.max_crashes
    out.generation_floor = store.generation_floor
