"""What the test plan wants of a night: the numbers T1 to T28, each with its figure. A harness names those it holds."""

from __future__ import annotations

from types import MappingProxyType

PLAN = MappingProxyType(
    {
        "T1": "kill -9 at random times: 2,000, in each mode, memtables of 64 KiB and 64 MiB",
        "T2": "kill at each fail point, and again during recovery: every point x 100",
        "T3": "power cuts: 10,000, over modes, tails and threads",
        "T4": "the Nth I/O call fails, once and for good: N up to 3,000",
        "T5": "full disk: 200 fill levels x 3 sizes of payload",
        "T6": "no descriptors left: 20",
        "T7": "places where no queue can be: all",
        "T8": "damaged files: 5,000 images",
        "T9": "random lives beside a model: 1,000,000 steps, and 20,000 with crashes",
        "T10": "1 to 32 threads x 20,000 jobs, 10 rounds",
        "T11": "histories that need an explanation: 50,000",
        "T12": "orders of two and three threads in verbs that quarrel: all, and 100,000 at random",
        "T13": "lost wake-ups: 200,000",
        "T14": "soak: 10 days of simulated time, 1,000,000 jobs",
        "T15": "jumps of the clock: every jump x every verb",
        "T16": "arithmetic of backoff and limits: all extremes",
        "T17": "fuzzed bytes for the decoders: 100,000,000 inputs, or 10 minutes",
        "T18": "spoilt arguments: 5,000,000 calls",
        "T19": "the whole suite under AddressSanitizer and UndefinedBehaviorSanitizer: once",
        "T20": "races in native code, under ThreadSanitizer: once",
        "T21": "a lease behind completed jobs: 5,000,000",
        "T22": "a lease behind jobs in backoff: 1,000,000",
        "T23": "fork, spawn, forkserver, prefork: all",
        "T24": "ends of the interpreter: every scene x 50",
        "T25": "closing while 16 threads work, and garbage: x 1,000",
        "T26": "a server under attack: 1,000,000 frames",
        "T27": "stores of earlier releases and of later versions: all",
        "T28": "snapshots under load, restored: 50",
    }
)
NOT_HELD = MappingProxyType({"T26": "not applicable: there is no server, a program imports the queue"})
"""Numbers that no harness holds, and why."""
