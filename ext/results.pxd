"""From what the core found to the result types of telha_queue/engine.py. Needs the GIL."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport uint64_t

from faults cimport error_of
from outcome cimport List, Outcome, ScopeName
from reap cimport Reaped
from row cimport Row
from telha_queue._codec cimport JobRecord
from telha_queue._seam cimport Token


cdef inline JobRecord record_of(const Row& row, source):
    """The record of a row; `source` is the store that has its payload if that stands aside."""
    cdef JobRecord record = JobRecord.__new__(JobRecord)
    record._row = row
    record._source = source
    return record


cdef inline list records_of(List[Outcome]* out, source):
    """The records of outcomes that are all fine."""
    cdef size_t i
    return [record_of(out.at(i).row, source) for i in range(out.size())]


cdef inline list outcomes_of(List[Outcome]* out, list tokens, source):
    """One record or error each. `tokens` has who asked for what, or is None."""
    cdef list outcomes = []
    cdef size_t i
    for i in range(out.size()):
        if out.at(i).fault.ok():
            outcomes.append(record_of(out.at(i).row, source))
        else:
            outcomes.append(refusal_of(out.at(i), None if tokens is None else tokens[i]))
    return outcomes


cdef inline object refusal_of(Outcome* outcome, Token token):
    """The error of one outcome, with who asked for it if that is known."""
    if token is None:
        return error_of(&outcome.fault, None, 0)
    return error_of(&outcome.fault, token.job_id, token.lease_generation)


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
    return ReapReport(counts.reclaimed, counts.dead, told, counts.corrupt, counts.expired)
