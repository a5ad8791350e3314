"""T12: every order of two and three threads inside verbs that quarrel over a job, and random ones where they collide.

Threads are held up where a verb asks for the time: its arguments are checked by then, and nothing is done. What the
steps behind that do to each other is for the plays in which actors take them at once.
"""

from __future__ import annotations

from collections import Counter
from itertools import count
from random import Random

from telha_queue import JobRecord, JobState, Lease, Queue, QueueConfig
from telha_queue.errors import StoreClosed
from telha_queue.testing import ManualClock
from tests.torture.protocol import Harness, Request, Result
from tests.torture.race_checker import Checker
from tests.torture.race_history import Entry, Recorder, merged, seen
from tests.torture.race_rules import Rules
from tests.torture.race_scenes import ACME, BEFORE, SCENES, Play, Scene
from tests.torture.race_stage import Actor, Lent, Stage, groups, orders
from tests.torture.race_threads import restless

ENOUGH = 10
"""With so many faults nothing more is played."""
CLOSINGS = 90
"""All orders of three; the random ones come on top."""
RULES = Rules(max_attempts=5, base_us=1_000_000, factor=1, cap_us=1_000_000)
CONFIG = QueueConfig(durability="os", memtable_bytes=256 * 1024, backoff_base_secs=1, backoff_factor=1)


class Theatre:
    """A queue on which plays are given, one after the other, each with a job of its own."""

    def __init__(self, request: Request) -> None:
        self.clock = ManualClock()
        self.stage = Stage(self.clock)
        self.queue = Queue.open(request.folder / "queue", CONFIG, self.stage)
        self.threads = [Lent() for _ in range(3)]
        self.plays = self.acknowledged = 0
        self.won = Counter[int]()

    def close(self) -> None:
        """Send the threads home."""
        for thread in self.threads:
            thread.lend(None)
        self.queue.close()

    def give(self, scene: Scene, order: list[tuple[int, ...]]) -> list[str]:
        """One play; what was wrong with it."""
        self.plays += 1
        stamp, key = count(), f"play {self.plays}"
        prompter = Recorder(self.queue, stamp)
        [job] = prompter.enqueue(lambda: [self.queue.enqueue(ACME, "x", idempotency_key=key)])
        play = Play(self.queue, self.clock, job, key)
        BEFORE[scene.before](play, prompter)
        recorders = [Recorder(self.queue, stamp) for _ in scene.actors]
        won: list[int] = []
        faults: list[str] = []

        def act(number: int) -> None:
            try:
                if scene.actors[number](play, recorders[number]):
                    won.append(number)
            except Exception as error:  # noqa: BLE001  # an actor that raises is a fault, whatever it is
                faults.append(f"{type(error).__name__}: {error}")

        actors = [Actor(lambda n=n: act(n), self.threads[n]) for n in range(len(scene.actors))]
        faults += self.stage.play(order, actors)
        if not faults:
            faults = self._faults(scene, play, [prompter, *recorders], won)
            faults += self._cleared(play.job)
        names = ", ".join(actor.__name__ for actor in scene.actors)
        return [f"{scene.before}: {names} in the order {order}: {fault}" for fault in faults]

    def _faults(self, scene: Scene, play: Play, recorders: list[Recorder], won: list[int]) -> list[str]:
        self.acknowledged += sum(each.acknowledged for each in recorders)
        self.won[len(won)] += 1
        faults = [] if len(won) in scene.winners else [f"it worked for the actors {won}"]
        if any(found.job_id != play.job.job_id for found in play.found):
            faults.append("a key stands for two jobs")
        last = self.queue.find(play.job.job_id)
        stamp = next(recorders[0].stamp)
        histories = merged(recorders)
        history = [*histories.pop(last.key[42:]), Entry(stamp, stamp, "get", "", 0, 0, seen(last))]
        fault = Checker(RULES, [each for recorder in recorders for each in recorder.passes]).fault(history)
        return [*faults, *([fault] if fault else []), *(["another job was touched"] if histories else [])]

    def _cleared(self, job: JobRecord) -> list[str]:
        """Complete the job, wherever it stands, so that the next play has the queue for itself."""
        for _ in range(5):
            now = self.queue.find(job.job_id)
            if now.state == JobState.COMPLETED:
                return []
            if now.state == JobState.DEAD:
                self.queue.retry(ACME, now.job_id)
            elif now.state == JobState.PENDING:
                self.clock.advance(secs=3600)
                self.queue.lease_next(ACME, worker_id="w")
            else:
                self.queue.complete(Lease(ACME, now.job_id, str(now.worker_id), now.lease_generation))
        return ["the job cannot be completed"]


def run(request: Request) -> Result:
    """All orders of every scene, then as many random ones as are asked for, then the orders of close."""
    theatre = Theatre(request)
    faults: list[str] = []
    for scene in SCENES:
        for order in orders(len(scene.actors)):
            faults += theatre.give(scene, order) if len(faults) < ENOUGH else []
    ordered = theatre.plays
    with restless():
        for number in range(request.wanted):
            chance = request.chance("play", number)
            scene = chance.choice(SCENES)
            if faults:
                break
            faults += theatre.give(scene, groups(len(scene.actors), chance))
    theatre.close()
    closings = 0
    for number in range(CLOSINGS + request.wanted // 100):
        faults += close_against_enqueue(request, number, request.chance("close", number))
        closings += 1
    counted = {"in every order": ordered, "random": theatre.plays - ordered, "closings": closings}
    return Result(theatre.plays + closings, theatre.acknowledged, counted=counted, faults=tuple(faults))


def close_against_enqueue(request: Request, number: int, chance: Random) -> list[str]:
    """Close while two threads enqueue: each job that was acknowledged is there afterwards, and no other."""
    clock, folder = ManualClock(), request.folder / f"closed{number}"
    stage = Stage(clock)
    queue = Queue.open(folder, CONFIG, stage)
    threads, told = [Lent() for _ in range(3)], []

    def enqueue() -> None:
        try:
            told.append(queue.enqueue(ACME, "x").job_id)
        except StoreClosed:
            told.append(None)

    actors = [Actor(call, thread) for call, thread in zip((enqueue, enqueue, queue.close), threads, strict=True)]
    every = list(orders(3))
    order = every[number] if number < len(every) else groups(3, chance)
    faults = stage.play(order, actors)
    for thread in threads:
        thread.lend(None)
    if faults or len(told) < 2:
        return [f"close and two enqueues in the order {order}: {faults or 'one raised something else'}"]
    with Queue.open(folder, CONFIG, clock) as again:
        there = sorted(job.job_id for job in again.list())
    if there != sorted(job_id for job_id in told if job_id is not None):
        return [f"close and two enqueues in the order {order}: acknowledged {told}, there are {there}"]
    return []


HARNESS = Harness(
    name="schedules",
    tests="T12",
    about="two or three threads held inside verbs that quarrel over a job, in every order and colliding at random; "
    "the right number of them win, and the history has an explanation",
    unit="plays",
    ci=2_000,
    nightly=100_000,
    run=run,
)
