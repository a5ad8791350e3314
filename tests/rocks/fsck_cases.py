"""Damages to a store, each the breach of an invariant of docs/format.md, and the store that they are done to."""

from __future__ import annotations

from telha_queue.config import QueueConfig
from telha_queue.job import JobState
from telha_queue.queue import Queue
from telha_queue.record import decode, encode
from telha_queue.scope import Scope

ACME, GLOBEX = Scope.named("acme"), Scope.named("globex")
QUICK = QueueConfig(durability="os")
LARGE = b"y" * 5000


def filled(path, clock):
    """A job in every state and in two scopes; 0 and 3 have keys, 1 and 3 payloads, 3 a result, 4 and 5 expire."""
    with Queue.open(path, QUICK, clock) as queue:
        jobs = [
            queue.enqueue(ACME, "a", idempotency_key="k0"),
            queue.enqueue(ACME, "b", LARGE),
            queue.enqueue(GLOBEX, "c", priority=7),
            queue.enqueue(GLOBEX, "d", LARGE, idempotency_key="k3"),
            queue.enqueue(ACME, "e", expires_secs=3600),
        ]
        jobs += [queue.enqueue(GLOBEX, "f", expires_secs=60)]
        for kind in "bde":
            lease = queue.lease_next_any(kind, worker_id="w")
            if kind == "d":
                queue.complete(lease, result=LARGE)
            if kind == "e":
                queue.fail(lease, "boom", retryable=False)
        return [queue.find(job.job_id) for job in jobs]


def key_row(job):
    return job.key[:32] + job.idempotency_key.encode()


def expiry_row(job):
    return job.expires_at.to_bytes(8, "big") + job.job_id.bytes


def in_state(job, state):
    return job.key[:32] + bytes([state]) + job.key[33:]


def moved(job):
    """The row that the job would have in another scope."""
    return GLOBEX.key + job.key[32:]


def with_record(job, **changes):
    return encode(decode(job.value)._replace(**changes))


STRANGER = bytes.fromhex("0190a0a0a0a07abc9def0123456789ab")

