"""Traces that were cut off between two packets."""

from __future__ import annotations

import pytest

import stretto
from stretto.analysis.trace_tables import import_trace, statistics
from stretto.protos.config import TraceConfig
from stretto.protos.trace import SystemInfo, Trace, TracePacket, TracingServiceEvent
from tests.support.recorded_events import record

category = stretto.Category("test.ends")
BEGIN = TracingServiceEvent(tracing_started=True)
END = TracingServiceEvent(tracing_disabled=True)
FLUSH = TracingServiceEvent(all_data_sources_flushed=True)
CLONE = TracingServiceEvent(clone_started=True)
COMPLETED = TracingServiceEvent(read_tracing_buffers_completed=True)


def is_cut_off(trace: bytes) -> bool:
    return bool(statistics(import_trace(trace))["stretto_cut_off"])


def trace_of(
    *events: TracingServiceEvent, streamed: bool = False, service: str = "Stretto 0.1"
) -> bytes:
    """Return a trace with these events of the service."""
    head = [
        TracePacket(trace_config=TraceConfig(write_into_file=streamed)),
        TracePacket(system_info=SystemInfo(tracing_service_version=service)),
    ]
    packets = [TracePacket(timestamp=i, service_event=event) for i, event in enumerate(events)]
    return Trace(packet=head + packets).encode()


def test_recording_is_cut_off_before_each_packet_of_its_buffers_and_after_the_last() -> None:
    with record() as recorded:
        for _ in range(3):
            category.instant("tick")
    packets = Trace.decode(recorded.trace).packet
    assert not is_cut_off(recorded.trace)
    first = next(i for i, packet in enumerate(packets) if packet.has("service_event"))
    last = max(i for i, packet in enumerate(packets) if packet.has("service_event"))
    assert packets[last].service_event.read_tracing_buffers_completed
    assert last > first + 3
    for kept in range(first + 1, last + 1):
        assert is_cut_off(Trace(packet=packets[:kept]).encode())


@pytest.mark.parametrize(
    ("events", "streamed", "cut"),
    [
        ((BEGIN, COMPLETED), False, False),
        ((BEGIN, COMPLETED, FLUSH), False, True),
        ((BEGIN, COMPLETED), True, True),
        ((BEGIN, COMPLETED, END), True, True),
        ((BEGIN, COMPLETED, END, COMPLETED), True, False),
        ((BEGIN, COMPLETED, CLONE, COMPLETED), True, False),
        ((), True, False),
    ],
    ids=["read", "next read", "while it runs", "last read", "streamed", "clone", "no events"],
)
def test_service_events_tell_the_end(
    events: tuple[TracingServiceEvent, ...], streamed: bool, cut: bool
) -> None:
    assert is_cut_off(trace_of(*events, streamed=streamed)) is cut


def test_trace_of_another_service_is_not_taken_for_cut_off() -> None:
    assert is_cut_off(trace_of(BEGIN))
    assert not is_cut_off(trace_of(BEGIN, service="Perfetto v52.0"))
    assert not is_cut_off(trace_of(BEGIN, streamed=True, service="Perfetto v52.0"))
