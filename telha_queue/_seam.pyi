"""The values that go through the seam, and the short way to them. `ext/_seam.pyx` says what each promises."""

from collections.abc import Callable, Iterable, Mapping
from typing import final

from telha_queue.errors import InvalidArgument
from telha_queue.job import JobRecord, JobSpec, Lease
from telha_queue.scope import Scope

class GuardedClock:
    """now = max(latest time seen, clock), at the pace of the monotonic clock while the wall clock is behind."""

    def __init__(self, clock: Callable[[], int] | None = None, *, start_us: int = 0) -> None: ...
    def __call__(self) -> int: ...
    def at(self, wall_us: int, monotonic_ns: int) -> int: ...
    def advance_to(self, at_us: int) -> int: ...

@final
class NewJob:
    """One job to be stored: `JobSpec` with its defaults filled and its arguments checked."""

    def __init__(
        self,
        kind: str,
        payload: bytes,
        priority: int,
        not_before: int | None,
        idempotency_key: str | None,
        max_attempts: int | None,
        headers: tuple[str, ...] | None = None,
        expires_at: int | None = None,
    ) -> None: ...
    @property
    def kind(self) -> str: ...
    @property
    def payload(self) -> bytes: ...
    @property
    def priority(self) -> int: ...
    @property
    def not_before(self) -> int | None: ...
    @property
    def idempotency_key(self) -> str | None: ...
    @property
    def max_attempts(self) -> int | None: ...
    @property
    def headers(self) -> tuple[str, ...] | None: ...
    @property
    def expires_at(self) -> int | None: ...

@final
class Token:
    """A lease as the seam sees it. `scope` is None when only the id is known."""

    def __init__(self, scope: bytes | None, job_id: bytes, worker_id: str, lease_generation: int) -> None: ...
    @property
    def scope(self) -> bytes | None: ...
    @property
    def job_id(self) -> bytes: ...
    @property
    def worker_id(self) -> str: ...
    @property
    def lease_generation(self) -> int: ...

def scope_key(scope: Scope) -> bytes: ...
def worker(worker_id: str) -> str: ...
def new_job(
    kind: str,
    payload: bytes,
    priority: int,
    not_before: int | None,
    delay_secs: float | None,
    idempotency_key: str | None,
    max_attempts: int | None,
    headers: Mapping[str, str] | None,
    expires_at: int | None,
    expires_secs: float | None,
    max_payload_bytes: int,
    now_us: int,
) -> NewJob: ...
def new_jobs(
    specs: Iterable[JobSpec], max_payload_bytes: int, now_us: int, atomic: bool
) -> list[NewJob | InvalidArgument]: ...
def token(lease: JobRecord | Lease) -> Token: ...
def tokens(leases: Iterable[JobRecord | Lease]) -> list[Token]: ...
