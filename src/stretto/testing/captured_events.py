"""Captures the track events of the program under test as plain values.

::

    with CapturedEvents() as captured:
        handle_request()
    assert captured.names() == ["request"]
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from stretto import TracingSession
from stretto.analysis.track_events import BEGIN, COUNTER, END, INSTANT, TrackEvents
from stretto.protos.config import DataSourceConfig, TraceConfig, TrackEventConfig
from stretto.protos.trace import DebugAnnotation

if TYPE_CHECKING:
    from stretto.analysis.track_events import Event

_PLAIN_FIELDS = ("string_value", "int_value", "uint_value", "double_value", "bool_value")
KINDS = {BEGIN: "begin", END: "end", INSTANT: "instant", COUNTER: "counter"}


class CapturedEvent(NamedTuple):
    """A captured event."""

    kind: str
    """`begin` or `end` of a slice, `instant`, or `counter`."""
    name: str
    """Empty for the end of a slice, and for a counter: its track has the name."""
    category: str
    arguments: dict[str, Any]
    timestamp: int
    """Nanoseconds of CLOCK_BOOTTIME."""
    track: int
    """The uuid of its track."""
    flows: list[int]
    value: int | float | None
    """The value of a counter, else None."""


class CapturedEvents:
    """A context manager that records the events of this process while its block runs.

    Args:
        categories: Names of the categories to record; `*` matches any text. By default all
            categories except those with the tag `slow` or `debug`.
        buffer_kb: Size of the buffer in KiB. If the block writes more, its oldest events are lost.

    Attributes:
        trace: The bytes of the trace; empty before the block has ended.
        events: The events of the trace, sorted by time; empty before the block has ended.
    """

    def __init__(self, *categories: str, buffer_kb: int = 16384) -> None:
        wanted = TrackEventConfig(enabled_categories=list(categories or ("*",)))
        if categories:
            wanted.disabled_categories = ["*"]
        source = DataSourceConfig(name="track_event", track_event_config=wanted)
        self._session = TracingSession(
            TraceConfig(
                buffers=[TraceConfig.BufferConfig(size_kb=buffer_kb)],
                data_sources=[TraceConfig.DataSource(config=source)],
            )
        )
        self.trace = b""
        self.events: list[CapturedEvent] = []

    def __enter__(self) -> Self:
        self._session.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._session.stop()
        self.trace = self._session.read()
        self._session.close()
        events = (_captured(event) for event in TrackEvents(io.BytesIO(self.trace)))
        self.events = sorted(events, key=lambda event: event.timestamp)

    def names(self, kind: str = "begin") -> list[str]:
        """Return the names of the events of a kind, ordered by time."""
        return [event.name for event in self.events if event.kind == kind]


def _captured(event: Event) -> CapturedEvent:
    return CapturedEvent(
        KINDS.get(event.kind, ""),
        event.name,
        ",".join(event.categories),
        dict(_argument(DebugAnnotation.decode(each), event) for each in event.annotations),
        event.timestamp,
        event.track,
        event.flows,
        event.value,
    )


def _argument(annotation: DebugAnnotation, event: Event) -> tuple[str, Any]:
    """Return the name and the value of an argument."""
    iid = annotation.name_iid
    return event.names[iid] if iid else annotation.name, _value(annotation, event)


def _value(annotation: DebugAnnotation, event: Event) -> Any:
    """Return a plain value: None, bool, int, float or str, or a list or dict of them."""
    if annotation.dict_entries:
        return dict(_argument(each, event) for each in annotation.dict_entries)
    if annotation.array_values:
        return [_value(each, event) for each in annotation.array_values]
    if annotation.has("string_value_iid"):
        return event.texts[annotation.string_value_iid]
    for field in _PLAIN_FIELDS:
        if annotation.has(field):
            return getattr(annotation, field)
    return None
