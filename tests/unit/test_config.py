"""Settings: checked on every way to build them, and never changed afterwards."""

from __future__ import annotations

import copy
import inspect
import pickle
import pydoc

import pytest

from telha_queue.config import MAX_SECS, QueueConfig
from telha_queue.errors import ConfigError

HUGE = 10**5000
BASES = "backoff_base_secs_by_kind"
NUMBERS = [field for field in QueueConfig._fields if field not in (BASES, "durability")]


class Text(str):
    """A str that passes every check of its own making."""

    def __hash__(self):
        return 0

    def __eq__(self, other):
        return True

    def isprintable(self):
        return True

    def encode(self, *_):
        return b"x"


@pytest.mark.parametrize("field", NUMBERS)
def test_a_number_too_long_to_print_is_refused_like_any_other(field):
    for bad in (HUGE, -HUGE):
        with pytest.raises(ConfigError, match=f"{field} is a .* not an int of {HUGE.bit_length()} bits"):
            QueueConfig(**{field: bad})
        with pytest.raises(ConfigError, match=field):
            QueueConfig.from_env({f"TELHA_JOBS_{field.upper()}": "9" * 5000})


def test_other_fields_refuse_it_too():
    for settings in ({"durability": HUGE}, {BASES: HUGE}, {BASES: {"k": HUGE}}, {BASES: {HUGE: 1}}):
        with pytest.raises(ConfigError):
            QueueConfig(**settings)


def test_a_long_value_is_cut_in_the_message():
    with pytest.raises(ConfigError) as caught:
        QueueConfig.from_env({"TELHA_JOBS_MAX_ATTEMPTS": "x" * 10_000})
    assert len(str(caught.value)) < 200


def test_a_named_tuples_own_ways_check_too():
    config = QueueConfig(max_attempts=3)
    assert config._replace(max_attempts=4) == config.replace(max_attempts=4) == QueueConfig(max_attempts=4)
    assert QueueConfig._make(config) == config
    for build in (
        lambda: config._replace(max_attempts=0),
        lambda: config.replace(max_attempts=0),
        lambda: config._replace(backoff_base_secs_by_kind={"": 1}),
        lambda: QueueConfig._make([*config[:2], 0, *config[3:]]),
        lambda: QueueConfig._make([*config, 1]),
    ):
        with pytest.raises(ConfigError):
            build()


@pytest.mark.parametrize("kind", ["", "a\0b", "\ud800", "\x1b[2J", "k" * 129, "ä" * 65, b"embed", 7, None])
def test_a_kind_that_no_job_can_have_is_refused(kind):
    for given in (kind, Text(kind)) if isinstance(kind, str) else (kind,):
        with pytest.raises(ConfigError, match=BASES):
            QueueConfig(backoff_base_secs_by_kind={given: 1})


@pytest.mark.parametrize("base", [-1, MAX_SECS + 1, 1.5, True, "1", None])
def test_a_base_is_whole_seconds(base):
    with pytest.raises(ConfigError, match="embed"):
        QueueConfig(backoff_base_secs_by_kind={"embed": base})


def test_the_bases_are_the_callers_no_longer():
    given = {"embed": 1, Text("ocr"): 2}
    config = QueueConfig(backoff_base_secs_by_kind=given)
    given["embed"] = "later"
    given.clear()
    kept = config.backoff_base_secs_by_kind
    assert dict(kept) == {"embed": 1, "ocr": 2}
    assert {type(kind) for kind in kept} == {str}
    with pytest.raises(TypeError):
        kept["embed"] = 3
    assert config.replace(max_attempts=1).backoff_base_secs_by_kind == kept


def test_durability_is_one_of_its_words():
    assert type(QueueConfig(durability=str.__new__(Text, "os")).durability) is str
    for bad in (Text("fast"), "", None, 0):
        with pytest.raises(ConfigError):
            QueueConfig(durability=bad)


@pytest.mark.parametrize("config", [QueueConfig(), QueueConfig(max_attempts=3, backoff_base_secs_by_kind={"ocr": 2})])
def test_it_can_be_copied_and_pickled(config):
    pickled = [pickle.loads(pickle.dumps(config, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]
    for other in (copy.copy(config), copy.deepcopy(config), *pickled):
        assert (type(other), other) == (QueueConfig, config)


def test_help_lists_every_setting_with_its_default():
    signature = inspect.signature(QueueConfig)
    assert {name: parameter.default for name, parameter in signature.parameters.items()} == QueueConfig()._asdict()
    text = pydoc.plain(pydoc.render_doc(QueueConfig))
    assert "lease_ttl_secs=300" in text
    assert [field for field in QueueConfig._fields if f"{field}: " not in QueueConfig.__doc__] == []
