"""Samples weigh as much as their periods: in the summary, and in flame graphs."""

from __future__ import annotations

import gzip
import json
import marshal
from pathlib import Path

import pytest

from stretto.analysis.export.exporters import export
from stretto.analysis.export.lanes import read_lanes
from stretto.analysis.export.profiles import collapsed
from stretto.analysis.export.stacks import NANOSECONDS, SAMPLES, Stack, read_stacks
from stretto.analysis.sample_totals import SampledFunction, sampled_threads, sampling_error
from stretto.analysis.sample_weights import sample_hits
from stretto.analysis.trace_tables import import_trace, table_rows
from stretto.cli.main import main
from stretto.protos.config import PerfEvents
from stretto.protos.trace import ThreadDescriptor, TracePacket, TrackDescriptor, TrackEvent
from tests.support.sample_packets import FAST, SLOW, every, samples, trace_of


def two_periods() -> bytes:
    """Return a trace with 300 samples of 1 ms, then 100 of 4 ms."""
    return trace_of(
        samples(every(1_000_000), FAST, 300, first=10),
        samples(every(4_000_000), SLOW, 100, first=1000),
    )


def weights_of(trace: bytes) -> list[float]:
    return [hits.weight for hits in sample_hits(import_trace(trace))]


def test_shares_are_those_of_the_time() -> None:
    (thread,) = sampled_threads(import_trace(two_periods()))
    assert (thread.samples, thread.weight) == (400, 700)
    assert thread.functions == [
        SampledFunction("slow", "/shop.py", 400, 400),
        SampledFunction("fast", "/shop.py", 300, 300),
    ]


def slice_of(category: str) -> list[TracePacket]:
    """Return a slice of a thread of the same process, of a category."""
    event = TrackEvent(
        type=TrackEvent.TYPE_SLICE_BEGIN, name="slice", categories=[category], track_uuid=5
    )
    end = TrackEvent(type=TrackEvent.TYPE_SLICE_END, track_uuid=5)
    thread = ThreadDescriptor(pid=7, tid=7, thread_name="MainThread")
    return [
        TracePacket(track_descriptor=TrackDescriptor(uuid=5, thread=thread)),
        TracePacket(timestamp=20, track_event=event, trusted_packet_sequence_id=9),
        TracePacket(timestamp=90, track_event=end, trusted_packet_sequence_id=9),
    ]


@pytest.mark.parametrize(("category", "unit"), [("python.gc", SAMPLES), ("mine", NANOSECONDS)])
def test_profile_has_samples_beside_slices_that_are_no_calls(category: str, unit: str) -> None:
    importer = import_trace(
        trace_of(samples(every(1_000_000), FAST, 300, first=10), slice_of(category))
    )
    found = read_stacks(importer, read_lanes(importer))
    assert found.unit == unit
    names = {stack.names[-1] for stack in found.stacks}
    assert names == ({"fast"} if unit == SAMPLES else {"slice"})


def test_error_is_that_of_fewer_equal_samples() -> None:
    (thread,) = sampled_threads(import_trace(two_periods()))
    # 700² / (300 * 1² + 100 * 4²)
    assert thread.equal == pytest.approx(490_000 / 1900)
    share = 4 / 7
    assert thread.error(400) == pytest.approx(sampling_error(share * thread.equal, thread.equal))
    assert thread.error(400) > sampling_error(share * 400, 400)


def test_equal_periods_count_samples() -> None:
    groups = (samples(every(5), FAST, 3, first=10), samples(every(5), FAST, 2, first=100))
    (thread,) = sampled_threads(import_trace(trace_of(*groups)))
    assert (thread.samples, thread.weight, thread.equal) == (5, 5, 5)


def test_weights_compare_periods_of_one_counter_only() -> None:
    groups = (
        samples(every(1000), FAST, 1, first=10),
        samples(every(2500), FAST, 1, first=20),
        samples(every(30, "cycles"), FAST, 1, first=30, sequence=2),
        samples(every(60, "cycles"), FAST, 1, first=40, sequence=2),
    )
    assert weights_of(trace_of(*groups)) == [1, 2.5, 1, 2]


def test_samples_without_a_period_count_once() -> None:
    by_frequency = PerfEvents.Timebase(frequency=100, counter=PerfEvents.SW_CPU_CLOCK)
    groups = (
        samples(by_frequency, FAST, 2, first=10),
        samples(every(1000), SLOW, 1, first=20, sequence=2),
        samples(PerfEvents.Timebase(), SLOW, 1, first=30, sequence=3),
    )
    assert weights_of(trace_of(*groups)) == [1, 1, 1]


