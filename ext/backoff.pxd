"""What the settings say for a job, and the arithmetic of times and counts, which stops at its ends and never wraps."""

from libc.stdint cimport INT64_MAX, UINT32_MAX, UINT64_MAX, int64_t, uint32_t, uint64_t

from record cimport View

cdef extern from *:
    # Multiplies; true when the product does not fit. A division to guard it would have to be guarded itself.
    bint overflows "__builtin_mul_overflow"(uint64_t, uint64_t, uint64_t* product) noexcept nogil

cdef struct Policy:
    uint64_t max_attempts
    int64_t lease_grace_us
    uint64_t backoff_base_secs
    uint64_t backoff_factor
    uint64_t backoff_cap_secs
    uint64_t max_crashes
    uint64_t generation_floor


cdef inline int64_t backoff_us(const Policy* policy, uint32_t attempts) noexcept nogil:
    """Delay before attempt `attempts` + 1: base * factor^(attempts - 1), at most the cap; never overflows."""
    cdef uint64_t secs = policy.backoff_base_secs
    cdef uint32_t left = attempts
    if left > 65:
        left = 65  # by the 64th multiplication it has passed every cap, or never will
    while left > 1:
        if overflows(secs, policy.backoff_factor, &secs):
            secs = UINT64_MAX
            break
        left -= 1
    if secs > policy.backoff_cap_secs:
        secs = policy.backoff_cap_secs
    if overflows(secs, 1_000_000, &secs) or secs > <uint64_t>INT64_MAX:
        return INT64_MAX
    return <int64_t>secs


cdef inline const char* reason_to_die(const View* job, bint has_crashed, const Policy* policy) noexcept nogil:
    """Why a job that has just lost an attempt gets no other one; NULL when it does."""
    cdef uint64_t ceiling = policy.max_attempts if job.max_attempts < 0 else <uint64_t>job.max_attempts
    if has_crashed and policy.max_crashes > 0 and job.crashes >= policy.max_crashes:
        return b"poison"
    if job.attempts < ceiling:
        return NULL
    # Poison: not one attempt ever reported back, so the job itself is the likely killer of its workers.
    return b"poison" if has_crashed and job.crashes >= job.attempts else b"attempts"


cdef inline void lose_attempt(View* job, bint has_crashed) noexcept nogil:
    """Count a lost attempt, and its crash."""
    job.attempts = one_more(job.attempts)
    if has_crashed:
        job.crashes = one_more(job.crashes)


cdef inline int64_t later_us(int64_t at_us, int64_t span_us) noexcept nogil:
    return at_us + span_us if span_us <= INT64_MAX - at_us else INT64_MAX


cdef inline uint32_t one_more(uint32_t count) noexcept nogil:
    if count < UINT32_MAX:
        return count + 1
    return count
