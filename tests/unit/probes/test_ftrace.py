"""`linux.ftrace`, on a fake tracefs with pages that Linux 6.18 has recorded."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from typing import Any

import pytest

from stretto.probes.ftrace import Ftrace
from stretto.probes.tracefs import Folder, Instance, TracefsError
from stretto.protos.config import FtraceConfig
from stretto.protos.trace import FtraceEventBundle, FtraceStats, TracePacket
from tests.support import fake_tracefs
from tests.support.fake_tracefs import FakeTracefs, fill, mount, text
from tests.support.probing import Probing

ALL = ["sched/*", "task/*", "irq/*", "raw_syscalls/*", "signal/*", "ftrace/print"]
LINE = re.compile(r"^.*-(\d+) +\[(\d+)\] \S+ +(\d+\.\d+): (\w+): (.*)$", re.M)


class FakeFtrace(Ftrace):
    tracefs = FakeTracefs


@pytest.fixture
def root(tmp_path: Path) -> Path:
    mount(tmp_path)
    return tmp_path


def probing(root: Path, *events: str, **options: Any) -> Probing[FakeFtrace]:
    config = FtraceConfig(ftrace_events=list(events), **options)
    return Probing(FakeFtrace, root, ftrace_config=config)


def instances(root: Path) -> list[Path]:
    return sorted((root / "sys/kernel/tracing/instances").iterdir())


def bundles(packets: list[TracePacket]) -> list[FtraceEventBundle]:
    return [packet.ftrace_events for packet in packets if packet.ftrace_events is not None]


def stats(packets: list[TracePacket]) -> list[FtraceStats]:
    return [packet.ftrace_stats for packet in packets if packet.ftrace_stats is not None]


def recorded(root: Path, *events: str, **options: Any) -> list[TracePacket]:
    session = probing(root, *events, **options)
    session.source.on_stop()
    return session.take()


VERBOSE = FtraceConfig.CompactSchedConfig(enabled=False)


def kind(event: Any) -> str:
    return next(name for name in reversed(vars(event)))


def test_events_are_those_that_the_kernel_prints(root: Path) -> None:
    packets = recorded(root, *ALL, compact_sched=VERBOSE)
    found: dict[int, list[tuple[str, int, str]]] = {0: [], 1: []}
    for bundle in bundles(packets):
        found[bundle.cpu] += [
            (kind(e), e.pid, f"{(e.timestamp + 500) // 1000 / 1e6:.6f}") for e in bundle.event
        ]
    names = {path.parent.name for path in (root / "sys/kernel/tracing").glob("events/*/*/format")}
    printed: dict[int, list[tuple[str, int, str]]] = {0: [], 1: []}
    for pid, cpu, time, name, _ in LINE.findall(text().replace("tracing_mark_write", "print")):
        if name in names - {"page_fault_user"}:
            printed[int(cpu)].append((name, int(pid), time))
    assert sum(map(len, printed.values())) > 300
    assert found == printed


def test_fields_are_those_that_the_kernel_prints(root: Path) -> None:
    packets = recorded(root, *ALL, compact_sched=VERBOSE)
    events = [event for bundle in bundles(packets) for event in bundle.event]
    switches = [e.sched_switch for e in events if e.sched_switch is not None]
    printed = re.findall(r"prev_comm=(.*) prev_pid=(\d+) .* next_comm=(.*) next_pid=(\d+)", text())
    by_cpu = sorted((s.prev_comm, str(s.prev_pid), s.next_comm, str(s.next_pid)) for s in switches)
    assert by_cpu == sorted(printed)
    prints = [event.print.buf for event in events if event.print is not None]
    assert prints == ["B|1|hello\n", "second\n"]
    files = [e.sched_process_exec.filename for e in events if e.sched_process_exec is not None]
    assert files == re.findall(r"sched_process_exec: filename=(\S+)", text())
    enters = [e.sys_enter for e in events if e.sys_enter is not None]
    assert all(len(enter.args) == 6 for enter in enters)


def test_compact_scheduling_has_the_same_events_as_verbose(root: Path) -> None:
    verbose, compact = (
        bundles(recorded(root, *ALL, compact_sched=form)) for form in (VERBOSE, None)
    )
    for cpu in (0, 1):
        plain = [e for b in verbose if b.cpu == cpu for e in b.event]
        rows = [b.compact_sched for b in compact if b.cpu == cpu and b.compact_sched is not None]
        pids = [pid for row in rows for pid in row.switch_next_pid]
        assert pids == [e.sched_switch.next_pid for e in plain if e.sched_switch is not None]
        comms = [row.intern_table[i] for row in rows for i in row.waking_comm_index]
        assert comms == [e.sched_waking.comm for e in plain if e.sched_waking is not None]
        times = []
        for row in rows:
            now = 0
            for delta in row.switch_timestamp:
                now += delta
                times.append(now)
        assert times == [e.timestamp for e in plain if e.sched_switch is not None]
    assert not any(e.sched_switch or e.sched_waking for b in compact for e in b.event)


def test_sched_waking_without_sched_switch_is_written_as_plain_events(root: Path) -> None:
    found = bundles(recorded(root, "sched/sched_waking"))
    assert not any(bundle.compact_sched for bundle in found)
    assert any(event.sched_waking for bundle in found for event in bundle.event)


def test_unknown_event_is_generic_and_described(root: Path) -> None:
    packets = recorded(root, "exceptions/page_fault_user")
    (row,) = bundles(packets)[0].generic_event_descriptors
    assert (row.field_id, row.group_name) == (65_536, "exceptions")
    assert b"page_fault_user" in row.event_descriptor
    events = [e for b in bundles(packets) for e in b.event]
    assert len(events) == text().count(": page_fault_user:")
    assert all(event.unknown_fields for event in events)
    first = re.search(r"page_fault_user: address=(0x\w+)", text())
    assert first is not None


def test_generic_events_can_be_disabled(root: Path) -> None:
    packets = recorded(root, "exceptions/page_fault_user", disable_generic_events=True)
    assert not any(bundle.event for bundle in bundles(packets))
    assert stats(packets)[0].failed_ftrace_events == ["exceptions/page_fault_user"]


def test_private_instance_is_set_up_and_removed(root: Path) -> None:
    session = probing(
        root,
        "sched/sched_switch",
        buffer_size_kb=512,
        tids_to_trace=[7, 8],
        tracing_cpumask="1",
        tracefs_options=[FtraceConfig.TracefsOption(name="overwrite", state=2)],
    )
    (path,) = instances(root)
    folder = Folder(str(path))
    assert path.name.startswith("stretto-")
    expected = {
        "buffer_size_kb": "512",
        "trace_clock": "boot",
        "set_event_pid": "7 8",
        "tracing_cpumask": "1",
        "options/overwrite": "0",
        "tracing_on": "1",
        "events/sched/sched_switch/enable": "1",
        "events/sched/sched_waking/enable": "0\n",
    }
    assert {name: folder.read(name) for name in expected} == expected
    top = Folder(str(root / "sys/kernel/tracing"))
    assert top.read("tracing_on") == "1\n"
    session.source.on_stop()
    assert not instances(root)


@pytest.mark.parametrize(("buffer_kb", "page_kb"), [(1024, "16"), (512, "4\n")])
def test_large_buffers_have_large_pages_where_the_kernel_can(
    root: Path, monkeypatch: pytest.MonkeyPatch, buffer_kb: int, page_kb: str
) -> None:
    monkeypatch.setitem(fake_tracefs.FILES, "buffer_subbuf_size_kb", "4\n")
    session = probing(root, "sched/*", buffer_size_kb=buffer_kb)
    (path,) = instances(root)
    assert (path / "buffer_subbuf_size_kb").read_text() == page_kb
    session.source.on_stop()


def test_instance_that_another_process_takes_is_made_again(root: Path) -> None:
    """The other process removes what killed processes have left, before this one locks it."""
    tracefs = FakeTracefs(str(root))
    first = str(root / f"sys/kernel/tracing/instances/stretto-{os.getpid()}-1")
    FakeTracefs(str(root))._make(first)
    other = Instance(tracefs, first, private=True)

    class Taken(FakeTracefs):
        def _make(self, path: str) -> None:
            if path != first:
                super()._make(path)

    made = Taken(str(root)).make_instance()
    assert made.path.endswith("-2")
    made.close()
    other.close()


@pytest.mark.parametrize(
    ("number", "advice"), [(errno.EROFS, "mount -o remount,rw"), (errno.EACCES, "run as root")]
)
def test_reason_why_no_instance_can_be_made_has_advice(
    root: Path, number: int, advice: str
) -> None:
    class Refused(FakeTracefs):
        def _make(self, path: str) -> None:
            raise OSError(number, os.strerror(number), path)

    with pytest.raises(TracefsError, match=advice):
        Refused(str(root)).make_instance()


def test_state_of_a_named_instance_is_restored(root: Path) -> None:
    path = root / "sys/kernel/tracing/instances/mine"
    path.mkdir()
    fill(path)
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    session = probing(root, "sched/*", instance_name="mine", buffer_size_kb=64)
    assert (path / "trace_clock").read_text() == "boot"
    session.source.on_stop()
    after = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    (path / "trace_clock").read_text()
    changed = {str(f.relative_to(path)): after[f] for f in after if after[f] != before[f]}
    assert {name: value.decode().split()[0] for name, value in changed.items()} == {
        name: before[path / name].decode().strip("[").split()[0].strip("[]") for name in changed
    }


def test_instance_that_a_killed_process_has_left_is_removed(root: Path) -> None:
    left = root / "sys/kernel/tracing/instances/stretto-1-1"
    left.mkdir()
    fill(left)
    session = probing(root, "sched/sched_switch")
    assert [path.name for path in instances(root)] != [left.name]
    assert len(instances(root)) == 1
    session.source.on_stop()


def test_instances_of_running_sessions_are_kept(root: Path) -> None:
    first, second = (probing(root, "sched/sched_switch") for _ in range(2))
    assert len(instances(root)) == 2
    for session in (first, second):
        session.source.on_stop()
    assert not instances(root)


@pytest.mark.parametrize(
    ("events", "options", "reason"),
    [
        (["*/*"], {}, "is not `group/name`"),
        (["/x"], {}, "is not `group/name`"),
        (["sched/sched_switch", "sched/*x"], {}, "'sched/*x' is not `group/name`"),
        (["../x"], {}, "is not `group/name`"),
        (["a/b/c", "sched/*", "sched/"], {}, "'a/b/c', 'sched/' are not `group/name`"),
        (["sched/*"], {"instance_name": "none"}, "there is no ftrace instance 'none'"),
        (["sched/*"], {"instance_name": "../x"}, "there is no ftrace instance"),
    ],
)
def test_reason_of_a_failed_set_up_is_in_the_trace(
    root: Path, events: list[str], options: dict[str, Any], reason: str
) -> None:
    session = probing(root, *events, **options)
    (packet,) = session.take()
    assert packet.ftrace_stats is not None
    assert packet.ftrace_stats.phase == FtraceStats.START_OF_TRACE
    assert reason in packet.ftrace_stats.exclusive_feature_error
    session.source.on_flush()
    session.source.on_stop()
    assert not session.take()
    assert not instances(root)


def test_missing_tracefs_is_the_reason_in_the_trace(tmp_path: Path) -> None:
    (packet,) = probing(tmp_path, "sched/*").take()
    assert packet.ftrace_stats is not None
    assert "tracefs is not mounted" in packet.ftrace_stats.exclusive_feature_error


def test_instance_in_use_by_a_tracer_or_with_events_is_refused(root: Path) -> None:
    path = root / "sys/kernel/tracing/instances/mine"
    path.mkdir()
    fill(path)
    for name, contents in (("current_tracer", "blk\n"), ("set_event", "sched:sched_switch\n")):
        before = (path / name).read_text()
        (path / name).write_text(contents)
        (packet,) = probing(root, "sched/*", instance_name="mine").take()
        assert packet.ftrace_stats is not None
        assert "in use" in packet.ftrace_stats.exclusive_feature_error
        (path / name).write_text(before)


def test_statistics_of_both_ends_are_written_at_a_flush(root: Path) -> None:
    odd = ["nonsense/x", "odd", "", "*", "sched/sched_*"]
    session = probing(root, "sched/sched_switch", *odd, atrace_apps=["app"])
    session.take()
    session.source.on_flush()
    first, last = stats(session.take())
    assert (first.phase, last.phase) == (FtraceStats.START_OF_TRACE, FtraceStats.END_OF_TRACE)
    assert first.unknown_ftrace_events == odd
    assert "atrace_apps" in first.exclusive_feature_error
    assert [row.cpu for row in last.cpu_stats] == [0, 1]
    assert last.cpu_stats[0].read_events > 0
    assert last.cpu_stats[0].now_ts > 0
    session.source.on_stop()


def test_pages_are_read_at_each_tick(root: Path) -> None:
    session = probing(root, "sched/*", drain_period_ms=50)
    session.take()
    (path,) = instances(root)
    assert not bundles(session.advance(50))
    page = path / "per_cpu/cpu1/trace_pipe_raw"
    with page.open("ab") as file:
        file.write(page.read_bytes()[:4096])
    assert [bundle.cpu for bundle in bundles(session.advance(50))] == [1]
    session.source.on_stop()


def test_bare_names_are_found_in_all_groups(root: Path) -> None:
    packets = recorded(root, "task_rename", "print")
    kinds = {kind(event) for bundle in bundles(packets) for event in bundle.event}
    assert kinds == {"task_rename", "print"}


def test_damaged_pages_are_counted_and_marked(root: Path) -> None:
    session = probing(root, "sched/*", drain_period_ms=100)
    session.take()
    (path,) = instances(root)
    with (path / "per_cpu/cpu0/trace_pipe_raw").open("ab") as file:
        file.write(b"\xff" * 4096)
    packets = session.advance(100)
    session.source.on_flush()
    packets += session.take()
    assert [e.status for b in bundles(packets) for e in b.error] == [4]
    assert list(stats(packets)[-1].ftrace_parse_errors) == [4]
    session.source.on_stop()
