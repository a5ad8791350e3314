"""The state machine, compiled: telha_queue/transitions.py without Python objects, held equal to it by a test.

    step(record, command, now_us, policy) -> the record after the move and its event, or a Refusal

Pure: no clock, no I/O, no key, no allocation. A function per verb; each works on a copy that `step` has made.
"""

from libc.stdint cimport UINT64_MAX, int64_t, uint64_t
from libcpp.string cimport string

from backoff cimport Policy, backoff_us, later_us, lose_attempt, reason_to_die
from keys cimport COMPLETED, DEAD, LEASED, PENDING, State
from record cimport Bytes, NewEvent, View, encode, nil, same, text

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

# The event of a move. `event.detail` may point into `digits`, so a Step stays where it was filled.
cdef struct Step:
    NewEvent event
    char[20] digits


cdef inline int apply(
    const View* before, const Command* command, int64_t now_us, const Policy* policy, string* out
) noexcept nogil:
    """Step, and write the new record to `out`; on a refusal `out` is left as it is."""
    cdef View after
    cdef Step moved
    cdef int refusal = step(before, command, now_us, policy, &after, &moved)
    if refusal == APPLIED:
        encode(after, &moved.event, out)
    return refusal


cdef inline int step(
    const View* before, const Command* command, int64_t now_us, const Policy* policy, View* after, Step* moved
) noexcept nogil:
    """Apply one verb to one job. Spans of `after` and `moved` point into the old record and the command.

    Returns APPLIED, or the Refusal; then `after` and `moved` mean nothing. Times are not negative.
    """
    after[0] = before[0]
    if command.verb == LEASE:
        return _lease(after, command, now_us, policy, moved)
    if command.verb == EXTEND:
        return _extend(after, command, now_us, moved)
    if command.verb == CHECKPOINT:
        return _checkpoint(after, command, now_us, moved)
    if command.verb == STATS:
        return _stats(after, command, now_us, moved)
    if command.verb == COMPLETE:
        return _complete(after, command, now_us, policy, moved)
    if command.verb == FAIL:
        return _fail(after, command, now_us, policy, moved)
    if command.verb == RELEASE:
        return _release(after, command, now_us, moved)
    if command.verb == REAP:
        return _reap(after, now_us, policy, moved)
    if command.verb == RESTORE:
        return _restore(after, now_us, moved)
    return _retry(after, now_us, moved)


cdef inline int _lease(
    View* job, const Command* command, int64_t now_us, const Policy* policy, Step* moved
) noexcept nogil:
    if job.state != PENDING or job.lease_generation == UINT64_MAX:
        return INVALID_TRANSITION
    if job.not_before > now_us:
        return NOT_DUE
    job.state = LEASED
    job.lease_generation = max(job.lease_generation + 1, policy.generation_floor)
    job.worker_id = command.worker_id
    job.lease_deadline = later_us(now_us, command.ttl_us)
    job.lease_ttl_us = command.ttl_us
    job.not_before = -1
    job.continuation = nil()
    job.reaped_worker_id = nil()
    return _log(moved, now_us, b"leased", command.worker_id)


cdef inline int _extend(View* job, const Command* command, int64_t now_us, Step* moved) noexcept nogil:
    if not _is_held(job, command):
        return LEASE_CONFLICT
    _prolong(job, command, now_us)
    return _log(moved, now_us, b"extended", nil())


cdef inline int _checkpoint(View* job, const Command* command, int64_t now_us, Step* moved) noexcept nogil:
    if not _is_held(job, command):
        return LEASE_CONFLICT
    _prolong(job, command, now_us)
    job.continuation = command.continuation
    _log(moved, now_us, b"checkpoint", _decimal(command.continuation.size, moved.digits))
    moved.event.suffix = text(b" bytes")
    return APPLIED


cdef inline int _stats(View* job, const Command* command, int64_t now_us, Step* moved) noexcept nogil:
    if not _is_held(job, command):
        return LEASE_CONFLICT
    return _log(moved, now_us, b"stats", command.detail)


cdef inline int _complete(
    View* job, const Command* command, int64_t now_us, const Policy* policy, Step* moved
) noexcept nogil:
    if _is_held(job, command):
        _unlease(job, COMPLETED)
        return _log(moved, now_us, b"completed", nil())
    if not (
        command.accept_late
        and (job.state == PENDING or job.state == DEAD)
        and same(job.reaped_worker_id, command.worker_id)
        and job.lease_generation == command.lease_generation
        and job.lease_generation >= policy.generation_floor
    ):
        return LEASE_CONFLICT
    _unlease(job, COMPLETED)
    job.not_before = -1
    job.dead_reason = nil()
    job.reaped_worker_id = nil()
    return _log(moved, now_us, b"completed", text(b"late"))


