"""The trace says which samples are missing, and which have no C functions."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from stretto.analysis.questions import query_of
from stretto.analysis.trace_processor import TraceProcessor
from stretto.base.notes_tracks import notes_track
from stretto.cli.main import main
from stretto.profilers.sampling.process import WALL, find_python
from stretto.profilers.sampling.sample_forms import torn_sample
from stretto.profilers.sampling.samples import ProcessSamples
from stretto.profilers.sampling.settings import Settings
from stretto.profilers.sampling.shortfalls import NOT_SEEN, REFUSED, Shortfalls
from stretto.protos.trace import Trace, TracePacket
from tests.support.python_targets import ASLEEP, running

LATE = "samples are missing: they were late"
OVER = "samples have no C functions: the thread was not stopped, as stops take at most 5 % of the"
NOTHING = dict.fromkeys(("samples", "late", "unseen", "refused", "unstopped"), 0)


def told(packets: list[TracePacket]) -> list[tuple[str, int]]:
    events = [packet.track_event for packet in packets if packet.track_event is not None]
    assert all(event.track_uuid == notes_track("python.wall") for event in events)
    return [(event.name, event.debug_annotations[0].uint_value or 0) for event in events]


def test_new_shortfalls_are_told_once() -> None:
    shortfalls = Shortfalls(Settings(WALL, 1000))
    assert shortfalls.packets(NOTHING, "") == []
    assert told(shortfalls.packets(NOTHING | {"late": 430}, "")) == [(LATE, 430)]
    assert shortfalls.packets(NOTHING | {"late": 430}, "") == []
    assert told(shortfalls.packets(NOTHING | {"late": 440}, "")) == [(LATE, 10)]


def test_cpu_time_without_a_known_thread_is_told() -> None:
    shortfalls = Shortfalls(Settings(WALL, 1000))
    expected = (f"samples are missing: {NOT_SEEN}", 9)
    assert told(shortfalls.packets(NOTHING | {"unseen": 9}, "")) == [expected]


def test_samples_without_c_functions_are_told_by_reason() -> None:
    shortfalls = Shortfalls(Settings(WALL, 1000))
    refused, over = told(shortfalls.packets(NOTHING | {"unstopped": 9, "refused": 7}, ""))
    assert refused == (f"samples have no C functions: {REFUSED}", 7)
    assert over[0].startswith(OVER)
    assert over[1] == 2
    some = NOTHING | {"unstopped": 9, "refused": 7, "samples": 20}
    (unnamed,) = told(shortfalls.packets(some, "the loop has no name"))
    assert unnamed == ("samples have no C functions: the loop has no name", 20)
    assert shortfalls.packets(some | {"samples": 30}, "") == []


def written(path: Path) -> tuple[Path, int]:
    """Write a trace of a sampler that was late twice; return how many samples are missing."""
    with running(ASLEEP) as program:
        samples = ProcessSamples(find_python(program.pid), Settings(WALL, 1_000_000), 7)
        parts = []
        for _ in range(3):
            samples.run(5_000_000)
            parts.append(samples.drain())
            time.sleep(0.1)  # sleep: the next samples are late
    path.write_bytes(b"".join(parts))
    return path, samples.stats["late"]


def test_summary_says_how_many_samples_are_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace, late = written(tmp_path / "t.pftrace")
    assert late > 100
    assert main(["summary", str(trace)]) == 0
    text = capsys.readouterr().out
    assert f"\n  lost: {late:,} {LATE}\n" in text
    assert "lost: nothing" not in text


def test_losses_have_the_number_of_missing_samples(tmp_path: Path) -> None:
    trace, late = written(tmp_path / "t.pftrace")
    assert late > 100
    with TraceProcessor(str(trace), engine="sqlite") as processor:
        rows = processor.query(query_of("losses", "")).fetchall()
    assert (LATE, None, "data_loss", late) in [tuple(row) for row in rows]


def test_events_with_equal_numbers_are_added_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shortfalls = Shortfalls(Settings(WALL, 1000))
    packets = [p for late in (40, 80) for p in shortfalls.packets(NOTHING | {"late": late}, "")]
    for packet in packets:
        packet.timestamp = packet.trusted_packet_sequence_id = 1
    path = tmp_path / "t.pftrace"
    path.write_bytes(Trace(packet=packets).encode())
    assert main(["summary", str(path)]) == 0
    assert f"lost: 80 {LATE}\n" in capsys.readouterr().out


def test_samples_that_could_not_be_read_are_in_the_summary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packet = torn_sample(Settings(WALL, 1000), 7)
    packet.timestamp = packet.trusted_packet_sequence_id = 1
    path = tmp_path / "t.pftrace"
    path.write_bytes(Trace(packet=[packet, packet]).encode())
    assert main(["summary", str(path)]) == 0
    text = capsys.readouterr().out
    assert "lost: 2 samples are missing: their stacks could not be read\n" in text
