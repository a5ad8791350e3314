"""What the rules of transitions.pxd are made of: each does one thing to a job, or asks one thing of it."""

from libc.stdint cimport int64_t, uint64_t

from backoff cimport Policy, backoff_us, later_us
from command cimport APPLIED, Command, Step
from keys cimport COMPLETED, DEAD, LEASED, PENDING, State
from record cimport Bytes, View, nil, same, text


cdef inline bint is_expired(const View* job, int64_t now_us) noexcept nogil:
    """Whether it is too late to lease a job."""
    return 0 <= job.expires_at <= now_us


cdef inline bint will_expire(const View* job, int64_t now_us) noexcept nogil:
    # It is over before its gate opens.
    return is_expired(job, max(job.not_before, now_us))


cdef inline bint is_held(const View* job, const Command* command) noexcept nogil:
    # An expired lease is in force until the reaper or a new lease ends it.
    return (
        job.state == LEASED
        and job.lease_generation == command.lease_generation
        and same(job.worker_id, command.worker_id)
    )


cdef inline void prolong(View* job, const Command* command, int64_t now_us) noexcept nogil:
    # A ttl of 0 is the one of the lease. A record of an older writer has none; its deadline then stays.
    cdef int64_t ttl_us = command.ttl_us if command.ttl_us > 0 else max(job.lease_ttl_us, 0)
    job.lease_deadline = max(job.lease_deadline, later_us(now_us, ttl_us))


cdef inline void unlease(View* job, State state) noexcept nogil:
    job.state = state
    job.worker_id = nil()
    job.lease_deadline = -1
    job.lease_ttl_us = -1
    job.continuation = nil()


cdef inline void finish(View* job, const Command* command) noexcept nogil:
    unlease(job, COMPLETED)
    job.durable_continuation = nil()
    job.result = command.result
    job.result_bytes = command.result_bytes


cdef inline void gate(View* job, int64_t now_us, int64_t delay_us) noexcept nogil:
    unlease(job, PENDING)
    job.not_before = later_us(now_us, delay_us) if delay_us > 0 else -1


cdef inline void back_off(View* job, int64_t now_us, const Policy* policy) noexcept nogil:
    unlease(job, PENDING)
    job.not_before = later_us(now_us, backoff_us(policy, job.attempts))


cdef inline int bury(
    View* job, Step* moved, int64_t now_us, const char* reason, Bytes detail
) noexcept nogil:
    unlease(job, DEAD)
    job.not_before = -1
    job.dead_reason = text(reason)
    return log_event(moved, now_us, b"dead", detail)


cdef inline int give_up(View* job, Step* moved, int64_t now_us, const char* reason, Bytes detail) noexcept nogil:
    # A verb of its own ends the job, whose name is the event. Nobody may finish it late.
    unlease(job, DEAD)
    job.not_before = -1
    job.dead_reason = text(reason)
    job.reaped_worker_id = nil()
    return log_event(moved, now_us, reason, detail)


cdef inline int log_event(Step* moved, int64_t now_us, const char* transition, Bytes detail) noexcept nogil:
    moved.event.at = now_us
    moved.event.transition = text(transition)
    moved.event.detail = detail
    moved.event.prefix = nil()
    moved.event.suffix = nil()
    return APPLIED


cdef inline Bytes decimal_of(uint64_t number, char* digits) noexcept nogil:
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
