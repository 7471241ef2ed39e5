"""Sessions that run at the same time record the same events."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import ExitStack

import stretto
from tests.support.recorded_events import Event, record

CATEGORY = stretto.Category("test.sessions")
TRACK = stretto.Track("elsewhere")


def nested() -> None:
    with CATEGORY.slice("outer"), CATEGORY.slice("inner", number=1):
        CATEGORY.instant("innermost")


OPERATIONS: list[Callable[[], object]] = [
    nested,
    lambda: CATEGORY.instant("plain"),
    lambda: CATEGORY.instant("arguments", a=1, b=2.5, c="text", d=True),
    lambda: CATEGORY.instant("long", text="x" * 300),
    lambda: CATEGORY.instant("converted", value=[1, {"a": None}]),
    lambda: CATEGORY.instant("track", track=TRACK),
    lambda: CATEGORY.instant("flow", flow=7),
    lambda: CATEGORY.instant(f"new {random.random()}"),
    lambda: CATEGORY.instant(f"again {random.randrange(5)}"),
    lambda: CATEGORY.counter("whole", random.randrange(1000)),
    lambda: CATEGORY.counter("share", random.random()),
]


def without_time(events: list[Event]) -> list[Event]:
    return [event._replace(timestamp=0, sequence=0) for event in events]


def test_five_sessions_record_the_same_events_in_the_same_order():
    random.seed(1)
    with ExitStack() as stack:
        recorded = [stack.enter_context(record()) for _ in range(5)]
        for _ in range(5000):
            random.choice(OPERATIONS)()
    first, *others = [without_time(each.events) for each in recorded]
    assert len(first) > 5000
    assert all(other == first for other in others)


def test_session_started_later_records_all_later_events():
    with record() as early:
        for operation in OPERATIONS * 3:
            operation()
        with CATEGORY.slice("around"), record() as late:
            random.seed(2)
            for operation in OPERATIONS * 100:
                operation()
    count = len(late.events)
    assert without_time(late.events) == without_time(early.events)[-count - 1 : -1]


def test_event_has_the_same_time_in_all_sessions():
    with record() as one, record() as other:
        for _ in range(3):
            CATEGORY.instant("plain")
    assert one.events[-1].timestamp == other.events[-1].timestamp