def test_flame_graphs_have_the_weights_and_keep_the_numbers() -> None:
    stacks = read_stacks(import_trace(two_periods()), [])
    assert stacks.stacks == [
        Stack("MainThread", ("fast",), 300, 300),
        Stack("MainThread", ("slow",), 400, 100),
    ]
    assert collapsed(stacks) == b"MainThread;fast 300\nMainThread;slow 400\n"


def exported(trace: bytes, target: str, notes: list[str] | None = None) -> bytes:
    note = None if notes is None else notes.append
    return b"".join(export(import_trace(trace), target, "t.pftrace", note))


def test_pstats_has_the_time_of_samples() -> None:
    notes: list[str] = []
    found = marshal.loads(exported(two_periods(), "pstats", notes))
    assert found["~", 0, "fast"][:4] == (300, 300, pytest.approx(0.3), pytest.approx(0.3))
    assert found["~", 0, "slow"][:4] == (100, 100, pytest.approx(0.4), pytest.approx(0.4))
    assert notes == []


def test_other_profiles_have_the_time_of_samples() -> None:
    (profile,) = json.loads(exported(two_periods(), "speedscope"))["profiles"]
    assert (profile["unit"], profile["weights"]) == (NANOSECONDS, [300_000_000, 400_000_000])
    (thread,) = json.loads(exported(two_periods(), "firefox"))["threads"]
    assert thread["samples"]["weightType"] == "tracing-ms"
    assert [weight for *_, weight in thread["samples"]["data"]] == [300, 400]
    pprof = gzip.decompress(exported(two_periods(), "pprof"))
    assert all(text in pprof for text in (b"samples", b"nanoseconds"))
    assert b"calls" not in pprof
    assert exported(two_periods(), "collapsed") == b"MainThread;fast 300\nMainThread;slow 400\n"


@pytest.mark.parametrize(
    "unknown",
    [
        PerfEvents.Timebase(frequency=100, counter=PerfEvents.SW_CPU_CLOCK),
        every(2_000_000, "cycles"),
    ],
)
def test_pstats_says_that_samples_without_a_time_count_as_seconds(
    unknown: PerfEvents.Timebase, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.pftrace"
    path.write_bytes(trace_of(samples(unknown, FAST, 5, first=10)))
    assert main(["convert", str(path), str(tmp_path / "t.pstats")]) == 0
    assert "a sample counts as a second" in capsys.readouterr().err
    assert marshal.loads((tmp_path / "t.pstats").read_bytes())["~", 0, "fast"][2] == 5
    (profile,) = json.loads(exported(path.read_bytes(), "speedscope"))["profiles"]
    assert (profile["unit"], profile["weights"]) == ("none", [5])


def test_profiles_keep_processes_apart() -> None:
    one, other = (
        samples(every(1000), FAST, 3, first=10 * pid, sequence=pid, pid=pid) for pid in (7, 8)
    )
    stacks = read_stacks(import_trace(trace_of(one, other)), [])
    assert stacks.stacks == [
        Stack("MainThread of shop.py 7", ("fast",), 3, 3),
        Stack("MainThread of shop.py 8", ("fast",), 3, 3),
    ]


def test_profiles_keep_sources_apart() -> None:
    groups = (
        samples(every(1000, "python.cpu"), FAST, 3, first=10),
        samples(every(1000, "python.wall"), FAST, 5, first=20, sequence=2),
    )
    stacks = read_stacks(import_trace(trace_of(*groups)), [])
    assert stacks.stacks == [
        Stack("MainThread by python.cpu", ("fast",), 3, 3, "python.cpu"),
        Stack("MainThread by python.wall", ("fast",), 5, 5, "python.wall"),
    ]


def test_tables_count_samples_alike() -> None:
    rows = table_rows(import_trace(two_periods()), "perf_sample")
    assert len(rows) == 400
    assert not any("period" in name or "weight" in name for name in rows[0])


def test_summary_tells_that_samples_have_several_periods(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.pftrace"
    path.write_bytes(two_periods())
    assert main(["summary", str(path)]) == 0
    text = capsys.readouterr().out
    assert "shop.py: 400 samples, which count as 700: some have longer periods" in text
    assert "57.1 ±6.0 %  57.1 ±6.0 %  slow" in text
    assert main(["summary", "--format", "json", str(path)]) == 0
    (thread,) = json.loads(capsys.readouterr().out)["samples"]
    assert (thread["samples"], thread["weight"], thread["functions"][0]["self"]) == (400, 700, 400)
