"""Errors and the values that travel with them outlive copying, pickling and a trip to another process."""

from __future__ import annotations

import copy
import pickle
from uuid import UUID

import pytest

from telha_queue import errors
from telha_queue.errors import JobError, StorageError, StoreForked, shown
from telha_queue.job import JobSpec, Lease
from telha_queue.scope import Scope

JOB = UUID(int=7)
BY_HAND = [
    errors.PayloadTooLarge("payload", size_bytes=2, limit_bytes=1),
    errors.JobNotFound(JOB),
    errors.LeaseConflict(JOB, held=2, presented=1, state=1),
    errors.InvalidTransition(JOB, verb="retry", state=2),
    errors.NotEnded(JOB, state=1, waited_secs=0.5),
    errors.StorageError("the disk is gone", outcome="unknown"),
    errors.StorageFull("the disk is full", outcome="unknown"),
    errors.StoreLocked("/queue", 4711),
    errors.StoreClosed(),
    errors.StoreForked(),
]
KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, JobError)]
PLAIN = [kind("text") for kind in KINDS if kind not in {type(error) for error in BY_HAND}]
WAYS = [copy.copy, copy.deepcopy] + [
    lambda value, protocol=protocol: pickle.loads(pickle.dumps(value, protocol))
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("error", BY_HAND + PLAIN, ids=lambda error: type(error).__name__)
def test_an_error_is_the_same_error_elsewhere(error, way):
    error.args = (f"job 1: {error.args[0]}",)  # as a batch names its items
    other = way(error)
    assert other is not error
    assert (type(other), str(other), other.args, vars(other)) == (type(error), str(error), error.args, vars(error))


def test_notes_go_along():
    error = errors.JobNotFound(JOB)
    error.add_note("in the nightly run")
    assert pickle.loads(pickle.dumps(error)).__notes__ == ["in the nightly run"]


def test_an_error_of_a_user_goes_along():
    error = Mine(3)
    other = pickle.loads(pickle.dumps(error))
    assert (type(other), str(other), other.outcome, other.disk) == (Mine, "disk 3 is gone", "unknown", 3)


class Mine(StorageError):
    def __init__(self, disk):
        super().__init__(f"disk {disk} is gone", outcome="unknown")
        self.disk = disk


@pytest.mark.parametrize("way", WAYS)
def test_scopes_specs_and_leases_go_along(way):
    for scope in (Scope.SYSTEM, Scope.named("acme"), Scope.tenant(UUID(int=1), UUID(int=2))):
        other = way(scope)
        assert (other, other.name, str(other), hash(other)) == (scope, scope.name, str(scope), hash(scope))
        with pytest.raises(AttributeError):
            other.key = bytes(32)
        lease = Lease(scope, JOB, "w", 3)
        assert way(lease) == lease
    assert way(JobSpec("embed", b"x")) == JobSpec("embed", b"x")


def test_a_fork_is_told_what_to_do_instead():
    assert str(StoreForked()).endswith(
        "; a queue belongs to one process: run workers as threads of it, or open another queue in a process started "
        "with spawn"
    )


class Silent:
    def __repr__(self):
        raise RuntimeError


def test_any_value_can_be_shown():
    for value, text in (  # not parametrized: pytest prints the values that it makes names of
        (7, "7"),
        (2**64, "18446744073709551616"),
        (-(10**5000), f"an int of {(10**5000).bit_length()} bits"),
        ([10**5000], "a list"),
        ("x" * 100, f"'{'x' * 76}..."),
        (Silent(), "a Silent"),
    ):
        assert shown(value) == text
