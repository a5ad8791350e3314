"""A disk that fails beneath an open queue: an error each time, reads go on, and writes come back with the disk."""

from __future__ import annotations

import errno

import pytest

FAULTS = [
    ("write", errno.ENOSPC),
    ("write", errno.EIO),
    ("write", errno.EDQUOT),
    ("sync", errno.EIO),
    ("open", errno.EROFS),
    ("open", errno.EMFILE),
]


@pytest.mark.parametrize("durability", ["sync", "group", "os"])
@pytest.mark.parametrize(("what", "number"), FAULTS, ids=[f"{what} {errno.errorcode[n]}" for what, n in FAULTS])
def test_a_fault_is_an_error_reads_go_on_and_writes_come_back_by_themselves(on_broken_disk, what, number, durability):
    on_broken_disk(
        """
what, number = sys.argv[3], int(sys.argv[4])
broken(**{what: number})
errors = []
for n in range(3000):
    try:
        queue.enqueue(ACME, f"during{n}", b"p" * 300)
        acknowledged.add(f"during{n}")
    except StorageError as error:
        assert isinstance(error, StorageFull) == (number in (errno.ENOSPC, errno.EDQUOT)), error
        assert not isinstance(error, CorruptionError), error
        if error.outcome == "unknown":
            unknown.add(f"during{n}")
        errors.append(error)
        if len(errors) >= 3:
            break
    if n % 100 == 0 and config.durability != "sync":
        try:
            queue.flush()
        except StorageError:
            pass
assert len(errors) == 3 or (what, config.durability) == ("sync", "os"), errors
assert acknowledged <= kinds() <= acknowledged | unknown
assert queue.lease_next(ACME, "none", worker_id="w") is None
until = time.monotonic() + 1.2
while time.monotonic() < until:  # tries to open it again, in vain
    try:
        queue.enqueue(ACME, "again")
        acknowledged.add("again")
    except StorageError as error:
        if error.outcome == "unknown":
            unknown.add("again")
    assert acknowledged <= kinds() <= acknowledged | unknown
broken()
assert until_it_writes("after") < 30
acknowledged.add("after")
assert acknowledged <= kinds() <= acknowledged | unknown
queue.close()
with Queue.open(PATH) as queue:
    assert acknowledged <= kinds() <= acknowledged | unknown
    say("done")
""",
        durability,
        what,
        number,
    )


def test_reopen_brings_writes_back_at_once_and_the_directory_stays_owned(on_broken_disk):
    on_broken_disk(
        """
import subprocess, threading
lost = queue.lease_next(ACME, worker_id="w")
broken(write=errno.ENOSPC)
for call in (lambda: queue.enqueue(ACME, "x"), lambda: queue.complete(lost), queue.reopen):
    try:
        call()
    except StorageError as error:
        say(type(error).__name__, error.outcome)
    else:
        raise AssertionError("the disk is full")
assert queue.get(ACME, lost.job_id).state == JobState.LEASED
broken()
waiter = threading.Thread(target=lambda: say(queue.lease_next(ACME, "late", worker_id="v", wait_secs=20).kind))
waiter.start()
queue.reopen()
try:
    Queue.open(PATH)
except StoreLocked as error:
    assert error.pid == os.getpid()
assert queue.complete(lost).state == JobState.COMPLETED
queue.enqueue(ACME, "late")
waiter.join()
queue.close()
for call in (queue.reopen, queue.flush):
    try:
        call()
    except StoreClosed:
        say("closed")
""",
        "sync",
    )


@pytest.mark.parametrize("durability", ["group", "os"])
def test_a_call_that_is_to_be_on_disk_and_cannot_be_has_an_unknown_outcome(on_broken_disk, durability):
    assert on_broken_disk(
        """
lease = queue.lease_next(ACME, worker_id="w")
broken(sync=errno.EIO)
try:
    queue.complete(lease, durability="sync")
except StorageError as error:
    say(error.outcome)
broken()
queue.reopen()
queue.close()
""",
        durability,
    ) == ["unknown"]


