"""Loss is loud: what is gone of that which was on disk is an error at open. What a power cut may take is none.

TELHA_LOSS_CASES sets how many places each kind of damage is tried at, TELHA_LOSS_SEED where; a failure prints it.
"""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest
from kill_ledger import whole
from marks import read_mark

from telha_queue import JobSpec, JobState, Queue, QueueConfig, Scope
from telha_queue.errors import CorruptionError, InvalidArgument

ACME = Scope.named("acme")
SMALL = QueueConfig(durability="os", memtable_bytes=65536)
CASES = int(os.environ.get("TELHA_LOSS_CASES", "6"))
SEED = os.environ.get("TELHA_LOSS_SEED") or str(random.SystemRandom().randrange(2**32))
WORKER = Path(__file__).with_name("kill_worker.py")
JOBS = 700


@pytest.fixture
def chance() -> random.Random:
    print(f"TELHA_LOSS_SEED={SEED}")  # noqa: T201  # shown when the test fails
    return random.Random(SEED)


def closed(path: Path, ended) -> None:
    with Queue.open(path, SMALL) as queue:
        queue.enqueue_many(ACME, [JobSpec("x", b"p" * 200) for _ in range(400)])
    with Queue.open(path, QueueConfig(durability="sync")) as queue:
        for _ in range(300):
            queue.enqueue(ACME, "x", b"p" * 200)


def killed(path: Path, ended) -> None:
    ended(
        """
queue = Queue.open(PATH, QueueConfig(durability="group", memtable_bytes=65536))
queue.enqueue_many(ACME, [JobSpec("x", b"p" * 200) for _ in range(400)])
queue.reopen()
for _ in range(300):
    queue.enqueue(ACME, "x", b"p" * 100)
queue.flush()
os.kill(os.getpid(), signal.SIGKILL)
""",
        code=-9,
    )


def cut(file: Path, chance: random.Random) -> None:
    os.truncate(file, chance.randrange(file.stat().st_size))


def flip(file: Path, chance: random.Random) -> None:
    data = bytearray(file.read_bytes())
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    file.write_bytes(data)


def delete(file: Path, chance: random.Random) -> None:
    file.unlink()


def opens_whole(path: Path) -> bool:
    try:
        queue = Queue.open(path, SMALL)
    except CorruptionError:
        return False
    with queue:
        assert sum(queue.counts().values()) == JOBS
    return True


DAMAGE = [
    ("*.log", cut),
    ("*.log", flip),
    ("*.log", delete),
    ("MANIFEST-*", cut),
    ("MANIFEST-*", flip),
    ("MANIFEST-*", delete),
    ("*.sst", cut),
    ("*.sst", delete),
    ("CURRENT", cut),
    ("CURRENT", flip),
    ("CURRENT", delete),
]


@pytest.mark.parametrize("end", [closed, killed])
@pytest.mark.parametrize(("pattern", "damage"), DAMAGE)
def test_damage_is_an_error_at_every_open_and_never_fewer_rows(path, ended, chance, pattern, damage, end):
    end(path, ended)
    for case in range(CASES):
        copy = path.with_name(f"copy{case}")
        shutil.copytree(path, copy)
        files = sorted(file for file in copy.glob(pattern) if file.stat().st_size)
        damage(chance.choice(files), chance)
        if end is killed and pattern in ("*.sst", "MANIFEST-*") and opens_whole(copy):
            continue  # RocksDB was writing there when it was killed, or was done with it
        for _ in range(2):
            with pytest.raises(CorruptionError):
                Queue.open(copy, SMALL)
    with Queue.open(path, SMALL) as queue:
        assert sum(queue.counts().values()) == JOBS


