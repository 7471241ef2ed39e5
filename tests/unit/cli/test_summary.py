from __future__ import annotations

import json
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

import stretto
from stretto.analysis import trace_summary
from stretto.analysis.fxt import format as fxt
from stretto.analysis.heap_totals import HoldingFunction, ProfiledProcess
from stretto.analysis.object_totals import HoldingType, ProcessObjects
from stretto.analysis.off_cpu import SLEEPS, OffCpu
from stretto.analysis.sample_totals import SampledFunction, SampledThread
from stretto.analysis.trace_summary import Summary, Times
from stretto.base.errors import CommandError
from stretto.cli.main import main
from stretto.cli.summary import run
from stretto.cli.summary_page import as_page
from stretto.protos.trace import (
    FtraceEvent,
    FtraceEventBundle,
    ProcessTree,
    SchedSwitchFtraceEvent,
    SourceLocation,
    SysStats,
    Trace,
    TracePacket,
    TrackDescriptor,
    TrackEvent,
)
from tests.support.fxt_traces import CLIENT, SERVER, FxtTrace
from tests.support.recorded_events import record

functions = stretto.Category("test.functions")
other = stretto.Category("test.summary")


def slices() -> bytes:
    """Return a trace with a call of f, calls of g and f inside it, and three waits."""
    with record() as recorded:
        start = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        track = stretto.Track("lane")
        for ts, end, name in ((0, 1000, "f"), (100, 400, "g"), (500, 800, "f")):
            functions.begin(name, track=track, timestamp=start + ts)
            if name == "g":
                functions.end(track=track, timestamp=start + end)
        functions.end(track=track, timestamp=start + 800)
        functions.end(track=track, timestamp=start + 1000)
        for i in range(3):
            other.begin("wait", track=track, timestamp=start + 2000 + 100 * i)
            other.end(track=track, timestamp=start + 2000 + 100 * i + 10 * (i + 1))
    return bytes(recorded.trace)


@pytest.fixture(scope="module")
def trace() -> bytes:
    return slices()


@pytest.fixture(autouse=True)
def functions_have_the_category_of_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_summary, "FUNCTIONS", "test.functions")


EMPTY = Summary(0, None, [], [], [], [], [], [], [], [], {}, [], [], [], [], [], [], [], [])


def summarize(trace: bytes, folder: Path, *options: str) -> None:
    path = folder / "t.pftrace"
    path.write_bytes(trace)
    assert main(["summary", *options, str(path)]) == 0


def test_waits_for_the_gil_have_a_table_by_thread_and_are_no_lanes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with record() as recorded:
        start = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        track = stretto.Track("GIL", parent=stretto.thread_track())
        for ms in (1, 4):
            other.begin("waiting for the GIL", track=track, timestamp=start)
            start += ms * 1_000_000
            other.end(track=track, timestamp=start)
    summarize(bytes(recorded.trace), tmp_path)
    table = capsys.readouterr().out.partition("Waiting for the GIL\n\n")[2].splitlines()
    thread = threading.current_thread().name
    assert table[0].split() == ["time", "count", "p50", "p99", "max", "thread", "process"]
    assert table[2].startswith(f"5 ms      2  2.5 ms  4.0 ms  4 ms  {thread}  ")
    summarize(bytes(recorded.trace), tmp_path, "--format", "json")
    found = json.loads(capsys.readouterr().out)
    assert [(t["thread"], t["total"], t["count"]) for t in found["gil_waits"]] == [
        (thread, 5_000_000, 2)
    ]
    assert not found["lanes"]


