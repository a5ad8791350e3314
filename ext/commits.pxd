"""Transactions and a program's own rows as Python calls them: converted, done with the GIL released. Needs the GIL."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t
from libcpp.string cimport string

from arguments cimport read_command
from convert cimport bytes_of, bytes_or_null, read_new_job, read_result
from enqueue cimport NewJob as CoreJob
from faults cimport error_of, raise_for
from keys cimport JOB_ID_BYTES, SCOPE_BYTES
from move cimport Move
from outcome cimport CODE_NOT_FOUND, Fault, List, Outcome
from record cimport Bytes, nil
from results cimport records_of
from rocksdb cimport PinnableSlice
from store cimport Store, Visit
from transact cimport Group, Put, Work, get_data, scan_data, transact


cdef inline tuple call_transact(Store* store, changes, groups, puts, int64_t now_us, source):
    """The records of the changed jobs and of those of each group, as telha_queue.engine.Engine.transact says."""
    cdef Work work
    cdef List[Move] c_moves
    cdef List[CoreJob] c_jobs
    cdef List[Group] c_groups
    cdef List[Put] c_puts
    cdef List[Outcome] moved
    cdef List[List[Outcome]] stored
    cdef Fault fault
    cdef size_t i
    for scope, job_id, command, result in changes:
        _read_change(scope, job_id, command, result, c_moves.add())
    for scope, jobs in groups:
        _read_group(scope, jobs, &c_jobs, c_groups.add())
    for key, value in puts:
        _read_put(key, value, c_puts.add())
    work.moves, work.moves_count = c_moves.data(), c_moves.size()
    work.jobs = c_jobs.data()
    work.groups, work.groups_count = c_groups.data(), c_groups.size()
    work.puts, work.puts_count = c_puts.data(), c_puts.size()
    with nogil:
        store.take_turn()
        fault = transact(store, &work, now_us, &moved, &stored)
    store.give_turn_back()
    raise_for(&fault)
    for i in range(moved.size()):
        if not moved.at(i).fault.ok():
            raise error_of(
                &moved.at(i).fault,
                changes[i].job_id,
                changes[i].command.lease_generation,
                None,
                None,
                c_moves.at(i).command.verb,
            )
    return records_of(&moved, source), [records_of(stored.at(i), source) for i in range(stored.size())]


cdef inline int _read_change(bytes scope, bytes job_id, command, bytes result, Move* out) except -1:
    out.scope = bytes_or_null(scope, SCOPE_BYTES)
    out.job_id = bytes_or_null(job_id, JOB_ID_BYTES)
    out.known_key = NULL
    out.command.result_aside = nil()
    read_command(command, &out.command)
    return read_result(result, &out.command)


cdef inline int _read_group(bytes scope, list jobs, List[CoreJob]* c_jobs, Group* out) except -1:
    out.scope = bytes_or_null(scope, SCOPE_BYTES)
    out.first = c_jobs.size()
    out.count = len(jobs)
    for job in jobs:
        read_new_job(job, c_jobs.add())
    return 0


cdef inline int _read_put(bytes key, bytes value, Put* out) except -1:
    out.key = bytes_of(key)
    out.value = nil() if value is None else bytes_of(value)
    return 0


cdef inline bytes call_data_get(Store* store, bytes key):
    """The value of a row, or None."""
    cdef Visit visit  # outlives the value, which may pin a block of the store
    cdef PinnableSlice value
    cdef Bytes c_key = bytes_of(key)
    cdef Fault fault
    with nogil:
        fault = get_data(store, &visit, c_key, &value)
    if fault.code == CODE_NOT_FOUND:
        return None
    raise_for(&fault)
    return PyBytes_FromStringAndSize(value.data(), value.size())


cdef inline list call_data_scan(Store* store, bytes prefix, bytes after, size_t limit, size_t max_bytes):
    """Keys and values of rows, in key order."""
    cdef List[string] found
    cdef Bytes c_prefix = bytes_of(prefix)
    cdef Bytes c_after = bytes_of(after)
    cdef Fault fault
    cdef size_t i
    with nogil:
        fault = scan_data(store, c_prefix, c_after, limit, max_bytes, &found)
    raise_for(&fault)
    return [
        (
            PyBytes_FromStringAndSize(found.at(2 * i).data(), found.at(2 * i).size()),
            PyBytes_FromStringAndSize(found.at(2 * i + 1).data(), found.at(2 * i + 1).size()),
        )
        for i in range(found.size() // 2)
    ]
