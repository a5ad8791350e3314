"""Stores of earlier releases are read; and a store in which a row is not as it was is found."""

from __future__ import annotations

from tests.torture import api_format, runner


def test_stores_of_earlier_releases_are_read_and_go_on():
    runner.check(api_format.HARNESS)


def test_a_row_that_is_not_as_it_was_is_found(tmp_path):
    store = api_format.Store("store_v1", tmp_path)
    store.expected["rows"][3][1] = store.expected["rows"][4][1]
    assert api_format.read_as_it_is(store) == ["1 rows differ"]
