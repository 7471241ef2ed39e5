"""Perfetto's trace processor reads filtered traces of Stretto's service."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stretto.protos.config import DataSourceConfig, TraceConfig
from stretto.protos.trace import (
    DebugAnnotation,
    EventName,
    InternedData,
    Trace,
    TracePacket,
    TrackDescriptor,
    TrackEvent,
)
from stretto.protozero.filter import strings
from stretto.protozero.filter.schema import DENY, Annotation, FilterString, SchemaFilter
from stretto.testing.in_memory_session import InMemorySession
from tests.support.oracle import Oracle

RULE = TraceConfig.TraceFilter.StringFilterRule(
    policy=strings.MATCH_REDACT_GROUPS, regex_pattern="user (.*)"
)
SLICES = "select name, dur, extract_arg(arg_set_id, 'debug.password') from slice order by ts"


def packets() -> list[TracePacket]:
    """Return packets of a track with two slices; one name is interned, the other is inline."""
    track = TrackDescriptor(uuid=7, name="work")
    names = InternedData(event_names=[EventName(iid=1, name="frame")])
    secret = DebugAnnotation(name="password", string_value="12345")
    begin, end = TrackEvent.Type.TYPE_SLICE_BEGIN, TrackEvent.Type.TYPE_SLICE_END
    first = TracePacket(sequence_flags=1, track_descriptor=track)
    events = [
        TrackEvent(type=begin, track_uuid=7, name_iid=1, debug_annotations=[secret]),
        TrackEvent(type=end, track_uuid=7),
        TrackEvent(type=begin, track_uuid=7, name="user Anna"),
        TrackEvent(type=end, track_uuid=7),
    ]
    made = [
        TracePacket(timestamp=1000 + 10 * at, track_event=event, sequence_flags=2)
        for at, event in enumerate(events)
    ]
    made[0].interned_data = names
    return [first, *made]


def record(annotations: dict[str, Annotation] | None) -> bytes:
    """Record `packets()` with a trace filter made of these annotations; None means no filter."""
    config = TraceConfig(
        buffers=[TraceConfig.BufferConfig(size_kb=64)],
        data_sources=[TraceConfig.DataSource(config=DataSourceConfig(name="ds"))],
    )
    if annotations is not None:
        schema = SchemaFilter(Trace, annotations)
        schema.dedupe()
        code, overlay = schema.generate()
        config.trace_filter = TraceConfig.TraceFilter(
            bytecode_v2=code,
            bytecode_overlay_v54=overlay,
            string_filter_chain=TraceConfig.TraceFilter.StringFilterChain(rules=[RULE]),
        )
    with InMemorySession(config) as session:
        writer = session.writer("ds")
        for packet in packets():
            assert writer.write(packet.encode())
    return session.trace


@pytest.mark.parametrize("annotations", [None, {}])
def test_filter_with_the_full_schema_removes_nothing(
    oracle: Callable[[bytes], Oracle], annotations: dict[str, Annotation] | None
) -> None:
    trace = oracle(record(annotations))
    assert trace.errors() == []
    assert trace.query(SLICES) == [("frame", 10, "12345"), ("user Anna", 10, None)]


def test_denied_fields_are_removed_and_strings_rewritten(oracle: Callable[[bytes], Oracle]) -> None:
    trace = record(
        {"TrackEvent.debug_annotations": DENY, "TrackEvent.name": FilterString(strings.UNSPECIFIED)}
    )
    assert b"12345" not in trace
    loaded = oracle(trace)
    assert loaded.errors() == []
    assert loaded.query(SLICES) == [("frame", 10, None), ("user P60R", 10, None)]
