"""Fuzzed rows at a small scale, where there is a compiler that can; and a key that is read wrongly is found."""

from __future__ import annotations

from random import Random

import pytest

from tests.torture import native, runner


def test_bytes_that_nobody_wrote_are_refused_or_read_and_written_again():
    result = runner.run(native.FUZZ, "ci", runner.new_seed())
    if result.skipped:
        pytest.skip(result.skipped)
    assert result.passed, result.faults
    assert result.cycles > 0


def test_a_key_that_is_read_wrongly_is_found(monkeypatch):
    assert native.fuzz_keys(Random(1), 2000) == []
    monkeypatch.setattr(native, "encode_key", lambda *parts: bytes(58))
    assert native.fuzz_keys(Random(1), 100)
