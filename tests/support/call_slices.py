"""Reads the slices of a trace as nested calls, and predicts them with a simple model."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import stretto
from stretto.protos.config import DataSourceConfig, TraceConfig, TrackEventConfig
from stretto.testing.decoded_packets import decode_packets

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
OPEN = "open"

TESTS = Path(__file__).parent.parent
PROFILED = [str(TESTS / "unit" / "profilers"), str(TESTS / "support" / "call_programs.py")]
"""The code that these tests look at."""
_PROFILED_MODULE = re.compile(r"^tests\.(unit\.profilers|support)\.\w+\.")

Call = tuple[str, list["Call"]]
"""A call: qualified name and the calls in it."""


def session_config(*categories: str) -> TraceConfig:
    """Return a config that records exactly these categories."""
    events = TrackEventConfig(enabled_categories=list(categories), disabled_categories=["*"])
    source = DataSourceConfig(name="track_event", track_event_config=events)
    return TraceConfig(
        buffers=[TraceConfig.BufferConfig(size_kb=16 * 1024)],
        data_sources=[TraceConfig.DataSource(config=source)],
    )


class Event:
    """A track event, with interned strings resolved.

    The names of the tests' functions are shortened: they don't contain the module.
    """

    def __init__(self, sequence: int, event: Any, strings: dict[tuple[str, int], Any]) -> None:
        self.sequence = sequence
        self.type = event.type
        self.track = event.track_uuid or 0
        name = event.name or strings.get(("name", event.name_iid or 0), "")
        self.name = _PROFILED_MODULE.sub("", name)
        self.categories = [strings[("category", iid)] for iid in event.category_iids]
        self.location = strings.get(("location", event.source_location_iid or 0))
        log = event.log_message
        self.log = log and (log.prio, strings[("log", log.body_iid)])
        self.flows = list(event.flow_ids)
        self.terminating_flows = list(event.terminating_flow_ids)
        self.args = dict(_argument(annotation, strings) for annotation in event.debug_annotations)


def _argument(annotation: Any, strings: dict[tuple[str, int], Any]) -> tuple[str, Any]:
    name = annotation.name or strings[("argument", annotation.name_iid or 0)]
    if annotation.string_value_iid:
        return name, strings[("text", annotation.string_value_iid)]
    for field in ("string_value", "int_value", "uint_value", "bool_value"):
        value = getattr(annotation, field)
        if value:
            return name, value
    return name, getattr(annotation, "int_value", None) or 0


def _intern(data: Any, strings: dict[tuple[str, int], Any]) -> None:
    for entry in data.event_names:
        strings[("name", entry.iid)] = entry.name
    for entry in data.event_categories:
        strings[("category", entry.iid)] = entry.name
    for entry in data.debug_annotation_names:
        strings[("argument", entry.iid)] = entry.name
    for entry in data.debug_annotation_string_values:
        strings[("text", entry.iid)] = entry.str.decode()
    for entry in data.log_message_body:
        strings[("log", entry.iid)] = entry.body
    for entry in data.source_locations:
        strings[("location", entry.iid)] = (entry.file_name, entry.line_number)


def track_events(trace: bytes) -> list[Event]:
    """Return all track events of a trace, in the order of their packets."""
    events = []
    states: dict[int, dict[tuple[str, int], Any]] = {}
    for packet in decode_packets(trace):
        sequence = packet.trusted_packet_sequence_id or 0
        if (packet.sequence_flags or 0) & 1:
            states[sequence] = {}
        strings = states.setdefault(sequence, {})
        if packet.interned_data is not None:
            _intern(packet.interned_data, strings)
        if packet.track_event is not None:
            events.append(Event(sequence, packet.track_event, strings))
    return events


def nest(events: list[Event]) -> list[Call]:
    """Return the slices of one track as nested calls; OPEN marks a slice without an end."""
    roots: list[Call] = []
    stack: list[list[Call]] = [roots]
    for event in events:
        if event.type == BEGIN:
            call: Call = (event.name, [])
            stack[-1].append(call)
            stack.append(call[1])
        elif event.type == END:
            assert len(stack) > 1, "an END without its BEGIN"
            stack.pop()
    for inner in stack[1:]:
        inner.append((OPEN, []))
    return roots


class Recorded:
    """The trace of a `record` block, and its slices."""

    def __init__(self) -> None:
        self.trace = b""

    @property
    def events(self) -> list[Event]:
        return track_events(self.trace)

    def calls(self, sequence: int | None = None) -> list[Call]:
        """Return the slices of one packet sequence; by default, a single one has slices."""
        by_sequence: dict[int, list[Event]] = {}
        for event in self.events:
            if event.type in (BEGIN, END):
                by_sequence.setdefault(event.sequence, []).append(event)
        if sequence is None:
            assert len(by_sequence) <= 1, sorted(by_sequence)
            return nest(next(iter(by_sequence.values()), []))
        return nest(by_sequence.get(sequence, []))

    def all_calls(self) -> list[list[Call]]:
        """Return the slices of each packet sequence with events."""
        return [self.calls(sequence) for sequence in dict.fromkeys(e.sequence for e in self.events)]


@contextmanager
def recorded(*categories: str) -> Iterator[Recorded]:
    """Record these categories during a `with` block."""
    result = Recorded()
    session = stretto.TracingSession(session_config(*categories))
    session.setup(None)
    session.start()
    try:
        yield result
    finally:
        session.stop()
        result.trace = session.read()
        session.close()


def expected_calls(function: Callable[[], object]) -> list[Call]:
    """Call `function` under sys.setprofile; return the calls of code in the files PROFILED."""
    roots: list[Call] = []
    stack: list[list[Call]] = [roots]

    def profile(frame: FrameType, what: str, _argument: object) -> None:
        if not frame.f_code.co_filename.startswith(tuple(PROFILED)):
            return
        if what == "call":
            call: Call = (frame.f_code.co_qualname, [])
            stack[-1].append(call)
            stack.append(call[1])
        elif what == "return":
            stack.pop()

    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(None)
    return roots
