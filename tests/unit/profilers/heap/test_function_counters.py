"""Counter tracks of the functions that hold or allocate most memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stretto import _pyhooks
from stretto.profilers.heap import function_counters
from stretto.profilers.heap.function_counters import MAX_TRACKS, TOP, FunctionCounters

if TYPE_CHECKING:
    from stretto.protos.trace import TracePacket


class Written:
    """The values by the names of their tracks, in order."""

    def __init__(self) -> None:
        self.values: dict[str, list[int]] = {}
        self.descriptions = 0
        self._names: dict[int, str] = {}

    def __call__(self, packet: TracePacket) -> None:
        if packet.has("track_descriptor"):
            self.descriptions += 1
            self._names[packet.track_descriptor.uuid] = packet.track_descriptor.name
        else:
            event = packet.track_event
            self.values.setdefault(self._names[event.track_uuid], []).append(event.counter_value)


@pytest.fixture
def totals(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[int, int]]:
    """What functions hold, and have allocated; the clock advances by one second per look."""
    found: dict[str, tuple[int, int]] = {}

    def both() -> tuple[dict[str, int], dict[str, int]]:
        held, allocated = ({n: v[i] for n, v in found.items()} for i in (0, 1))
        return held, allocated

    times = iter(range(0, 10**12, 10**9))
    monkeypatch.setattr(function_counters, "_totals", both)
    monkeypatch.setattr(function_counters.stretto, "now", lambda: next(times))
    return found


def test_values_are_written_when_they_change(totals: dict[str, tuple[int, int]]) -> None:
    written = Written()
    counters = FunctionCounters(written)
    totals["load"] = 100, 1000
    counters.look()
    counters.look()
    totals["load"] = 50, 1500
    counters.look()
    assert written.values == {"held by load": [100, 50], "allocated by load": [1000, 0, 500]}
    assert written.descriptions == 3  # The process, and two tracks.
    counters.clear()
    counters.look()
    assert written.descriptions == 6
    assert written.values["held by load"] == [100, 50, 50]


def test_tracks_are_those_of_the_top_functions_and_bounded(
    totals: dict[str, tuple[int, int]],
) -> None:
    written = Written()
    counters = FunctionCounters(written)
    totals.update({f"f{i}": (i, 0) for i in range(1, 40)})
    counters.look()
    assert sorted(written.values) == [f"held by f{i}" for i in range(40 - TOP, 40)]
    for i in range(1, 40):
        totals[f"f{i}"] = 1000 + i, 0
        counters.look()
        totals[f"f{i}"] = 1, 0
    assert len(written.values) == MAX_TRACKS


def test_functions_are_found_by_their_samples() -> None:
    written = Written()
    counters = FunctionCounters(written)
    kept: list[bytes] = []

    def keep() -> None:
        kept.append(bytes(1 << 20))

    _pyhooks.heap_start(4096)
    try:
        keep()
        counters.look()
        assert _pyhooks.heap_functions(1 << 40) == []
        kept.clear()
        counters.look()
    finally:
        _pyhooks.heap_stop()
    (name,) = [name for name in written.values if "keep" in name and name.startswith("held")]
    assert name.endswith(".keep (test_function_counters.py)")
    assert [value >> 20 for value in written.values[name]] == [1, 0]
    assert _pyhooks.heap_functions(0) == []
