"""What may be asked of a job, and what comes of it: telha_queue/command.py without Python objects."""

from libc.stdint cimport int16_t, int64_t, uint64_t

from record cimport Bytes, NewEvent

cdef enum Verb:
    LEASE = 0
    EXTEND = 1
    CHECKPOINT = 2
    STATS = 3
    COMPLETE = 4
    FAIL = 5
    RELEASE = 6
    REAP = 7
    RETRY = 8
    RESTORE = 9
    CANCEL = 10
    EXPIRE = 11
    RESCHEDULE = 12
    PROGRESS = 13

cdef enum Cause:
    CAUSE_ERROR = 0
    CAUSE_TIMEOUT = 1
    CAUSE_CRASH = 2

cdef enum Refusal:
    APPLIED = 0
    LEASE_CONFLICT = 1
    INVALID_TRANSITION = 2
    NOT_DUE = 3

cdef struct Command:
    Verb verb
    Bytes worker_id
    uint64_t lease_generation
    int64_t ttl_us
    Bytes detail
    Bytes continuation
    bint retryable
    bint accept_late
    int64_t delay_us  # -1: what the verb has for it, no delay after a release, backoff after fail
    Cause cause
    int64_t not_before  # of reschedule: -1 keeps it, 0 takes it away
    int16_t priority  # likewise
    bint durable  # of checkpoint: into the slot that outlives the lease
    int64_t progress
    Bytes result
    int64_t result_bytes  # -1 for none
    Bytes result_aside  # of complete: the result if it stands in its own row; no rule looks at it

# The event of a move. `event.detail` may point into `digits`, so a Step stays where it was filled.
cdef struct Step:
    NewEvent event
    char[20] digits
