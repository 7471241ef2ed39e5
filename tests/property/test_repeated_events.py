"""If an event is repeated, the binding writes it from caches; all repeats equal the first event."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import stretto
from tests.support.recorded_events import BEGIN, COUNTER, INSTANT, Event, record

CATEGORY = stretto.Category("test.repeated")
TRACKS = [None, stretto.Track("first"), stretto.Track("second", parent=stretto.Track("first"))]
REPEATS = 4

names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=300)
strings = st.builds(lambda text, times: text * times, st.text(max_size=30), st.integers(0, 200))
values = st.one_of(
    st.integers(-(2**70), 2**70), st.floats(allow_nan=False), st.booleans(), st.none(), strings
)
flows = st.one_of(
    st.none(), st.integers(1, 2**64 - 1), st.lists(st.integers(1, 2**64 - 1), max_size=3)
)
keywords = st.fixed_dictionaries(
    {},
    optional={
        "track": st.sampled_from(TRACKS),
        "flow": flows,
        "terminating_flow": flows,
        "one": values,
        "two": values,
    },
)


def copies(events: list[Event]) -> set[str]:
    """Return the set of the events as text, without their timestamps."""
    return {repr(event._replace(timestamp=0)) for event in events}


@given(names, keywords)
def test_repeated_instants_and_slices_equal_the_first_event(
    name: str, options: dict[str, Any]
) -> None:
    with record() as recorded:
        for _ in range(REPEATS):
            CATEGORY.instant(name, **options)
        for _ in range(REPEATS):
            with CATEGORY.slice(name, **options):
                pass
    for kind in (INSTANT, BEGIN):
        found = [event for event in recorded.events if event.kind == kind]
        assert len(found) == REPEATS
        assert len(copies(found)) == 1
        assert found[0].name == name


@given(names, st.one_of(st.integers(-(2**70), 2**70), st.floats(allow_nan=False)))
def test_repeated_counter_events_equal_the_first_event(name: str, value: float) -> None:
    with record() as recorded:
        for _ in range(REPEATS):
            CATEGORY.counter(name, value)
    found = [event for event in recorded.events if event.kind == COUNTER]
    assert len(found) == REPEATS
    assert len(copies(found)) == 1


def test_name_used_once_is_written_inline_and_repeated_name_is_interned() -> None:
    with record() as recorded:
        CATEGORY.instant("first event of the chunk")
        for number in range(200):
            CATEGORY.instant(f"unique name {number}")
            CATEGORY.instant(f"repeated name {number % 2}")
    assert [event.name for event in recorded.events[1::2]] == [
        f"unique name {number}" for number in range(200)
    ]
    assert all(recorded.trace.count(b"repeated name %d" % number) < 20 for number in range(2))


def test_repeated_events_with_a_track_stay_on_that_track() -> None:
    track = stretto.thread_track()
    with record() as recorded:
        for _ in range(REPEATS):
            CATEGORY.instant("here", track=track)
            CATEGORY.instant("below", track=stretto.Track("below", parent=track))
    here, below = ({event.track for event in recorded.events[start::2]} for start in (0, 1))
    assert len(here) == len(below) == 1
    assert here != below


@pytest.mark.parametrize("size", [2000, 2030, 2048, 3000, 4096])
def test_eight_long_strings_are_recorded_after_short_ones(size: int) -> None:
    """The total size of the strings is below or above 16383, the maximum of a two-byte size."""
    texts = ["", "short", "x" * size]
    with record() as recorded:
        for x in texts:
            CATEGORY.instant("event", a=x, b=x, c=x, d=x, e=x, f=x, g=x, h=x)
    assert [event.args for event in recorded.events] == [
        dict.fromkeys("abcdefgh", x) for x in texts
    ]