# name: what is done to the store (jobs by number), what is then found, and which of it a repair puts right.
CASES = {
    "id row gone": (lambda ldb, j: ldb.delete("ids", j[1].job_id.bytes), ["id_missing"], ["id_missing"]),
    "id row short": (lambda ldb, j: ldb.put("ids", j[0].job_id.bytes, b"short"), ["id_wrong"], ["id_wrong"]),
    "id row elsewhere": (lambda ldb, j: ldb.put("ids", j[3].job_id.bytes, bytes(41)), ["id_wrong"], ["id_wrong"]),
    "stranger's id row": (lambda ldb, j: ldb.put("ids", STRANGER, bytes(41)), ["id_orphan"], ["id_orphan"]),
    "id row of no id": (lambda ldb, j: ldb.put("ids", b"x", bytes(41)), ["id_orphan"], ["id_orphan"]),
    "key row gone": (lambda ldb, j: ldb.delete("idempotency", key_row(j[0])), ["key_missing"], ["key_missing"]),
    "key row short": (lambda ldb, j: ldb.put("idempotency", key_row(j[0]), b"short"), ["key_wrong"], ["key_wrong"]),
    "key row to nobody": (lambda ldb, j: ldb.put("idempotency", key_row(j[3]), STRANGER), ["key_wrong"], ["key_wrong"]),
    "key row to a job with none": (
        lambda ldb, j: ldb.put("idempotency", key_row(j[0]), j[2].job_id.bytes),
        ["key_wrong"],
        ["key_wrong"],
    ),
    "two jobs with one key": (
        lambda ldb, j: ldb.put("jobs", j[4].key, with_record(j[4], idempotency_key="k0")),
        ["key_shared"],
        [],
    ),
    "key row of nobody": (
        lambda ldb, j: ldb.put("idempotency", ACME.key + b"k9", STRANGER),
        ["key_orphan"],
        ["key_orphan"],
    ),
    "key row of a job with another": (
        lambda ldb, j: ldb.put("idempotency", ACME.key + b"k9", j[0].job_id.bytes),
        ["key_orphan"],
        ["key_orphan"],
    ),
    "key row of another scope": (
        lambda ldb, j: ldb.put("idempotency", GLOBEX.key + b"k0", j[0].job_id.bytes),
        ["key_orphan"],
        ["key_orphan"],
    ),
    "key row without a key": (lambda ldb, j: ldb.put("idempotency", b"x", STRANGER), ["key_orphan"], ["key_orphan"]),
    "payload gone": (lambda ldb, j: ldb.delete("payloads", j[1].job_id.bytes), ["payload_missing"], []),
    "payload cut": (lambda ldb, j: ldb.put("payloads", j[1].job_id.bytes, LARGE[1:]), ["payload_wrong"], []),
    "payload of nobody": (lambda ldb, j: ldb.put("payloads", STRANGER, b"p"), ["payload_orphan"], ["payload_orphan"]),
    "payload twice": (
        lambda ldb, j: ldb.put("payloads", j[0].job_id.bytes, b"p"),
        ["payload_orphan"],
        ["payload_orphan"],
    ),
    "result gone": (lambda ldb, j: ldb.delete("results", j[3].job_id.bytes), ["result_missing"], []),
    "result cut": (lambda ldb, j: ldb.put("results", j[3].job_id.bytes, LARGE[1:]), ["result_wrong"], []),
    "result of nobody": (lambda ldb, j: ldb.put("results", STRANGER, b"r"), ["result_orphan"], ["result_orphan"]),
    "result of a job that may yet have one": (
        lambda ldb, j: ldb.put("results", j[0].job_id.bytes, b"r"),
        ["result_orphan"],
        [],
    ),
    "result of no id": (lambda ldb, j: ldb.put("results", b"x", b"r"), ["result_orphan"], ["result_orphan"]),
    "payload of no id": (lambda ldb, j: ldb.put("payloads", b"x", b"p"), ["payload_orphan"], ["payload_orphan"]),
    "expiry gone": (lambda ldb, j: ldb.delete("expiries", expiry_row(j[5])), ["expiry_missing"], ["expiry_missing"]),
    "expiry at another time": (
        lambda ldb, j: ldb.put("expiries", bytes(8) + j[5].job_id.bytes, b""),
        ["expiry_orphan"],
        ["expiry_orphan"],
    ),
    "expiry of a job that never expires": (
        lambda ldb, j: ldb.put("expiries", bytes(8) + j[0].job_id.bytes, b""),
        ["expiry_orphan"],
        ["expiry_orphan"],
    ),
    "expiry of nobody": (
        lambda ldb, j: ldb.put("expiries", bytes(8) + STRANGER, b""),
        ["expiry_orphan"],
        ["expiry_orphan"],
    ),
    "expiry of no id": (lambda ldb, j: ldb.put("expiries", b"x", b""), ["expiry_orphan"], ["expiry_orphan"]),
    "record cut": (lambda ldb, j: ldb.put("jobs", j[0].key, j[0].value[:-1]), ["job_record"], []),
    "record and key disagree": (
        lambda ldb, j: ldb.put("jobs", j[0].key, with_record(j[0], priority=3)),
        ["job_record"],
        [],
    ),
    "record of a newer release": (
        lambda ldb, j: ldb.put("jobs", j[2].key, b"\2" + j[2].value[1:]),
        ["job_version"],
        [],
    ),
    "job in two states": (
        lambda ldb, j: ldb.put("jobs", in_state(j[0], 2), with_record(j[0], state=JobState.COMPLETED)),
        ["job_twice"],
        [],
    ),
    "job in two scopes": (lambda ldb, j: ldb.put("jobs", moved(j[0]), j[0].value), ["job_twice"], []),
    "key too short": (lambda ldb, j: ldb.put("jobs", j[0].key[:20], j[0].value), ["job_key"], []),
    "key as long as a scope": (lambda ldb, j: ldb.put("jobs", j[0].key[:32], j[0].value), ["job_key"], []),
    "key too long": (lambda ldb, j: ldb.put("jobs", j[0].key + b"\0", j[0].value), ["job_key"], []),
    "reserved state": (lambda ldb, j: ldb.put("jobs", in_state(j[0], 3), j[0].value), ["job_key"], []),
    "unknown state": (lambda ldb, j: ldb.put("jobs", in_state(j[4], 255), j[4].value), ["job_key"], []),
    "name of another scope": (
        lambda ldb, j: ldb.put("default", b"scope:" + ACME.key, b"globex"),
        ["name_wrong"],
        ["name_wrong"],
    ),
    "name of no scope": (lambda ldb, j: ldb.put("default", b"scope:x", b"acme"), ["name_wrong"], ["name_wrong"]),
    "clock short": (lambda ldb, j: ldb.put("default", b"clock", b"short"), ["clock_wrong"], ["clock_wrong"]),
    "clock beyond time": (lambda ldb, j: ldb.put("default", b"clock", b"\xff" * 8), ["clock_wrong"], ["clock_wrong"]),
}  # fmt: skip