@pytest.mark.parametrize("damage", [cut, flip, delete])
def test_recovery_to_a_point_in_time_opens_with_what_is_left_and_tells_what_is_not(path, ended, chance, damage):
    closed(path, ended)
    [log] = path.glob("*.log")
    damage(log, chance)
    with pytest.raises(CorruptionError, match=log.name):
        Queue.open(path, SMALL)
    with Queue.open(path, SMALL, recover="point_in_time") as queue:
        assert queue.recovered is not None
        assert any(log.name in sentence for sentence in queue.recovered.damage)
        gone = JOBS - sum(queue.counts().values())
        assert gone > 0
        assert queue.recovered.lost_rows == pytest.approx(2 * gone, abs=2)  # a job, its id, and the clock at the end
        queue.enqueue(ACME, "new")
    with Queue.open(path, SMALL) as queue:
        assert queue.recovered is None
        assert sum(queue.counts().values()) == JOBS - gone + 1


def test_the_error_says_how_many_rows_are_gone(path, ended):
    closed(path, ended)
    [log] = path.glob("*.log")
    size = log.stat().st_size
    os.truncate(log, size // 2)
    text = rf"{log.name} has {size // 2} bytes, of which {size} were on disk; .* the last 30\d are gone or unreadable"
    with pytest.raises(CorruptionError, match=text):
        Queue.open(path, SMALL)


def test_nothing_was_recovered_where_nothing_was_missing(path):
    for recover in ("point_in_time", None, "point_in_time"):
        with Queue.open(path, SMALL, recover=recover) as queue:
            assert queue.recovered is None
            queue.enqueue(ACME, "x")
    with pytest.raises(InvalidArgument):
        Queue.open(path, SMALL, recover="everything")


@pytest.mark.parametrize("durability", ["sync", "group", "os"])
@pytest.mark.timeout(120)
def test_what_a_power_cut_may_take_is_no_damage(path, chance, run_and_kill, durability):
    """What is known to be on disk is kept; behind it any part is there, or was garbled, or nothing.

    Logs are fsynced before a MANIFEST tells of table files: so what was not fsynced of a MANIFEST is there only if all
    of the logs is.
    """
    run_and_kill([WORKER, path, durability, "seed"], chance.randrange(50, 3000))
    mark = read_mark(path)
    for case in range(CASES):
        copy = path.with_name(f"copy{case}")
        shutil.copytree(path, copy)
        cut_logs = chance.random() < 0.7
        for file in [*copy.glob("*.log"), *copy.glob("MANIFEST-*")]:
            is_log, size = file.suffix == ".log", file.stat().st_size
            least = mark.files.get(file.name, 0)
            kept = chance.randint(least, size) if is_log == cut_logs else size if is_log else least
            lost = size - kept if kept < size else 0 if is_log else 300
            tail = chance.choice((b"", bytes(lost), chance.randbytes(lost)))
            with file.open("r+b") as out:
                out.truncate(kept)
                out.seek(kept)
                out.write(tail)
        with Queue.open(copy, SMALL) as queue:
            jobs = whole(queue)
            assert sum(queue.counts().values()) == len(jobs)
            assert all(queue.find(job.job_id) == job for job in jobs)


def test_a_flip_behind_the_mark_is_found_where_every_write_was_on_disk_before_the_next(path, ended, chance):
    ended(
        """
queue = Queue.open(PATH)
queue.enqueue(ACME, "x")
threading.Event().wait(1.5)
for n in range(200):
    queue.enqueue(ACME, "x", b"p" * 500)
os.kill(os.getpid(), signal.SIGKILL)
""",
        code=-9,
    )
    [log] = (file for file in path.glob("*.log") if file.stat().st_size)
    marked = read_mark(path).files[log.name]
    assert 0 < marked < log.stat().st_size // 2
    data = log.read_bytes()
    for _ in range(CASES):
        flipped = bytearray(data)
        flipped[chance.randrange(marked, len(data) - 40_000)] ^= 4  # a batch begins in the next block
        log.write_bytes(flipped)
        with pytest.raises(CorruptionError, match=log.name):
            Queue.open(path)
    log.write_bytes(data)
    with Queue.open(path) as queue:
        assert queue.counts()[JobState.PENDING] == 201
