"""What data sources tell in a trace, as lines for the terminal."""

from __future__ import annotations

import os
import zlib
from pathlib import Path

import pytest

from stretto.base.notes_tracks import notes_track
from stretto.cli.trace.source_reports import MAX_LINES, SourceReports
from stretto.protos.trace import FtraceStats, TracePacket, TrackDescriptor, TrackEvent
from stretto.protozero.wire import bytes_field, varint
from stretto.service.output.packet_encoder import framed

SOURCES = ("linux.ftrace", "linux.perf")


def stats(**fields: object) -> bytes:
    return framed(TracePacket(ftrace_stats=FtraceStats(**fields)).encode())


def note(source: str, text: str) -> bytes:
    event = TrackEvent(type=TrackEvent.TYPE_INSTANT, track_uuid=notes_track(source), name=text)
    return framed(TracePacket(timestamp=1, track_event=event).encode())


def lines(*packets: bytes) -> list[str]:
    reports = SourceReports(SOURCES)
    data = b"".join(packets)
    assert reports.add(data) == len(data)
    return reports.lines()


def test_reasons_of_ftrace_become_a_line_each() -> None:
    packet = stats(
        phase=FtraceStats.START_OF_TRACE,
        exclusive_feature_error="a: no b; tracing_cpumask: the kernel refuses it",
        unknown_ftrace_events=["sched/sched_swich"],
        failed_ftrace_events=["kprobes/vfs_read"],
        atrace_errors="no atrace\n",
    )
    assert lines(packet) == [
        "linux.ftrace: a: no b",
        "linux.ftrace: tracing_cpumask: the kernel refuses it",
        "linux.ftrace: this kernel has no event 'sched/sched_swich'",
        "linux.ftrace: the event 'kprobes/vfs_read' could not be enabled",
        "linux.ftrace: no atrace",
    ]


def test_reports_after_a_damaged_packet_are_found() -> None:
    damaged = framed(TracePacket(compressed_packets=b"no zlib stream").encode())
    assert lines(damaged, note("linux.perf", "no counter")) == ["linux.perf: no counter"]


def test_statistics_without_a_reason_and_other_events_are_no_report() -> None:
    event = framed(TracePacket(track_event=TrackEvent(name="x", track_uuid=7)).encode())
    assert lines(stats(phase=FtraceStats.END_OF_TRACE), event) == []


def test_notes_of_the_sessions_data_sources_are_found() -> None:
    packets = note("linux.perf", "not recorded: no such counter"), note("other", "not this one")
    assert lines(*packets) == ["linux.perf: not recorded: no such counter"]


def test_sources_of_a_copy_are_named_by_its_tracks() -> None:
    named = TrackDescriptor(uuid=notes_track("linux.perf"), name="linux.perf")
    other = TrackDescriptor(uuid=notes_track("a.b"), name="not a.b")
    tracks = [framed(TracePacket(track_descriptor=each).encode()) for each in (named, other)]
    reports = SourceReports()
    data = [note("linux.perf", "paused"), note("a.b", "x"), stats(failed_ftrace_events=["a/b"])]
    reports.add(b"".join(data + tracks))  # A ring may have lost the first descriptor.
    assert reports.lines() == [
        "linux.ftrace: the event 'a/b' could not be enabled",
        "linux.perf: paused",
    ]


@pytest.mark.parametrize("fields", [b"\xff\xff", b"\x12\x02\xff\xfe", b"\x12\x7f"])
def test_malformed_tracks_of_notes_raise_nothing(fields: bytes) -> None:
    uuid = b"\x08" + varint(notes_track("linux.perf"))  # TrackDescriptor.uuid
    packet = bytes_field(60, uuid + fields)  # TracePacket.track_descriptor
    reports = SourceReports()
    reports.add(framed(packet) + note("linux.perf", "x"))
    assert reports.lines() == []


def test_equal_reports_of_several_flushes_and_producers_count_once() -> None:
    packet = stats(unknown_ftrace_events=["a/b"])
    assert lines(packet, packet, note("linux.perf", "x"), note("linux.perf", "x")) == [
        "linux.ftrace: this kernel has no event 'a/b'",
        "linux.perf: x",
    ]


def test_reports_in_compressed_packets_are_found() -> None:
    packed = zlib.compress(stats(failed_ftrace_events=["a/b"]))
    assert lines(framed(TracePacket(compressed_packets=packed).encode())) == [
        "linux.ftrace: the event 'a/b' could not be enabled"
    ]


def test_many_reports_are_counted() -> None:
    found = lines(stats(failed_ftrace_events=[f"a/{number}" for number in range(MAX_LINES + 5)]))
    assert len(found) == MAX_LINES + 1
    assert found[-1] == "the trace has 5 more reports of its data sources"


def test_texts_of_producers_do_not_control_the_terminal() -> None:
    assert lines(note("linux.perf", "\x1b[2J\n")) == ["linux.perf: \\x1b[2J\\x0a"]


@pytest.mark.parametrize("fields", [b"\xff\xff\xff", b"\x32\x02\xff\xfe", b"\x28\x01", b"\x42\x7f"])
def test_malformed_statistics_of_a_producer_raise_nothing(fields: bytes) -> None:
    packet = b"\x92\x02" + bytes([len(fields)]) + fields  # TracePacket.ftrace_stats
    assert len(lines(framed(packet), note("linux.perf", "x"))) <= 2


def test_reports_of_a_file_are_found(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_bytes(note("other", "x") * 50_000 + note("linux.perf", "paused") + b"\x0a")
    reports = SourceReports(SOURCES)
    fd = os.open(path, os.O_RDONLY)
    reports.add_file(fd)
    os.close(fd)
    assert reports.lines() == ["linux.perf: paused"]