cdef inline int _fail(
    View* job, const Command* command, int64_t now_us, const Policy* policy, Step* moved
) noexcept nogil:
    if not _is_held(job, command):
        return LEASE_CONFLICT
    cdef bint has_crashed = command.cause == CAUSE_CRASH
    cdef const char* reason = b"not_retryable"
    lose_attempt(job, has_crashed)
    if command.retryable:
        reason = reason_to_die(job, has_crashed, policy)
    if reason != NULL and command.cause == CAUSE_TIMEOUT:
        reason = b"timeout"
    if reason != NULL:
        return _bury(job, moved, now_us, reason, command.detail)
    if command.delay_us < 0:
        _back_off(job, now_us, policy)
    else:
        _gate(job, now_us, command.delay_us)
    return _log(moved, now_us, b"failed", command.detail)


cdef inline int _release(View* job, const Command* command, int64_t now_us, Step* moved) noexcept nogil:
    if not _is_held(job, command):
        return LEASE_CONFLICT
    _gate(job, now_us, command.delay_us)
    return _log(moved, now_us, b"released", nil())


cdef inline int _reap(View* job, int64_t now_us, const Policy* policy, Step* moved) noexcept nogil:
    cdef Bytes worker_id = job.worker_id
    cdef const char* reason
    if job.state != LEASED or job.lease_deadline < 0:
        return INVALID_TRANSITION
    if later_us(job.lease_deadline, policy.lease_grace_us) > now_us:
        return NOT_DUE
    lose_attempt(job, True)
    job.reaped_worker_id = worker_id
    reason = reason_to_die(job, True, policy)
    if reason == NULL:
        _back_off(job, now_us, policy)
        return _log(moved, now_us, b"reaped", worker_id)
    _bury(job, moved, now_us, reason, worker_id)
    moved.event.prefix = text(b"lease of ")
    moved.event.suffix = text(b" expired")
    return APPLIED


cdef inline int _retry(View* job, int64_t now_us, Step* moved) noexcept nogil:
    if job.state != DEAD:
        return INVALID_TRANSITION
    job.state = PENDING
    job.attempts = 0
    job.crashes = 0
    job.not_before = -1
    job.dead_reason = nil()
    job.reaped_worker_id = nil()
    return _log(moved, now_us, b"retried", nil())


cdef inline int _restore(View* job, int64_t now_us, Step* moved) noexcept nogil:
    cdef Bytes worker_id = job.worker_id
    if job.state != LEASED:
        return INVALID_TRANSITION
    _unlease(job, PENDING)
    return _log(moved, now_us, b"restored", worker_id)


cdef inline bint _is_held(const View* job, const Command* command) noexcept nogil:
    # An expired lease is in force until the reaper or a new lease ends it.
    return (
        job.state == LEASED
        and job.lease_generation == command.lease_generation
        and same(job.worker_id, command.worker_id)
    )


cdef inline void _prolong(View* job, const Command* command, int64_t now_us) noexcept nogil:
    # A ttl of 0 is the one of the lease. A record of an older writer has none; its deadline then stays.
    cdef int64_t ttl_us = command.ttl_us if command.ttl_us > 0 else max(job.lease_ttl_us, 0)
    job.lease_deadline = max(job.lease_deadline, later_us(now_us, ttl_us))


cdef inline void _unlease(View* job, State state) noexcept nogil:
    job.state = state
    job.worker_id = nil()
    job.lease_deadline = -1
    job.lease_ttl_us = -1
    job.continuation = nil()


cdef inline void _gate(View* job, int64_t now_us, int64_t delay_us) noexcept nogil:
    _unlease(job, PENDING)
    job.not_before = later_us(now_us, delay_us) if delay_us > 0 else -1


cdef inline void _back_off(View* job, int64_t now_us, const Policy* policy) noexcept nogil:
    _unlease(job, PENDING)
    job.not_before = later_us(now_us, backoff_us(policy, job.attempts))


cdef inline int _bury(
    View* job, Step* moved, int64_t now_us, const char* reason, Bytes detail
) noexcept nogil:
    _unlease(job, DEAD)
    job.dead_reason = text(reason)
    return _log(moved, now_us, b"dead", detail)


cdef inline int _log(Step* moved, int64_t now_us, const char* transition, Bytes detail) noexcept nogil:
    moved.event.at = now_us
    moved.event.transition = text(transition)
    moved.event.detail = detail
    moved.event.prefix = nil()
    moved.event.suffix = nil()
    return APPLIED


cdef inline Bytes _decimal(uint64_t number, char* digits) noexcept nogil:
    """Write a number as text to the end of the 20 bytes at `digits`, which hold any uint64."""
    cdef Bytes decimal
    cdef size_t at = 20
    while True:
        at -= 1
        digits[at] = <char>(48 + number % 10)
        number //= 10
        if number == 0:
            break
    decimal.data = digits + at
    decimal.size = 20 - at
    return decimal
