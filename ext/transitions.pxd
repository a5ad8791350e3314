"""The state machine, compiled: telha_queue/transitions.py without Python objects, held equal to it by a test.

    step(record, command, now_us, policy) -> the record after the move and its event, or a Refusal

Pure: no clock, no I/O, no key, no allocation. A function per verb; each works on a copy that `step` has made.
"""

from libc.stdint cimport UINT64_MAX, int64_t, uint8_t, uint64_t
from libcpp.string cimport string

from backoff cimport Policy, later_us, lose_attempt, reason_to_die
from command cimport (
    APPLIED,
    CANCEL,
    CAUSE_CRASH,
    CAUSE_TIMEOUT,
    CHECKPOINT,
    COMPLETE,
    EXPIRE,
    EXTEND,
    FAIL,
    INVALID_TRANSITION,
    LEASE,
    LEASE_CONFLICT,
    NOT_DUE,
    PROGRESS,
    REAP,
    RELEASE,
    RESCHEDULE,
    RESTORE,
    STATS,
    Command,
    Step,
)
from effects cimport (
    back_off,
    bury,
    decimal_of,
    finish,
    gate,
    give_up,
    is_expired,
    is_held,
    log_event,
    prolong,
    unlease,
    will_expire,
)
from keys cimport DEAD, LEASED, PENDING
from record cimport Bytes, NewEvent, View, encode, nil, same, text


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
    if command.verb == PROGRESS:
        return _progress(after, command, now_us, moved)
    if command.verb == REAP:
        return _reap(after, now_us, policy, moved)
    if command.verb == RESTORE:
        return _restore(after, now_us, moved)
    if command.verb == CANCEL:
        return _cancel(after, command, now_us, moved)
    if command.verb == EXPIRE:
        return _expire(after, now_us, moved)
    if command.verb == RESCHEDULE:
        return _reschedule(after, command, now_us, moved)
    return _retry(after, now_us, moved)


cdef inline int _lease(
    View* job, const Command* command, int64_t now_us, const Policy* policy, Step* moved
) noexcept nogil:
    if job.state != PENDING or job.lease_generation == UINT64_MAX:
        return INVALID_TRANSITION
    if job.not_before > now_us or is_expired(job, now_us):
        return NOT_DUE
    job.state = LEASED
    job.lease_generation = max(job.lease_generation + 1, policy.generation_floor)
    job.worker_id = command.worker_id
    job.lease_deadline = later_us(now_us, command.ttl_us)
    job.lease_ttl_us = command.ttl_us
    job.not_before = -1
    job.continuation = nil()
    job.reaped_worker_id = nil()
    job.progress = -1
    job.progress_text = nil()
    return log_event(moved, now_us, b"leased", command.worker_id)


cdef inline int _extend(View* job, const Command* command, int64_t now_us, Step* moved) noexcept nogil:
    if not is_held(job, command):
        return LEASE_CONFLICT
    prolong(job, command, now_us)
    return log_event(moved, now_us, b"extended", nil())


cdef inline int _checkpoint(View* job, const Command* command, int64_t now_us, Step* moved) noexcept nogil:
    if not is_held(job, command):
        return LEASE_CONFLICT
    prolong(job, command, now_us)
    log_event(moved, now_us, b"checkpoint", decimal_of(command.continuation.size, moved.digits))
    moved.event.suffix = text(b" bytes")
    if command.durable:
        job.durable_continuation = command.continuation
        moved.event.prefix = text(b"durable, ")
    else:
        job.continuation = command.continuation
    return APPLIED


cdef inline int _progress(View* job, const Command* command, int64_t now_us, Step* moved) noexcept nogil:
    if not is_held(job, command):
        return LEASE_CONFLICT
    prolong(job, command, now_us)
    job.progress = command.progress
    job.progress_text = command.detail
    return log_event(moved, now_us, b"extended", nil())


