"""Tasks: a kind of job, the function that does it, and what is to be known of it. Knows no worker.

    @task("ingest:pdf", timeout_secs=600, max_attempts=4)
    def ingest(job: Job) -> None: ...                       # job.payload is bytes

    @task("resize", codec=JSON, process=True)
    def resize(job: Job, path: str, *, width: int) -> None: ...

    ingest.enqueue(queue, scope, b"reports/q3.pdf")
    resize.enqueue(queue, scope, "cat.png", width=300)

The function stays what it is: call it, and it is called. Type checkers see its parameters in `enqueue` too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from telha_queue import arguments as check
from telha_queue.config import MAX_KIND_BYTES
from telha_queue.errors import ConfigError, InvalidArgument
from telha_queue.job import JobRecord, JobSpec
from telha_queue.worker import tracing
from telha_queue.worker.codecs import BadPayload, Codec, ResultCodec
from telha_queue.worker.job import Job

if TYPE_CHECKING:
    from typing import Self

    from telha_queue.queue import Queue
    from telha_queue.scope import Scope
    from telha_queue.worker.periodic import Recurrence

P = ParamSpec("P")
R = TypeVar("R")


class _Same(Enum):
    """Stands for an argument that was not given, where None means something."""

    SAME = 0


_SAME = _Same.SAME


class Limits:
    """How long, how many, and where: what a worker asks of a task."""

    __slots__ = ("concurrency", "is_async", "is_process", "progress_secs", "retries_timeout", "timeout_secs")

    def __init__(
        self,
        *,
        timeout_secs: float | None,
        progress_secs: float | None,
        retries_timeout: bool,
        concurrency: int | None,
        is_async: bool,
        is_process: bool,
    ) -> None:
        for name, secs in (("timeout_secs", timeout_secs), ("progress_secs", progress_secs)):
            if secs is not None and not 0 < secs <= 365 * 86400:
                raise ConfigError(f"{name} is more than 0 and at most a year, not {secs!r}")
        if concurrency is not None and (type(concurrency) is not int or concurrency < 1):
            raise ConfigError(f"concurrency of a task is at least 1, not {concurrency!r}")
        if is_async and is_process:
            raise ConfigError("a task is async or in a process, not both")
        self.timeout_secs = timeout_secs
        self.progress_secs = progress_secs
        self.retries_timeout = retries_timeout
        self.concurrency = concurrency
        self.is_async = is_async
        self.is_process = is_process


class _Task(Generic[R]):
    """What both kinds of task have."""

    def __init__(
        self, kind: str, function: Callable[..., R], limits: Limits, defaults: dict[str, Any], keeps_result: bool
    ) -> None:
        self.kind = kind
        self.function = function
        self.limits = limits
        self.defaults = defaults
        """Keyword arguments of `Queue.enqueue`."""
        self.keeps_result = keeps_result
        """Whether what the function returns is kept with the job."""
        self.recurrence: Recurrence | None = None
        """When it recurs, if it does: see `periodic.py`."""
        self.__name__ = getattr(function, "__name__", kind)
        self.__qualname__ = getattr(function, "__qualname__", kind)
        self.__module__ = getattr(function, "__module__", __name__)
        self.__doc__ = function.__doc__
        self.__wrapped__ = function

    def options(
        self,
        *,
        priority: int | _Same = _SAME,
        not_before: int | _Same | None = _SAME,
        delay_secs: float | _Same | None = _SAME,
        idempotency_key: str | _Same | None = _SAME,
        max_attempts: int | _Same | None = _SAME,
        headers: Mapping[str, str] | _Same | None = _SAME,
        expires_at: int | _Same | None = _SAME,
        expires_secs: float | _Same | None = _SAME,
    ) -> Self:
        """The same task with other arguments for `Queue.enqueue`; what is not given stays."""
        given = {
            "priority": priority,
            "not_before": not_before,
            "delay_secs": delay_secs,
            "idempotency_key": idempotency_key,
            "max_attempts": max_attempts,
            "headers": headers,
            "expires_at": expires_at,
            "expires_secs": expires_secs,
        }
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        copy.defaults = {**self.defaults, **{name: value for name, value in given.items() if value is not _SAME}}
        return copy

    def _spec(self, payload: bytes) -> JobSpec:
        """One job of it; the trace under way goes along."""
        spec = JobSpec(self.kind, payload, **self.defaults)
        context = tracing.carried()
        return spec if context is None else spec._replace(headers={**(spec.headers or {}), **context})

    def _enqueue(self, queue: Queue, scope: Scope, payload: bytes) -> JobRecord:
        return queue.enqueue(scope, **self._spec(payload)._asdict())

    def __repr__(self) -> str:
        return f"<task {self.kind}: {self.__module__}.{self.__qualname__}>"


class BytesTask(_Task[R]):
    """A task whose function reads `job.payload` by itself."""

    def __call__(self, job: Job) -> R:
        return self.function(job)

    def run(self, job: Job) -> R:
        """Call the function for a job."""
        return self.function(job)

    def encoded(self, returned: object) -> bytes | None:
        """The result that is kept. Raises TypeError for what is not bytes, nor None for none."""
        if returned is not None and not isinstance(returned, (bytes, bytearray, memoryview)):
            raise TypeError(f"a task without a codec returns bytes or None, not {type(returned).__name__}")
        return None if returned is None else bytes(returned)

    def spec(self, payload: bytes = b"") -> JobSpec:
        """One job of it for `Queue.enqueue_many`."""
        return self._spec(payload)

    def enqueue(self, queue: Queue, scope: Scope, payload: bytes = b"") -> JobRecord:
        """Enqueue a job of it; see `Queue.enqueue`."""
        return self._enqueue(queue, scope, payload)


class Task(_Task[R], Generic[P, R]):
    """A task whose arguments travel in the payload, by its codec."""

    def __init__(
        self,
        kind: str,
        function: Callable[..., R],
        limits: Limits,
        defaults: dict[str, Any],
        keeps_result: bool,
        codec: Codec,
    ) -> None:
        super().__init__(kind, function, limits, defaults, keeps_result)
        self.codec = codec
        if keeps_result and not isinstance(codec, ResultCodec):
            raise ConfigError(f"the codec {codec.name} has no encode_result and decode_result, for keeps_result")
        self._signature = _parameters(function)

    def __call__(self, job: Job, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(job, *args, **kwargs)

    def run(self, job: Job) -> R:
        """Call the function for a job. Raises BadPayload when the payload is not a call of it."""
        try:
            arguments = self.codec.decode(job.payload)
        except Exception as error:  # a codec is somebody's; what it cannot read is no payload of ours
            raise BadPayload(f"not {self.codec.name}: {error}") from error
        try:
            self._signature.bind(**arguments)
        except TypeError as error:
            raise BadPayload(f"the arguments do not fit {self.__qualname__}: {error}") from None
        return self.function(job, **arguments)

    def encoded(self, returned: object) -> bytes:
        """The result that is kept; whatever the codec raises for what it has no form for."""
        assert isinstance(self.codec, ResultCodec)
        return self.codec.encode_result(returned)

    def result_of(self, record: JobRecord) -> Any:
        """What the function returned for that job, as the codec gives it back. Raises InvalidArgument if it has none.

        For records of `Queue.wait` and `Queue.get`.
        """
        if record.result is None or not isinstance(self.codec, ResultCodec):
            raise InvalidArgument(f"job {record.job_id} is {record.state.name.lower()} and has no result of {self!r}")
        return self.codec.decode_result(record.result)

    def spec(self, *args: P.args, **kwargs: P.kwargs) -> JobSpec:
        """One job of it for `Queue.enqueue_many`. Raises TypeError for arguments that the function does not take."""
        return self._spec(self._payload(args, kwargs))

    def enqueue(self, queue: Queue, scope: Scope, *args: P.args, **kwargs: P.kwargs) -> JobRecord:
        """Enqueue a call of it; see `Queue.enqueue`. Raises TypeError for arguments that it does not take."""
        return self._enqueue(queue, scope, self._payload(args, kwargs))

    def _payload(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        return self.codec.encode(self._signature.bind(*args, **kwargs).arguments)


AnyTask = BytesTask[Any] | Task[..., Any]


@overload
def task(
    kind: str,
    *,
    codec: None = None,
    process: bool = ...,
    timeout_secs: float | None = ...,
    progress_secs: float | None = ...,
    retries_timeout: bool = ...,
    concurrency: int | None = ...,
    priority: int = ...,
    max_attempts: int | None = ...,
    keeps_result: bool = ...,
) -> Callable[[Callable[[Job], R]], BytesTask[R]]: ...


@overload
def task(
    kind: str,
    *,
    codec: Codec,
    process: bool = ...,
    timeout_secs: float | None = ...,
    progress_secs: float | None = ...,
    retries_timeout: bool = ...,
    concurrency: int | None = ...,
    priority: int = ...,
    max_attempts: int | None = ...,
    keeps_result: bool = ...,
) -> Callable[[Callable[Concatenate[Job, P], R]], Task[P, R]]: ...


def task(
    kind: str,
    *,
    codec: Codec | None = None,
    process: bool = False,
    timeout_secs: float | None = None,
    progress_secs: float | None = None,
    retries_timeout: bool = True,
    concurrency: int | None = None,
    priority: int = 128,
    max_attempts: int | None = None,
    keeps_result: bool = False,
) -> Any:
    """Make a function the handler of a kind of job.

    A plain function runs in a thread, an `async def` on the worker's event loop, and with `process=True` in a process
    of its own, started with spawn. `timeout_secs` bounds one attempt, `progress_secs` the time between two calls of
    `job.progress()`; an attempt that goes beyond either is stopped and failed with cause timeout, and is the job's last
    one unless `retries_timeout`. At most `concurrency` jobs of it run in one worker. `priority` and `max_attempts` are
    those of its jobs. With `keeps_result`, what it returns is kept as the result of its job: by the codec, or as the
    bytes that it is. Raises ConfigError.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        if not callable(function):
            raise ConfigError("@task stands before a function; give it the kind: @task('ingest:pdf')")
        call = type(function).__call__ if not inspect.isroutine(function) else function
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise ConfigError(f"{function!r} is a generator: calling it does nothing")
        limits = Limits(
            timeout_secs=timeout_secs,
            progress_secs=progress_secs,
            retries_timeout=retries_timeout,
            concurrency=concurrency,
            is_async=inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call),
            is_process=process,
        )
        defaults = {"priority": priority, "max_attempts": max_attempts}
        if codec is None:
            return BytesTask(kind, function, limits, defaults, keeps_result)
        return Task(kind, function, limits, defaults, keeps_result, codec)

    if not isinstance(kind, str):
        raise ConfigError("@task takes the kind of its jobs: @task('ingest:pdf')")
    try:
        check.name("kind", kind, MAX_KIND_BYTES)
    except InvalidArgument as error:
        raise ConfigError(str(error)) from None
    return decorate


def _parameters(function: Callable[..., Any]) -> inspect.Signature:
    """Those behind the job; each must have a name that a payload can give."""
    signature = inspect.signature(function)
    behind = list(signature.parameters.values())[1:]
    for parameter in behind:
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ConfigError(f"{function.__qualname__}: {parameter} has no name of its own to travel under")
    return signature.replace(parameters=behind)
