"""Settings of a queue: one immutable value, checked when it is built."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from telha_queue.errors import ConfigError, shown
from telha_queue.named import NamedTuple
from telha_queue.scope import exact_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ENV_PREFIX = "TELHA_JOBS_"
DURABILITIES = ("sync", "group", "os")

MAX_SECS = 10 * 365 * 24 * 3600
"""Longest span a setting or an argument may give: ten years."""
MAX_KIND_BYTES = 128
MAX_WORKER_ID_BYTES = 128
MAX_IDEMPOTENCY_KEY_BYTES = 255
MAX_DETAIL_BYTES = 4096
MAX_HEADERS = 16
MAX_HEADERS_BYTES = 1024
MAX_BATCH_JOBS = 1000
MAX_BATCH_BYTES = 16 * 1024 * 1024
MAX_CONTINUATION_BYTES = 1024 * 1024
HARD_PAYLOAD_BYTES = 64 * 1024 * 1024


class _Settings(NamedTuple):
    lease_ttl_secs: float = 300
    lease_grace_secs: float = 0
    max_attempts: int = 5
    max_crashes: int = 0
    reaper_interval_secs: float = 30
    backoff_base_secs: int = 10
    backoff_factor: int = 4
    backoff_cap_secs: int = 3600
    backoff_base_secs_by_kind: Mapping[str, int] = MappingProxyType({})
    durability: str = "sync"
    group_sync_ms: int = 50
    max_payload_bytes: int = 1024 * 1024
    memtable_bytes: int = 64 * 1024 * 1024
    block_cache_bytes: int = 32 * 1024 * 1024
    window_jobs: int = 4096


class QueueConfig(_Settings):
    """Settings of a queue. Raises ConfigError for a value outside its range, when it is built.

    lease_ttl_secs: how long a lease lasts without a heartbeat; more than 0.
    lease_grace_secs: how long after its deadline the reaper leaves a lease alone.
    max_attempts: attempts after which a job is dead, unless it has a ceiling of its own; 1 to 2^32 - 1.
    max_crashes: crashes after which a job is dead as poison though it has attempts left; 0, the default, is as many as
        it has attempts. Up to 2^32 - 1.
    reaper_interval_secs: time between two passes of the reaper; more than 0.
    backoff_base_secs: delay before the second attempt; whole seconds.
    backoff_factor: by what the delay grows from attempt to attempt; at least 1.
    backoff_cap_secs: no delay is longer, except for a kind whose own base is; whole seconds.
    backoff_base_secs_by_kind: bases for single kinds, matched whole; such a kind's cap is max(base, cap). The mapping
        is copied. Not read from the environment.
    durability: what acknowledged means: "sync" on disk, "group" within `group_sync_ms`, "os" handed to the operating
        system.
    group_sync_ms: pause between two fsyncs of mode "group": a power cut takes at most this and one fsync; 1 to 60,000.
    max_payload_bytes: largest payload accepted, and result, at most 64 MiB; and continuation, at most 1 MiB.
    memtable_bytes: RocksDB write buffer of the jobs, of which there may be two; side rows have a quarter each. At
        least 64 KiB.
    block_cache_bytes: RocksDB block cache, shared by all column families.
    window_jobs: ready jobs known in memory per scope and filter, some 64 bytes each, and 16 times as many gated ones;
        16 to 1,048,576.
    """

    __slots__ = ()

    if not TYPE_CHECKING:

        def __new__(cls, *args: Any, **kwargs: Any) -> QueueConfig:
            """Check every field, once, here."""
            try:
                given = super().__new__(cls, *args, **kwargs)
            except TypeError as error:
                raise ConfigError(str(error).partition(") ")[2] or str(error)) from None
            return tuple.__new__(cls, _checked(given).values())

        __new__.__wrapped__ = _Settings.__new__  # the signature that help() shows

        @classmethod
        def _make(cls, iterable: Iterable[Any]) -> QueueConfig:
            """A named tuple's own way to make another: checked, as the others are. `_replace` goes through here."""
            return cls(*iterable)

    def __reduce__(self) -> tuple[Any, ...]:
        # The bases as a dict: a view of one can be neither pickled nor copied.
        return type(self), tuple(dict(value) if isinstance(value, Mapping) else value for value in self)

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> QueueConfig:
        """Defaults overridden by TELHA_JOBS_* variables, such as TELHA_JOBS_LEASE_TTL_SECS=60.

        Raises ConfigError for a variable of that prefix that names no setting, and for a value that does not fit.
        """
        found = os.environ if environ is None else environ
        values: dict[str, Any] = {}
        for variable, text in found.items():
            if variable.startswith(ENV_PREFIX):
                field = variable[len(ENV_PREFIX) :].lower()
                values[field] = _parse(variable, field, text)
        return cls(**values)

    def replace(self, **changes: Any) -> QueueConfig:
        """A copy with some fields changed, checked again."""
        return type(self)(**{**self._asdict(), **changes})


