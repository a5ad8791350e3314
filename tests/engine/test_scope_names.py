"""A store remembers what its scopes are called, from the first job that is enqueued to one by name."""

from __future__ import annotations

from uuid import UUID

import pytest

from telha_queue.errors import InvalidArgument, InvalidScope, StoreClosed
from telha_queue.job import JobSpec
from telha_queue.queue import Queue
from telha_queue.scope import Scope

ACME = Scope.named("acme")
WORLD = Scope.named("größe-文書-🔑")
LONG = Scope.named("x" * 255)
UNNAMED = Scope.tenant(UUID(int=7), UUID(int=8))


def names(queue):
    return {scope: scope.name for scope in queue.scopes()}


def test_a_name_is_told_after_the_first_job_and_after_a_restart(queue, reopen):
    for scope in (ACME, WORLD):
        queue.enqueue(scope, "embed")
    queue.enqueue_many(LONG, [JobSpec("embed")] * 2)
    queue.enqueue(UNNAMED, "embed")
    queue.enqueue(Scope.SYSTEM, "embed")
    expected = {ACME: "acme", WORLD: "größe-文書-🔑", LONG: "x" * 255, UNNAMED: None, Scope.SYSTEM: None}
    assert names(queue) == expected
    assert names(reopen(queue)) == expected


def test_a_scope_named_by_its_key_alone_keeps_the_name_it_has_or_gets_later(queue):
    bare = Scope(ACME.key)
    queue.enqueue(bare, "embed")
    assert names(queue) == {ACME: None}
    queue.enqueue(ACME, "embed")
    queue.enqueue(bare, "embed")
    assert names(queue) == {ACME: "acme"}


def test_the_scope_of_a_job_has_the_name_that_the_store_has_for_it(queue):
    for scope in (ACME, WORLD, UNNAMED, Scope.SYSTEM):
        assert queue.enqueue(scope, "embed").scope.name == scope.name
    leased = queue.lease_many(None, 4, worker_id="w", lease_ttl_secs=1)
    assert [(job.scope, job.scope.name) for job in leased] == [
        (scope, scope.name) for scope in (ACME, WORLD, UNNAMED, Scope.SYSTEM)
    ]


def test_the_scope_of_a_job_has_its_name_after_a_restart(queue, reopen):
    for scope in (ACME, WORLD, UNNAMED, Scope.SYSTEM):
        queue.enqueue(scope, "embed")
    told = {job.scope: job.scope.name for job in reopen(queue).list()}
    assert told == {scope: scope.name for scope in (ACME, WORLD, UNNAMED, Scope.SYSTEM)}


def test_a_job_of_a_scope_that_got_its_name_later_has_it(queue):
    job = queue.enqueue(Scope(ACME.key), "embed")
    assert job.scope.name is None
    queue.enqueue(ACME, "embed")
    assert job.scope.name == "acme"


def test_the_scope_of_a_job_is_there_after_the_queue_is_closed(queue, engines):
    jobs = [queue.enqueue(scope, "embed") for scope in (ACME, UNNAMED)]
    queue.close()
    assert [job.scope for job in jobs] == [ACME, UNNAMED]


def test_of_very_many_scopes_each_job_has_its_own_name(queue):
    many = [Scope.named(f"tenant {n}") for n in range(1500)]
    for scope in many:
        queue.enqueue(scope, "embed")
    jobs = queue.lease_many(None, 1000, worker_id="w") + queue.lease_many(None, 1000, worker_id="w")
    for _ in range(2):
        assert [job.scope.name for job in jobs] == [scope.name for scope in many]


def test_the_store_is_told_once_per_queue_and_before_the_job(queue, engine, monkeypatch):
    calls = []
    for verb in ("name_scope", "enqueue", "enqueue_many"):
        monkeypatch.setattr(queue, "_engine", Watched(queue._engine, verb, calls))
    queue.enqueue(ACME, "embed")
    queue.enqueue_many(Scope.named("acme"), [JobSpec("embed")])
    queue.enqueue(UNNAMED, "embed")
    assert calls == ["name_scope", "enqueue", "enqueue_many", "enqueue"]


class Watched:
    """An engine that tells of the calls of one verb."""

    def __init__(self, engine, verb, calls):
        self._engine, self._verb, self._calls = engine, verb, calls

    def __getattr__(self, name):
        if name == self._verb:
            self._calls.append(name)
        return getattr(self._engine, name)


def test_a_refused_job_names_no_scope(queue):
    with pytest.raises(InvalidArgument):
        queue.enqueue(ACME, "")
    with pytest.raises(InvalidArgument):
        queue.enqueue_many(ACME, [JobSpec("embed"), JobSpec("")], atomic=True)
    assert queue.enqueue_many(ACME, []) == []
    queue.enqueue(Scope(ACME.key), "embed")
    assert names(queue) == {ACME: None}


def test_a_name_that_is_not_the_one_of_its_key_is_left_out(engine, clock):
    queue = Queue(engine, clock=clock)
    for scope in (ACME, WORLD, UNNAMED, Scope.SYSTEM):
        queue.enqueue(Scope(scope.key), "embed")
        for lie in ("globex", "", "a\nb", "\x1b[2J", "x" * 256):
            engine.name_scope(scope.key, lie)
            assert names(queue)[scope] is None
    queue.enqueue(ACME, "embed")
    assert names(queue)[ACME] == "acme"


def test_a_scope_cannot_be_built_with_the_name_of_another():
    for key in (UNNAMED.key, bytes(32)):
        with pytest.raises(InvalidScope):
            Scope(key, "acme")
    assert Scope(ACME.key, "acme").name == "acme"


def test_a_name_is_a_plain_str_and_cannot_be_changed():
    class Text(str):
        pass

    scope = Scope.named(Text("acme"))
    assert type(scope.name) is str
    with pytest.raises(AttributeError):
        scope.name = "globex"


def test_a_closed_engine_takes_and_tells_no_name(engine):
    engine.close()
    for call in (lambda: engine.name_scope(ACME.key, "acme"), engine.scopes):
        with pytest.raises(StoreClosed):
            call()
