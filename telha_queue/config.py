"""Settings of a queue: one immutable value, checked when it is built."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType

from telha_queue.errors import ConfigError
from telha_queue.named import NamedTuple

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
MAX_BATCH_JOBS = 1000
MAX_BATCH_BYTES = 16 * 1024 * 1024
HARD_PAYLOAD_BYTES = 64 * 1024 * 1024


class _Settings(NamedTuple):
    lease_ttl_secs: float = 300
    """How long a lease lasts without a heartbeat. More than 0."""
    lease_grace_secs: float = 0
    """How long after its deadline the reaper leaves a lease alone."""
    max_attempts: int = 5
    """Attempts after which a job is dead, unless it has a ceiling of its own. 1 to 2^32 - 1."""
    reaper_interval_secs: float = 30
    """Time between two passes of the reaper. More than 0."""
    backoff_base_secs: int = 10
    """Delay before the second attempt; whole seconds."""
    backoff_factor: int = 4
    """By what the delay grows from attempt to attempt; at least 1."""
    backoff_cap_secs: int = 3600
    """No delay is longer, except for a kind whose own base is."""
    backoff_base_secs_by_kind: Mapping[str, int] = MappingProxyType({})
    """Bases for single kinds, matched whole; such a kind's cap is max(base, cap). Not read from the environment."""
    durability: str = "sync"
    """What acknowledged means: "sync" on disk, "group" within `group_sync_ms`, "os" handed to the operating system."""
    group_sync_ms: int = 50
    """Pause between two fsyncs of mode "group": a power cut takes at most this and one fsync. 1 to 60,000."""
    max_payload_bytes: int = 1024 * 1024
    """Largest payload and continuation accepted. At most 64 MiB."""
    memtable_bytes: int = 64 * 1024 * 1024
    """RocksDB write buffer of the jobs, of which there may be two; side rows have a quarter each. At least 64 KiB."""
    block_cache_bytes: int = 32 * 1024 * 1024
    """RocksDB block cache, shared by all column families."""


class QueueConfig(_Settings):
    """Settings of a queue; see each field. Raises ConfigError for a value outside its range, when it is built."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def __new__(cls, *args: Any, **kwargs: Any) -> QueueConfig:
            """Check every field, once, here."""
            try:
                config = super().__new__(cls, *args, **kwargs)
            except TypeError as error:
                raise ConfigError(str(error).partition(") ")[2] or str(error)) from None
            _check(config)
            return config

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
        raise ConfigError(f"{variable} is not a number: {text!r}") from None


def _check(config: QueueConfig) -> None:
    _within(config, "lease_ttl_secs", 0.001, MAX_SECS, whole=False)
    _within(config, "lease_grace_secs", 0, MAX_SECS, whole=False)
    _within(config, "max_attempts", 1, 2**32 - 1)
    _within(config, "reaper_interval_secs", 0.001, MAX_SECS, whole=False)
    _within(config, "backoff_base_secs", 0, MAX_SECS)
    _within(config, "backoff_factor", 1, 2**32 - 1)
    _within(config, "backoff_cap_secs", 0, MAX_SECS)
    _within(config, "group_sync_ms", 1, 60_000)
    _within(config, "max_payload_bytes", 0, HARD_PAYLOAD_BYTES)
    _within(config, "memtable_bytes", 64 * 1024, 2**34)
    _within(config, "block_cache_bytes", 0, 2**40)
    if config.durability not in DURABILITIES:
        raise ConfigError(f"durability is one of {', '.join(DURABILITIES)}, not {config.durability!r}")
    by_kind = config.backoff_base_secs_by_kind
    if not isinstance(by_kind, Mapping):
        raise ConfigError("backoff_base_secs_by_kind maps kinds to whole seconds")
    for kind, base in by_kind.items():
        if not isinstance(kind, str) or type(base) is not int or not 0 <= base <= MAX_SECS:
            raise ConfigError(f"backoff_base_secs_by_kind[{kind!r}] is not a number of whole seconds: {base!r}")


def _within(config: QueueConfig, field: str, low: float, high: float, *, whole: bool = True) -> None:
    value = getattr(config, field)
    kinds = (int,) if whole else (int, float)
    if type(value) not in kinds or not low <= value <= high:
        number = "a whole number" if whole else "a number"
        raise ConfigError(f"{field} is {number} from {low} to {high}, not {value!r}")