@pytest.mark.parametrize("durability", ["sync", "group", "os"])
def test_opening_on_a_broken_disk_is_an_error_and_harms_nothing(on_broken_disk, durability):
    on_broken_disk(
        """
queue.close()
for what in ({"write": errno.ENOSPC}, {"write": errno.EIO}, {"sync": errno.EIO}, {"open": errno.EMFILE},
             {"open": errno.EROFS}):
    broken(**what)
    try:
        Queue.open(PATH, config).close()
    except StorageError as error:
        assert not isinstance(error, CorruptionError), error
    else:
        raise AssertionError(f"opened with {what}")
    broken()
    with Queue.open(PATH, config) as queue:
        assert kinds() == acknowledged
""",
        durability,
    )


@pytest.mark.parametrize("durability", ["group", "os"])
def test_an_fsync_beside_a_write_that_fails_is_an_error_and_not_the_end(on_broken_disk, durability):
    on_broken_disk(
        """
import threading
over = threading.Event()
def flush():
    while not over.is_set():
        try:
            queue.flush()
        except StorageError as error:
            assert error.outcome in ("none", "unknown")
flushing = [threading.Thread(target=flush) for _ in range(2)]
[thread.start() for thread in flushing]
for n in range(40):
    broken(write=errno.EIO)
    try:
        queue.enqueue(ACME, f"during{n}")
    except StorageError as error:
        unknown.add(f"during{n}")
    broken()
    queue.reopen()
    queue.enqueue(ACME, f"after{n}")
    acknowledged.add(f"after{n}")
over.set()
[thread.join() for thread in flushing]
queue.close()
with Queue.open(PATH) as queue:
    assert acknowledged <= kinds() <= acknowledged | unknown
""",
        durability,
    )


def test_a_keeper_brings_writes_back_by_itself_and_loses_no_lease(on_broken_disk):
    on_broken_disk(
        """
queue.enqueue_many(ACME, [JobSpec("kept")] * 50)
leases = queue.lease_many(ACME, 50, "kept", worker_id="w", lease_ttl_secs=0.3)
keeper = queue.keeper()
holds = keeper.hold(leases)
deadlines = lambda: min(queue.find(lease.job_id).lease_deadline for lease in leases)
broken(write=errno.ENOSPC)
assert keeper.wait(1) == []
assert deadlines() < time.time_ns() // 1000  # long past
broken()
while deadlines() < time.time_ns() // 1000:  # nobody else writes
    threading.Event().wait(0.01)
assert {held.over for held in holds} == {None}
assert all(isinstance(done, type(leases[0])) for done in queue.complete_many(leases))
queue.close()
""",
        "group",
    )


@pytest.mark.parametrize("number", [errno.EDQUOT, errno.ENOSPC], ids=errno.errorcode.get)
@pytest.mark.parametrize("durability", ["sync", "group", "os"])
def test_every_error_after_the_first_names_the_first_cause_until_the_disk_takes_writes(
    on_broken_disk, number, durability
):  # D3
    on_broken_disk(
        """
assert queue.failure is None
lease = queue.lease_next(ACME, worker_id="w")
broken(write=int(sys.argv[3]))
def failure(call):
    try:
        call()
    except StorageError as error:
        return error
while (first := failure(lambda: queue.enqueue(ACME, "filling", b"p" * 300))) is None:
    pass
assert type(first) is StorageFull
assert queue.failure == str(first), (queue.failure, str(first))
calls = [lambda: queue.enqueue(ACME, "x"), lambda: queue.enqueue_many(ACME, [JobSpec("x")], atomic=True),
         lambda: queue.complete(lease), lambda: queue.extend(lease), queue.reap_expired, queue.flush]
if config.durability == "sync":
    calls.remove(queue.flush)  # it has nothing to do
until = time.monotonic() + 1.5  # long enough for a try to open it again
texts = set()
while time.monotonic() < until:
    for call in calls:
        later = failure(call)
        if later is None:
            assert call == queue.reap_expired, call  # nothing has expired: it has nothing to write
            continue
        assert (type(later), later.outcome) == (StorageFull, "none"), later
        texts.add(str(later))
[text] = texts
assert text.endswith(f": {first}"), (text, first)
assert queue.failure == str(first), (queue.failure, str(first))
assert queue.find(lease.job_id).state == JobState.LEASED
broken()
assert until_it_writes("after") < 30
assert queue.failure is None
assert queue.complete(lease).state == JobState.COMPLETED
queue.close()
""",
        durability,
        number,
    )