cdef inline int _stats(View* job, const Command* command, int64_t now_us, Step* moved) noexcept nogil:
    if not is_held(job, command):
        return LEASE_CONFLICT
    return log_event(moved, now_us, b"stats", command.detail)


cdef inline int _complete(
    View* job, const Command* command, int64_t now_us, const Policy* policy, Step* moved
) noexcept nogil:
    if is_held(job, command):
        finish(job, command)
        return log_event(moved, now_us, b"completed", nil())
    if not (
        command.accept_late
        and (job.state == PENDING or job.state == DEAD)
        and same(job.reaped_worker_id, command.worker_id)
        and job.lease_generation == command.lease_generation
        and job.lease_generation >= policy.generation_floor
    ):
        return LEASE_CONFLICT
    finish(job, command)
    job.not_before = -1
    job.dead_reason = nil()
    job.reaped_worker_id = nil()
    return log_event(moved, now_us, b"completed", text(b"late"))


cdef inline int _fail(
    View* job, const Command* command, int64_t now_us, const Policy* policy, Step* moved
) noexcept nogil:
    if not is_held(job, command):
        return LEASE_CONFLICT
    cdef bint has_crashed = command.cause == CAUSE_CRASH
    cdef const char* reason = b"not_retryable"
    lose_attempt(job, has_crashed)
    if command.retryable:
        reason = reason_to_die(job, has_crashed, policy)
    if reason != NULL and command.cause == CAUSE_TIMEOUT:
        reason = b"timeout"
    if reason != NULL:
        return bury(job, moved, now_us, reason, command.detail)
    if command.delay_us < 0:
        back_off(job, now_us, policy)
    else:
        gate(job, now_us, command.delay_us)
    if will_expire(job, now_us):
        return bury(job, moved, now_us, b"expired", command.detail)
    return log_event(moved, now_us, b"failed", command.detail)


cdef inline int _release(View* job, const Command* command, int64_t now_us, Step* moved) noexcept nogil:
    if not is_held(job, command):
        return LEASE_CONFLICT
    gate(job, now_us, command.delay_us)
    if will_expire(job, now_us):
        return bury(job, moved, now_us, b"expired", nil())
    return log_event(moved, now_us, b"released", nil())


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
        back_off(job, now_us, policy)
        if not will_expire(job, now_us):
            return log_event(moved, now_us, b"reaped", worker_id)
        reason = b"expired"
    bury(job, moved, now_us, reason, worker_id)
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
    if is_expired(job, now_us):
        job.expires_at = -1  # whoever retries it wants it done nevertheless
    return log_event(moved, now_us, b"retried", nil())


cdef inline int _restore(View* job, int64_t now_us, Step* moved) noexcept nogil:
    cdef Bytes worker_id = job.worker_id
    if job.state != LEASED:
        return INVALID_TRANSITION
    unlease(job, PENDING)
    return log_event(moved, now_us, b"restored", worker_id)


cdef inline int _cancel(View* job, const Command* command, int64_t now_us, Step* moved) noexcept nogil:
    if job.state != PENDING and job.state != LEASED:
        return INVALID_TRANSITION
    return give_up(job, moved, now_us, b"cancelled", command.detail)


cdef inline int _expire(View* job, int64_t now_us, Step* moved) noexcept nogil:
    if job.state != PENDING:
        return INVALID_TRANSITION
    if not is_expired(job, now_us):
        return NOT_DUE
    return give_up(job, moved, now_us, b"expired", nil())


cdef inline int _reschedule(View* job, const Command* command, int64_t now_us, Step* moved) noexcept nogil:
    if job.state != PENDING:
        return INVALID_TRANSITION
    if command.priority >= 0:
        job.priority = <uint8_t>command.priority
        job.head = nil()  # in which it is stored
    if command.not_before >= 0:
        job.not_before = command.not_before if command.not_before > 0 else -1
    return log_event(moved, now_us, b"rescheduled", command.detail)
