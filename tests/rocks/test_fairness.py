"""Nobody waits for ever: calls on many jobs beside calls on each of them, and windows while nobody leases."""

from __future__ import annotations

import threading

from telha_queue import JobSpec, Queue, QueueConfig, Scope

ACME = Scope.named("acme")


def test_a_call_on_many_jobs_comes_between_calls_on_each_of_them(path, together):
    with Queue.open(path, QueueConfig(durability="sync")) as queue:
        queue.enqueue_many(ACME, [JobSpec("x")] * 8)
        leases = queue.lease_many(ACME, 8, worker_id="w")
        over = threading.Event()
        counts = [0] * len(leases)

        def beat(i):
            while not over.is_set():
                queue.extend(leases[i])
                counts[i] += 1

        def beat_all():
            try:
                for _ in range(20):
                    before = sum(counts)
                    queue.extend_many(leases)
                    waited.append(sum(counts) - before)
            finally:
                over.set()

        waited: list[int] = []
        together(beat_all, *(lambda i=i: beat(i) for i in range(len(leases))))
        # In calls of others, not in time: each of the others is let pass once or twice, not a hundred times.
        assert sorted(waited)[len(waited) // 2] <= 4 * len(leases)


def test_windows_stay_within_their_bound_while_nobody_leases(ended, path):
    program = """
import resource
queue = Queue.open(PATH, QueueConfig(durability="os", memtable_bytes=2**20))
scopes = [Scope.named(f"scope {n}") for n in range(60)]
for scope in scopes:
    assert queue.lease_next(scope, worker_id="w") is None
def rss():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
before = rss()
payload = b"x" * 3900
for scope in scopes:
    for _ in range(3):
        queue.enqueue_many(scope, [JobSpec("x", payload)] * 330)
say(rss() - before < 150 * 2**20)
queue.close()
"""
    assert ended(program, where=path) == ["True"]