def _parse(variable: str, field: str, text: str) -> float | str:
    default = _Settings._field_defaults.get(field)
    if default is None or isinstance(default, Mapping):
        raise ConfigError(f"{variable} names no setting")
    if isinstance(default, str):
        return text
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"{variable} is not a number: {shown(text)}") from None


def _checked(config: QueueConfig) -> dict[str, Any]:
    _within(config, "lease_ttl_secs", 0.001, MAX_SECS, whole=False)
    _within(config, "lease_grace_secs", 0, MAX_SECS, whole=False)
    _within(config, "max_attempts", 1, 2**32 - 1)
    _within(config, "max_crashes", 0, 2**32 - 1)
    _within(config, "reaper_interval_secs", 0.001, MAX_SECS, whole=False)
    _within(config, "backoff_base_secs", 0, MAX_SECS)
    _within(config, "backoff_factor", 1, 2**32 - 1)
    _within(config, "backoff_cap_secs", 0, MAX_SECS)
    _within(config, "group_sync_ms", 1, 60_000)
    _within(config, "max_payload_bytes", 0, HARD_PAYLOAD_BYTES)
    _within(config, "memtable_bytes", 64 * 1024, 2**34)
    _within(config, "block_cache_bytes", 0, 2**40)
    _within(config, "window_jobs", 16, 2**20)
    durability = exact_text(config.durability)
    if durability not in DURABILITIES:
        raise ConfigError(f"durability is one of {', '.join(DURABILITIES)}, not {shown(config.durability)}")
    by_kind = MappingProxyType(_bases(config.backoff_base_secs_by_kind))
    return config._asdict() | {"durability": durability, "backoff_base_secs_by_kind": by_kind}


def _bases(by_kind: Mapping[str, int]) -> dict[str, int]:
    if not isinstance(by_kind, Mapping):
        raise ConfigError("backoff_base_secs_by_kind maps kinds to whole seconds")
    bases = {}
    for kind, base in by_kind.items():
        text = exact_text(kind)
        if not text or not text.isprintable() or len(text.encode()) > MAX_KIND_BYTES:  # lone surrogates do not print
            raise ConfigError(
                f"a kind in backoff_base_secs_by_kind is printable text of 1 to {MAX_KIND_BYTES} bytes, "
                f"not {shown(kind)}"
            )
        if type(base) is not int or not 0 <= base <= MAX_SECS:
            raise ConfigError(
                f"backoff_base_secs_by_kind[{shown(text)}] is whole seconds from 0 to {MAX_SECS}, not {shown(base)}"
            )
        bases[text] = base
    return bases


def _within(config: QueueConfig, field: str, low: float, high: float, *, whole: bool = True) -> None:
    value = getattr(config, field)
    kinds = (int,) if whole else (int, float)
    if type(value) not in kinds or not low <= value <= high:
        number = "a whole number" if whole else "a number"
        raise ConfigError(f"{field} is {number} from {low} to {high}, not {shown(value)}")
