"""The check of a store: every job against its side rows, then every side row against its job.

Bounded in memory: rows are walked in key order as of one moment, the rows of one scope merged over its states, and
looked up one by one from there. docs/format.md states what is checked, in the order of findings.hpp.
"""

from libc.string cimport memcmp, memcpy

from audit cimport JOB_KEY, JOB_TWICE, Audit
from keys cimport COMPLETED, DEAD, FAILED, JOB_ID_AT, KEY_BYTES, LEASED, PENDING, PRIORITY_AT
from keys cimport SCOPE_BYTES, STATE_PREFIX_BYTES, State, state_prefix
from memory cimport Lock
from mend cimport drop_orphans, mend_jobs
from one_job cimport check_job, is_sound
from orphans cimport check_notes, check_sides
from outcome cimport CODE_CLOSED, Fault, fault_of, fault_read
from record cimport View
from rocksdb cimport Slice, aborted
from scan cimport ORDER_BYTES
from store cimport JOBS, Cursor, Store, Visit, bytes_of

cdef enum:
    WRITTEN_STATES = 4
    MOST_RESTARTS = 8


cdef inline Fault fsck(Store* store, bint is_repairing, Audit* audit) noexcept nogil:
    """Check the whole store, and put right what can be.

    When the store is opened again meanwhile it begins anew, up to MOST_RESTARTS times. Repairs are whole either way.
    """
    cdef bint is_cut = False
    cdef Fault fault
    cdef int _i
    audit.is_repairing = is_repairing
    for _i in range(MOST_RESTARTS + 1):
        audit.reset()
        fault = _check_once(store, audit, &is_cut)
        if not is_cut:
            return fault
    return fault_read(aborted(b"the check began anew 8 times, because the store was opened again beneath it each time"))


cdef inline Fault _check_once(Store* store, Audit* audit, bint* is_cut) noexcept nogil:
    cdef Visit visit
    cdef Lock lock
    cdef Fault fault = visit.enter(store)
    is_cut[0] = False
    if not fault.ok():
        return fault
    lock = Lock(store.mending)
    audit.survey.begin(store)
    fault = _check_jobs(store, audit)
    if fault.ok():
        fault = mend_jobs(store, audit)
    if audit.has_mended:
        audit.survey.begin(store)  # as it is now that jobs can be found by their ids
    if fault.ok():
        fault = check_sides(store, audit)
    if fault.ok():
        fault = drop_orphans(store, audit)
    if fault.ok():
        fault = check_notes(store, audit)
    audit.survey.end()
    lock.unlock()
    is_cut[0] = fault.code == CODE_CLOSED  # it made way for whoever closes the store, or opens it again
    return fault


cdef inline Fault _check_jobs(Store* store, Audit* audit) noexcept nogil:
    cdef Cursor rows
    cdef char[SCOPE_BYTES] scope
    cdef Fault fault
    rows.survey(JOBS, audit.survey.moment())
    rows.open(store, NULL, 0)
    while rows.is_on_row():
        if rows.key().size() < STATE_PREFIX_BYTES:
            _note_key(audit, rows.key())
            rows.step()
            continue
        memcpy(scope, rows.key().data(), SCOPE_BYTES)
        fault = _check_scope(store, scope, audit)
        if not fault.ok():
            return fault
        if not rows.skip_scope(scope, SCOPE_BYTES):
            break
    return rows.fault()


cdef inline void _note_key(Audit* audit, Slice key) noexcept nogil:
    """A row of the jobs family whose key is none that a job can have."""
    cdef bint is_whole = key.size() == KEY_BYTES
    audit.add(
        JOB_KEY,
        key,
        key.data() if key.size() >= SCOPE_BYTES else <const char*>NULL,
        key.data() + JOB_ID_AT if is_whole else <const char*>NULL,
        b"the key has a state that no job is in" if is_whole else b"the key has a wrong length",
    )


cdef inline Fault _check_scope(Store* store, const char* scope, Audit* audit) noexcept nogil:
    """The rows of one scope in the order that they have within each state, so that one job's rows come together."""
    cdef Cursor[WRITTEN_STATES] rows
    cdef State[WRITTEN_STATES] states
    cdef char[STATE_PREFIX_BYTES] prefix
    cdef char[KEY_BYTES] key
    cdef View twin
    cdef int least
    cdef int i
    cdef Fault fault = _check_states(store, scope, audit)
    states[0], states[1], states[2], states[3] = PENDING, LEASED, COMPLETED, DEAD
    for i in range(WRITTEN_STATES):
        state_prefix(prefix, scope, <unsigned char>states[i])
        rows[i].survey(JOBS, audit.survey.moment())
        rows[i].open(store, prefix, STATE_PREFIX_BYTES)
        _to_job(&rows[i], audit)
    while fault.ok():
        least = -1
        for i in range(WRITTEN_STATES):
            if rows[i].is_on_row() and (least < 0 or _order(&rows[i], rows[least].key().data()) < 0):
                least = i
        if least < 0:
            break
        if not store.is_open():
            return fault_of(CODE_CLOSED)  # close() waits for this visit
        memcpy(key, rows[least].key().data(), KEY_BYTES)
        fault = check_job(store, audit, key, bytes_of(rows[least].value()))
        rows[least].step()
        _to_job(&rows[least], audit)
        for i in range(WRITTEN_STATES):
            if rows[i].is_on_row() and _order(&rows[i], key) == 0:
                audit.add(JOB_TWICE, rows[i].key(), key, key + JOB_ID_AT, b"the job has a row in another state too")
                is_sound(audit, rows[i].key().data(), bytes_of(rows[i].value()), &twin)
                rows[i].step()
                _to_job(&rows[i], audit)
    for i in range(WRITTEN_STATES):
        if fault.ok():
            fault = rows[i].fault()
    return fault


cdef inline int _order(Cursor* rows, const char* key) noexcept nogil:
    """How a row stands to a key in the order that all states share."""
    return memcmp(rows.key().data() + PRIORITY_AT, key + PRIORITY_AT, ORDER_BYTES)


cdef inline void _to_job(Cursor* rows, Audit* audit) noexcept nogil:
    while rows.is_on_row() and rows.key().size() != KEY_BYTES:
        _note_key(audit, rows.key())
        rows.step()


cdef inline Fault _check_states(Store* store, const char* scope, Audit* audit) noexcept nogil:
    """The rows of one scope under a state that is never written."""
    cdef Cursor reserved
    cdef Cursor beyond
    cdef char[STATE_PREFIX_BYTES] prefix
    cdef Fault fault
    state_prefix(prefix, scope, FAILED)
    reserved.survey(JOBS, audit.survey.moment())
    reserved.open(store, prefix, STATE_PREFIX_BYTES)
    while reserved.is_on_row():
        _note_key(audit, reserved.key())
        reserved.step()
    fault = reserved.fault()
    state_prefix(prefix, scope, DEAD + 1)
    beyond.survey(JOBS, audit.survey.moment())
    beyond.open_at(store, scope, SCOPE_BYTES, prefix, STATE_PREFIX_BYTES)
    while fault.ok() and beyond.is_on_row():
        _note_key(audit, beyond.key())
        beyond.step()
    return beyond.fault() if fault.ok() else fault