def test_coroutines_are_apart_from_their_steps_on_the_thread(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asyncio = stretto.Category("python.asyncio", tags=["slow"])
    with record(enabled=["python.asyncio"]) as recorded:
        start = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        thread = stretto.thread_track()
        lane = stretto.Track("request (Task-2)", parent=thread)
        for track, name, ms in (
            (lane, "Task-2", 9),
            (lane, "request", 8),
            (lane, "await", 7),
            (thread, "request", 1),
        ):
            asyncio.begin(name, track=track, timestamp=start)
            asyncio.end(track=track, timestamp=start + ms * 1_000_000)
            start += 10_000_000
    summarize(bytes(recorded.trace), tmp_path, "--format", "json")
    found = json.loads(capsys.readouterr().out)
    (request,) = found["coroutines"]
    assert [request[key] for key in ("name", "number", "total")] == ["request", 1, 8_000_000]
    assert [(s["name"], s["total"]) for s in found["slices"]] == [
        ("Task-2", 9_000_000),
        ("await", 7_000_000),
    ]


def test_empty_trace_is_said_to_be_empty(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summarize(b"", tmp_path)
    assert "unread: the whole trace: it is empty." in capsys.readouterr().err


def test_folder_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="is a folder: name one trace in it"):
        run([str(tmp_path)])


def test_json_has_times_by_function_category_and_lane(
    trace: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summarize(trace, tmp_path, "--format", "json")
    found = json.loads(capsys.readouterr().out)
    assert [(f["name"], f["number"], f["total"], f["self"]) for f in found["functions"]] == [
        ("f", 2, 1000, 700),
        ("g", 1, 300, 300),
    ]
    (waits,) = found["slices"]
    assert [waits[key] for key in ("p50", "p90", "p99", "max", "total")] == [20, 28, 30, 30, 60]
    assert [(c["category"], c["number"]) for c in found["categories"]] == [
        ("test.functions", 3),
        ("test.summary", 3),
    ]
    assert [(lane["lane"], lane["busy"], lane["slices"]) for lane in found["lanes"]] == [
        ("lane", 1060, 6)
    ]
    assert found["events"] == 12
    assert found["losses"] == found["unread"] == []


def test_text_shows_the_slowest_first(
    trace: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summarize(trace, tmp_path, "--limit", "1")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("stretto: 12 events, 1 process")
    at = lines.index("Functions by self time")
    assert lines[at + 2].split() == ["self", "total", "count", "p50", "p90", "p99", "max", "name"]
    assert lines[at + 4].split()[-1] == "f"
    assert lines[at + 5] == "and 1 more"


def test_compressed_packets_are_counted(
    trace: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packed = Trace(packet=[TracePacket(compressed_packets=zlib.compress(trace))]).encode()
    summarize(packed, tmp_path, "--format", "json")
    found = json.loads(capsys.readouterr().out)
    assert found["events"] == 12
    assert len(found["functions"]) == 2


def test_cut_trace_is_reported(
    trace: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summarize(trace[:-2], tmp_path)
    assert "unread: bytes at the end" in capsys.readouterr().out


def test_summary_of_empty_trace_has_no_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summarize(b"", tmp_path)
    assert capsys.readouterr().out.startswith("stretto: 0 events, 0 processes, 0 threads\n")


def of_kernel() -> list[TracePacket]:
    """Return packets as probes write them: two processes, switches to one of them, a counter."""
    process, thread = ProcessTree.Process, ProcessTree.Thread
    tree = ProcessTree(
        processes=[process(pid=7, ppid=3, cmdline=["shop"]), process(pid=9, cmdline=["idle"])],
        threads=[thread(tid=8, tgid=7, name="worker")],
    )
    switches = [
        FtraceEvent(
            timestamp=time,
            pid=before,
            sched_switch=SchedSwitchFtraceEvent(
                prev_comm="x", prev_pid=before, next_comm="worker", next_pid=after
            ),
        )
        for time, before, after in ((100, 0, 8), (200, 8, 0))
    ]
    memory = SysStats(meminfo=[SysStats.MeminfoValue(key=1, value=5)])
    return [
        TracePacket(timestamp=50, process_tree=tree),
        TracePacket(ftrace_events=FtraceEventBundle(cpu=0, event=switches)),
        TracePacket(timestamp=150, sys_stats=memory),
    ]


def test_trace_without_events_is_counted_by_what_it_has(
    trace: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = Trace(packet=of_kernel()).encode()
    summarize(kernel, tmp_path)
    first = capsys.readouterr().out.splitlines()[0]
    counts = "2 scheduling slices, 1 counter value, 2 processes, 3 threads"
    assert first == f"stretto: {counts}"  # The parent, 3, is known by its number alone.
    summarize(kernel, tmp_path, "--format", "json")
    found = json.loads(capsys.readouterr().out)
    assert (found["events"], found["processes"], found["threads"]) == (0, 2, 3)
    summarize(trace + kernel, tmp_path)  # A program's events count as before.
    assert capsys.readouterr().out.startswith("stretto: 12 events, 1 process, ")


@pytest.mark.parametrize(
    ("content", "status", "complaint"),
    [(None, 2, "No such file"), (b"some text\n", 1, "it is no trace")],
)
def test_unreadable_trace_is_an_error(
    content: bytes | None,
    status: int,
    complaint: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "t.pftrace"
    if content is not None:
        path.write_bytes(content)
    assert main(["summary", str(path)]) == status
    assert complaint in capsys.readouterr().err


def calls_with_files() -> bytes:
    """Return a trace where a script calls its own function, an installed one, and one in C."""
    shop, installed = "/home/me/shop.py", "/usr/lib/python3.12/site-packages/orders.py"
    files = {"shop.py": shop, "sell": shop, "orders.get": installed, "time.sleep": ""}
    kinds = TrackEvent.Type
    events = [
        TrackEvent(
            type=kinds.TYPE_SLICE_BEGIN,
            track_uuid=1,
            name=name,
            categories=["test.functions"],
            source_location=SourceLocation(file_name=file, line_number=7) if file else None,
        )
        for name, file in files.items()
    ]
    events += [TrackEvent(type=kinds.TYPE_SLICE_END, track_uuid=1)] * len(files)
    track = TracePacket(track_descriptor=TrackDescriptor(uuid=1, name="lane"))
    packets = [
        TracePacket(timestamp=1000 * number, track_event=event, trusted_packet_sequence_id=1)
        for number, event in enumerate(events)
    ]
    return Trace(packet=[track, *packets]).encode()


class TestOwnFunctions:
    def test_own_functions_come_first_and_c_functions_last(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        summarize(calls_with_files(), tmp_path)
        parts = capsys.readouterr().out.split("\n\n")
        tables = {
            title: [line.split()[-1] for line in rows.splitlines()[2:]]
            for title, rows in zip(parts[1::2], parts[2::2], strict=True)
            if "unctions" in title
        }
        assert list(tables.items()) == [
            ("Own functions", ["sell"]),
            ("Functions by self time", ["shop.py", "sell", "orders.get"]),
            ("Functions by total time", ["shop.py", "sell", "orders.get"]),
            ("C functions, waits among them", ["time.sleep"]),
        ]

    def test_json_lists_own_functions_and_all_functions(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        summarize(calls_with_files(), tmp_path, "--format", "json")
        found = json.loads(capsys.readouterr().out)
        assert [row["name"] for row in found["own_functions"]] == ["sell"]
        assert {row["name"]: row["file"][-7:] for row in found["functions"]} == {
            "shop.py": "shop.py",
            "sell": "shop.py",
            "orders.get": "ders.py",
            "time.sleep": "",
        }


def _charts(page: str) -> list[str]:
    return page.split("<h2>")[1:]


class TestPage:
    def test_page_has_charts_and_needs_no_network(
        self, trace: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        page = tmp_path / "summary.html"
        summarize(trace, tmp_path, "--html", str(page))
        text = page.read_text()
        assert page.stat().st_mode & 0o777 == 0o600
        assert capsys.readouterr().out == ""
        assert all(f"<h2>{title}" in text for title in ("Functions", "Slices", "Categories"))
        assert 'style="width:100.00%"' in text
        assert not any(part in text for part in ("http", "src=", "<script", "@import", "url("))

    def test_page_has_waits_for_the_gil_and_times_off_the_cpu(self) -> None:
        waits = [Times("app", "worker", 3, 5_000_000, 0, 0, 0, 0, 2_000_000, 0)]
        off = [OffCpu("MainThread", SLEEPS, ("<main>", "fetch", "recv"), 2, 40_000_000, 30_000_000)]
        page = as_page("t", "", EMPTY._replace(gil_waits=waits, off_cpu=off), 10)
        gil, off_cpu = page.split("<h2>")[1:]
        assert gil.startswith("Waiting for the GIL<")
        assert 'worker <span class="more">×3 app</span>' in gil
        assert ">2 ms<" in gil
        assert off_cpu.startswith("Off the CPU<")
        assert 'fetch &gt; recv <span class="more">×2 MainThread: sleeps</span>' in off_cpu
        assert ">30 ms<" in off_cpu
        assert ">40 ms<" in off_cpu

    def test_page_has_samples(self) -> None:
        one = [SampledFunction("<fast>", "/srv/shop.py", 30, 40)]
        threads = [
            SampledThread("app", "worker", 40, 40, 40, one, source) for source in ("a", "b", "c")
        ]
        first, second = _charts(as_page("t", "", EMPTY._replace(samples=threads), 2))
        assert first.startswith("Stack samples of worker of app: 40 samples by a<")
        assert '&lt;fast&gt; <span class="more">shop.py</span>' in first
        assert ">75.0 ±" in first
        assert ">100.0 ±" in first
        assert "and 1 thread more" in second
        assert "1 thread more" not in first

    def test_page_has_memory_and_its_growth(self) -> None:
        function = HoldingFunction("load", "/srv/shop.py", 2048, 4096, 1024, 1024)
        heaps = [
            ProfiledProcess("app", 7, 2, 10**9, {"python": 4096}, 1024, [function]),
            ProfiledProcess("ended", 8, 2, 10**9, {}, 0, []),
        ]
        held, grown, ended = _charts(as_page("t", "", EMPTY._replace(heaps=heaps), 10))
        assert held.startswith("Memory: app (pid 7) holds 4.0 KiB: python 4.0 KiB<")
        assert 'load <span class="more">shop.py</span>' in held
        assert all(f">{size}<" in held for size in ("2.0 KiB", "4.0 KiB"))
        assert grown.startswith("Grown by 1.0 KiB in the 1 s from the first dump to the last one")
        assert all(f">{size}<" in grown for size in ("1.0 KiB", "2.0 KiB"))
        assert ended.startswith("Memory: ended (pid 8) holds 0 bytes: nothing<")

    def test_page_has_objects(self) -> None:
        objects = [ProcessObjects("app", 7, 3, 2048, [HoldingType("Node", 3, 1024, 2048)])]
        (chart,) = _charts(as_page("t", "", EMPTY._replace(objects=objects), 10))
        assert chart.startswith("Objects: app (pid 7) has 3 objects, 2.0 KiB<")
        assert 'Node <span class="more">×3</span>' in chart
        assert all(f">{size}<" in chart for size in ("1.0 KiB", "2.0 KiB"))

    def test_names_are_escaped(self, tmp_path: Path) -> None:
        with record() as recorded:
            other.begin("<script>alert(1)</script>\x00", track=stretto.Track("x"), timestamp=1)
        page = tmp_path / "summary.html"
        summarize(bytes(recorded.trace), tmp_path, "--html", str(page))
        assert "<script" not in page.read_text()

    def test_empty_trace_has_a_page_without_charts(self, tmp_path: Path) -> None:
        page = tmp_path / "summary.html"
        with record() as recorded:
            pass
        summarize(bytes(recorded.trace), tmp_path, "--html", str(page))
        assert "<h1>t.pftrace</h1>" in page.read_text()

    def test_page_that_cannot_be_written_is_reported(
        self, trace: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = tmp_path / "t.pftrace"
        path.write_bytes(trace)
        assert main(["summary", "--html", str(tmp_path / "no" / "page"), str(path)]) == 2
        assert "can't write" in capsys.readouterr().err


def test_page_and_json_are_both_written(
    trace: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    summarize(trace, tmp_path, "--format", "json", "--html", str(page))
    assert json.loads(capsys.readouterr().out)["functions"]
    assert page.read_text().startswith("<!")


def test_dropped_events_are_facts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events = [{"ph": "X", "ts": 1, "dur": 2, "tid": 1}, {"ph": "X", "ts": 2, "tid": 1}]
    summarize(json.dumps(events).encode(), tmp_path)
    assert "unread: events without what their phase needs: 1\n" in capsys.readouterr().out


def chrome_json() -> bytes:
    events = [
        {"ph": "X", "ts": 1, "dur": 2, "pid": 10, "tid": tid, "name": "a"} for tid in (10, 11)
    ]
    return json.dumps([*events, {"ph": "C", "ts": 1, "pid": 20, "args": {"n": 1}}]).encode()


def fuchsia() -> bytes:
    trace = FxtTrace()
    trace.event(fxt.DURATION_COMPLETE, 1, CLIENT, "a", end=3)
    trace.event(fxt.INSTANT, 1, SERVER, "b")
    trace.records.provider_event(1)
    return trace.data


@pytest.mark.parametrize("make", [chrome_json, fuchsia])
def test_traces_of_other_formats_have_counts(
    make: Callable[[], bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summarize(make(), tmp_path)
    assert capsys.readouterr().out.startswith("stretto: 2 events, 2 processes, ")


def test_full_buffer_of_a_program_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summarize(fuchsia(), tmp_path)
    assert "losses reported by programs with a full buffer: 1" in capsys.readouterr().out


def test_events_after_damage_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "trace"
    path.write_bytes(slices() + b"\x0a\x7f" + b"\xff" * 50 + slices() * 2)
    assert main(["summary", str(path)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("stretto: 18 events")  # Slices of three traces.
    assert "unread" in shown
    assert "lost: nothing" not in shown


def test_summary_says_if_nothing_was_lost(
    trace: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "trace").write_bytes(trace)
    assert main(["summary", str(tmp_path / "trace")]) == 0
    assert "\n  lost: nothing, as far as the trace tells\n" in capsys.readouterr().out
