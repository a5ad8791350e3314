"""From what the core found to the result types of telha_queue/engine.py, but for records. Needs the GIL."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport uint64_t

from reap cimport Reaped
from store cimport List, ScopeName


cdef inline dict counts_of(const uint64_t* counted):
    """How many jobs are in each telha_queue.job.JobState."""
    from telha_queue.job import JobState

    return {state: counted[<int>state] for state in JobState}


cdef inline list scopes_of(List[ScopeName]* found):
    """The key of each scope and its name, which nobody has checked: None for an empty one."""
    cdef size_t i
    return [
        (
            PyBytes_FromStringAndSize(found.at(i).scope.data(), found.at(i).scope.size()),
            PyBytes_FromStringAndSize(found.at(i).name.data(), found.at(i).name.size()).decode(errors="replace")
            or None,
        )
        for i in range(found.size())
    ]


cdef inline object report_of(const Reaped* counts, list dead):
    """A telha_queue.job.ReapReport; `dead` has the records of those that died."""
    from telha_queue.job import DeadJob, ReapReport

    told = tuple([
        DeadJob(job.scope, job.job_id, job.kind, job.attempts, job.reaped_worker_id, job.dead_reason) for job in dead
    ])
    return ReapReport(counts.reclaimed, counts.dead, told, counts.corrupt)
