"""Sorting of entries in memory and on disk."""

from __future__ import annotations

import random

import pytest

from stretto.analysis import spool as spool_module
from stretto.analysis.spool import Spool
from tests.support.descriptors import expect_new_descriptors, open_descriptors


@pytest.mark.parametrize("limit", [1, 7, 300, 10_000])
def test_entries_are_sorted_stably_by_key(limit: int) -> None:
    draw = random.Random(limit)
    entries = [((draw.randrange(50), draw.randrange(3)), (at, "x", None)) for at in range(1000)]
    with Spool(max_entries=limit) as spool:
        for key, value in entries:
            spool.add(key, value)
        assert len(spool) == 1000
        assert list(spool) == sorted(entries, key=lambda entry: entry[0])
        # Two iterations of a spool can run at the same time.
        pairs = zip(spool, spool, strict=True)
        assert all(first == second for first, second in pairs)


def test_sorted_values_keep_their_types() -> None:
    value = (1 << 70, -1, 0.5, True, "é\ud800", b"\0", None, (("nested", ()),))
    with Spool(max_entries=1) as spool:
        spool.add((1,), value)
        ((_, got),) = spool
    assert got == value
    assert [type(each) for each in got] == [type(each) for each in value]


def test_values_above_a_total_size_are_moved_to_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_module, "_MAX_BYTES", 1000)
    with Spool() as spool:
        for at in range(100):
            spool.add((-at,), (bytes(100),), 100)
        assert len(spool._entries) < 10
        assert [key for key, _ in spool] == [(-at,) for at in reversed(range(100))]


def test_closed_spool_leaves_no_descriptor_open() -> None:
    before = open_descriptors()
    with Spool(max_entries=1) as spool:
        spool.add((1,), ())
        expect_new_descriptors(before, 1)
    expect_new_descriptors(before, 0)
    assert list(spool) == []
