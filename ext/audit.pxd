"""A check of a store, as Cython sees it, and how it finds a job by its id. audit.hpp says what each part is."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libcpp.string cimport string
from libcpp.vector cimport vector

from keys cimport COMPLETED, DEAD, FAILED, JOB_ID_BYTES, KEY_BYTES, LEASED, PENDING, SCOPE_BYTES, State
from keys cimport encode_key, get_be64, patch_state
from lookup cimport ID_ROW_BYTES
from memory cimport JobId
from outcome cimport CODE_NOT_FOUND, Fault, fault_of
from rocksdb cimport PinnableSlice, Slice, Snapshot
from store cimport IDS, JOBS, Family, Store

cdef extern from "findings.hpp" namespace "telha" nogil:
    cdef enum Found "telha::Found":
        JOB_KEY "telha::Found::kJobKey"
        JOB_RECORD "telha::Found::kJobRecord"
        JOB_VERSION "telha::Found::kJobVersion"
        JOB_TWICE "telha::Found::kJobTwice"
        JOB_TIME "telha::Found::kJobTime"
        ID_MISSING "telha::Found::kIdMissing"
        ID_WRONG "telha::Found::kIdWrong"
        ID_ORPHAN "telha::Found::kIdOrphan"
        KEY_MISSING "telha::Found::kKeyMissing"
        KEY_WRONG "telha::Found::kKeyWrong"
        KEY_SHARED "telha::Found::kKeyShared"
        KEY_ORPHAN "telha::Found::kKeyOrphan"
        PAYLOAD_MISSING "telha::Found::kPayloadMissing"
        PAYLOAD_WRONG "telha::Found::kPayloadWrong"
        PAYLOAD_ORPHAN "telha::Found::kPayloadOrphan"
        EXPIRY_MISSING "telha::Found::kExpiryMissing"
        EXPIRY_ORPHAN "telha::Found::kExpiryOrphan"
        RESULT_MISSING "telha::Found::kResultMissing"
        RESULT_WRONG "telha::Found::kResultWrong"
        RESULT_ORPHAN "telha::Found::kResultOrphan"
        CLOCK_WRONG "telha::Found::kClockWrong"
        FLOOR_WRONG "telha::Found::kFloorWrong"
        FOUND_COUNT "telha::Found::kCount"

    cdef cppclass Finding:
        Found kind
        string row
        string scope
        string job_id
        const char* detail

    cdef cppclass Findings:
        void mend(Found kind) noexcept
        uint64_t found(Found kind) noexcept
        uint64_t mended(Found kind) noexcept
        size_t listed() noexcept
        const Finding& at(size_t i) noexcept

    cdef cppclass FewIds:
        void add(const JobId& id) noexcept
        bint has(const JobId& id) noexcept
        bint is_full() noexcept

cdef extern from "survey.hpp" namespace "telha" nogil:
    cdef cppclass Survey:
        void begin(Store* store) noexcept
        void end() noexcept
        const Snapshot* moment() noexcept
        Fault get(Family family, const Slice& key, PinnableSlice* out) noexcept

cdef extern from "audit.hpp" namespace "telha" nogil:
    cdef cppclass Mend:
        string key
        Found id
        Found named
        string name
        string seen
        int64_t expires_at

    cdef cppclass Drop:
        Family family
        string key

    cdef cppclass Audit:
        Audit() noexcept
        bint is_repairing
        bint is_partial
        bint has_mended
        uint64_t jobs
        uint64_t ids
        uint64_t names
        uint64_t payloads
        uint64_t expiries
        uint64_t results
        Survey survey
        Findings findings
        FewIds lost_ids
        FewIds lost_names
        vector[Mend] mends
        vector[Drop] drops
        void reset() noexcept
        void add(Found kind, const Slice& row, const char* scope, const char* job_id, const char* detail) noexcept
        void drop(Found kind, Family family, const Slice& key) noexcept
        Mend* mend(const Slice& key) noexcept
        bint knows_jobs() noexcept
        bint knows_names() noexcept

    enum:
        MAX_PENDING "telha::Audit::kMaxPending"


cdef inline Fault find_in(Audit* audit, const char* job_id, char* key, PinnableSlice* row) noexcept nogil:
    """The job that an id leads to, its key and its row; CODE_NOT_FOUND when it leads to none."""
    cdef PinnableSlice stored
    cdef Fault fault = audit.survey.get(IDS, Slice(job_id, JOB_ID_BYTES), &stored)
    if fault.ok():
        fault = find_at(audit, stored, job_id, key, row)
    return fault


cdef inline Fault find_at(
    Audit* audit, const Slice& id_row, const char* job_id, char* key, PinnableSlice* row
) noexcept nogil:
    """The same from a row of the ids family that has been read; the job may be in any state."""
    cdef State[5] states
    cdef const char* place = id_row.data()
    cdef Fault fault = fault_of(CODE_NOT_FOUND)
    cdef int i
    if id_row.size() != ID_ROW_BYTES:
        return fault
    states[0], states[1], states[2], states[3], states[4] = COMPLETED, PENDING, LEASED, DEAD, FAILED
    encode_key(key, place, PENDING, <uint8_t>place[SCOPE_BYTES], get_be64(place + SCOPE_BYTES + 1), job_id)
    for i in range(5):
        patch_state(key, <uint8_t>states[i])
        fault = audit.survey.get(JOBS, Slice(key, KEY_BYTES), row)
        if fault.code != CODE_NOT_FOUND:
            break
    return fault
