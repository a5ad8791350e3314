"""The verbs of maintenance, called with the GIL released, and their reports. Needs the GIL."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libcpp.string cimport string

from audit cimport Audit, Finding, Found
from convert cimport bytes_of
from faults cimport raise_for
from fence cimport Restored, checkpoint, fence, mark_copy
from fsck cimport fsck
from names cimport drop_name, list_names
from outcome cimport Fault, List, ScopeName, set_text
from record cimport Bytes
from store cimport Store

cdef extern from "crc32c.hpp" namespace "telha" nogil:
    uint32_t crc32c(const char* data, size_t size) noexcept


cdef inline object call_fsck(Store* store, bint is_repairing):
    """A telha_queue.upkeep.FsckReport."""
    from telha_queue.upkeep import FindingKind, FsckReport

    cdef Audit audit
    cdef Fault fault
    cdef size_t i
    with nogil:
        fault = fsck(store, is_repairing, &audit)
    raise_for(&fault)
    kinds = list(FindingKind)
    found = {kind: audit.findings.found(<Found><int>i) for i, kind in enumerate(kinds)}
    repaired = {kind: audit.findings.mended(<Found><int>i) for i, kind in enumerate(kinds)}
    listed = [_finding(&audit.findings.at(i), kinds) for i in range(audit.findings.listed())]
    return FsckReport(audit.jobs, _some(found), _some(repaired), tuple(listed), audit.is_partial)


cdef inline dict _some(dict counts):
    return {kind: count for kind, count in counts.items() if count}


cdef inline object _finding(const Finding* found, list kinds):
    from uuid import UUID

    from telha_queue.upkeep import Finding as PythonFinding

    scope = job_id = None
    if found.scope.size() > 0:
        scope = PyBytes_FromStringAndSize(found.scope.data(), found.scope.size())
    if found.job_id.size() > 0:
        job_id = UUID(bytes=PyBytes_FromStringAndSize(found.job_id.data(), found.job_id.size()))
    row = PyBytes_FromStringAndSize(found.row.data(), found.row.size())
    return PythonFinding(kinds[<int>found.kind], scope, job_id, row, found.detail.decode())


cdef inline list call_list_names(Store* store, bytes after, size_t limit):
    """Up to `limit` rows that hold names of scopes, behind the key `after`: key and value as they are stored."""
    cdef List[ScopeName] found
    cdef Bytes c_after = bytes_of(after)
    cdef Fault fault
    cdef size_t i
    with nogil:
        fault = list_names(store, c_after, limit, &found)
    raise_for(&fault)
    return [
        (
            PyBytes_FromStringAndSize(found.at(i).scope.data(), found.at(i).scope.size()),
            PyBytes_FromStringAndSize(found.at(i).name.data(), found.at(i).name.size()),
        )
        for i in range(found.size())
    ]


cdef inline int call_drop_name(Store* store, bytes key, bytes seen) except -1:
    cdef Bytes c_key = bytes_of(key)
    cdef Bytes c_seen = bytes_of(seen)
    cdef Fault fault
    with nogil:
        fault = drop_name(store, c_key, c_seen)
    return raise_for(&fault)


cdef inline uint64_t call_checkpoint(Store* store, bytes path) except? 0:
    """The sequence number up to which the copy has all rows."""
    cdef const char* c_path = PyBytes_AS_STRING(path)
    cdef uint64_t sequence = 0
    cdef Fault fault
    with nogil:
        fault = checkpoint(store, c_path, &sequence)
    raise_for(&fault)
    return sequence


cdef inline uint32_t call_crc32c(bytes data) noexcept:
    return crc32c(PyBytes_AS_STRING(data), len(data))


cdef inline int call_mark_copy(bytes path, uint64_t sequence) except -1:
    from os import strerror

    cdef string c_path
    cdef int error
    set_text(&c_path, PyBytes_AS_STRING(path), len(path))
    with nogil:
        error = mark_copy(c_path, sequence)
    if error != 0:
        raise OSError(error, strerror(error))
    return 0


cdef inline tuple call_fence(Store* store, int64_t now_us, int64_t seen_us):
    """Jobs, leases ended, rows that do not decode, and the floor."""
    cdef Restored counts
    cdef Fault fault
    counts.jobs = counts.leases_ended = counts.corrupt = 0
    with nogil:
        fault = fence(store, now_us, seen_us, &counts)
    raise_for(&fault)
    return counts.jobs, counts.leases_ended, counts.corrupt, store.generation_floor
