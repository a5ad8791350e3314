"""Jobs that a lease picked and that are not where a window knew them."""

from libc.string cimport memcmp

from keys cimport JOB_ID_AT, JOB_ID_BYTES, PENDING, key_state
from lookup cimport find_claimed
from memory cimport ReadyJob, Taken
from outcome cimport List, Outcome
from record cimport View
from store cimport Store, view_row


cdef inline void find_gone(Store* store, Taken* taken, List[Outcome]* out) noexcept nogil:
    """Look for the jobs that are not where a window knew them, to tell of those that wait elsewhere in line.

    A gate is kept under the key that the job had. When it has another priority by then, the window meets the job at
    its new place too, maybe in another call, which leaves it to this one because this one has the claim.
    """
    cdef const ReadyJob* picked
    cdef Outcome found
    cdef View job
    cdef size_t i
    for i in range(taken.gone.size()):
        picked = taken.picked.at(taken.gone.at(i)[0])
        if _is_leased(out, picked.key + JOB_ID_AT):
            continue
        if find_claimed(store, NULL, picked.key + JOB_ID_AT, NULL, PENDING, &found.row).ok():
            if key_state(found.row.key()) == PENDING and view_row(found.row.key(), found.row.value(), &job).ok():
                found.due_us = job.not_before
                taken.left.add()[0] = found


cdef inline bint _is_leased(List[Outcome]* out, const char* job_id) noexcept nogil:
    """Whether the call has leased that job."""
    cdef size_t i
    for i in range(out.size()):
        if memcmp(out.at(i).row.job_id(), job_id, JOB_ID_BYTES) == 0:
            return True
    return False


cdef inline bint is_picked(Taken* taken, const char* job_id) noexcept nogil:
    """Whether the call has picked that job before, under another key."""
    cdef size_t i
    for i in range(taken.picked.size() - 1):
        if memcmp(taken.picked.at(i).key + JOB_ID_AT, job_id, JOB_ID_BYTES) == 0:
            return True
    return False
