"""Options of FtraceConfig beside the events: filters, functions, clocks, what is kept."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from stretto.probes import ftrace
from stretto.probes.ftrace import Ftrace
from stretto.probes.ftrace_syscalls import numbers
from stretto.probes.machine import Machine
from stretto.probes.probe import SLOW
from stretto.probes.tracefs import Folder
from stretto.protos.config import FtraceConfig
from stretto.protos.trace import (
    FtraceEvent,
    FtraceEventBundle,
    FtraceStats,
    KprobeEvent,
    TracePacket,
)
from stretto.testing.fake_clock import FakeClock
from stretto.testing.fake_task_runner import FakeTaskRunner
from tests.support.fake_tracefs import FIRST_KPROBE, FakeTracefs, fill, mount, text
from tests.support.probing import Probing

TOP = "sys/kernel/tracing"
READ_NS = 40_000_000
"""The CPU time of a read."""
GRAPH: dict[str, Any] = {"enable_function_graph": True}
Rule = FtraceConfig.PrintFilter.Rule
Kprobe = FtraceConfig.KprobeEvent


class FakeFtrace(Ftrace):
    tracefs = FakeTracefs


@pytest.fixture
def root(tmp_path: Path) -> Path:
    mount(tmp_path)
    return tmp_path


class Session(Probing[FakeFtrace]):
    """A session that records in its instance."""

    def __init__(self, root: Path, *events: str, **options: Any) -> None:
        config = FtraceConfig(ftrace_events=list(events), **options)
        super().__init__(FakeFtrace, root, ftrace_config=config)

    @property
    def folder(self) -> Folder:
        assert self.source.instance is not None
        return self.source.instance

    def end(self) -> list[TracePacket]:
        self.source.on_stop()
        return self.take()


def events(packets: list[TracePacket]) -> list[FtraceEvent]:
    return [event for bundle in bundles(packets) for event in bundle.event]


def bundles(packets: list[TracePacket]) -> list[FtraceEventBundle]:
    return [packet.ftrace_events for packet in packets if packet.ftrace_events is not None]


def first_stats(packets: list[TracePacket]) -> FtraceStats:
    return next(packet.ftrace_stats for packet in packets if packet.ftrace_stats is not None)


def problems(packets: list[TracePacket]) -> str:
    return first_stats(packets).exclusive_feature_error


# --- system calls


def test_kernel_filters_the_system_calls(root: Path) -> None:
    session = Session(root, syscall_events=["sys_read", "sys_nothing"])
    for name in ("sys_enter", "sys_exit"):
        number = numbers(["sys_read"])[0][0]
        assert session.folder.read(f"events/raw_syscalls/{name}/filter") == f"id == {number}"
        assert session.folder.read(f"events/raw_syscalls/{name}/enable") == "1"
    assert first_stats(session.end()).unknown_ftrace_events == ["syscall_events: sys_nothing"]


def test_no_system_call_is_recorded_if_all_names_are_unknown(root: Path) -> None:
    session = Session(root, "raw_syscalls/sys_enter", syscall_events=["read"])
    assert session.folder.read("events/raw_syscalls/sys_enter/enable") == "0\n"
    session.end()


# --- texts of programs


@pytest.mark.parametrize(
    ("rules", "kept"),
    [
        ([Rule(prefix="B|", allow=False)], ["second\n"]),
        ([Rule(atrace_msg=Rule.AtraceMessage(type="B", prefix="hel"))], ["second\n"]),
        ([Rule(prefix="sec", allow=True), Rule(prefix="")], ["second\n"]),
        ([Rule(prefix="x")], ["B|1|hello\n", "second\n"]),
    ],
)
def test_print_filter_leaves_texts_out(root: Path, rules: list[Rule], kept: list[str]) -> None:
    chosen = FtraceConfig.PrintFilter(rules=rules)
    packets = Session(root, "ftrace/print", print_filter=chosen).end()
    assert [e.print.buf for e in events(packets) if e.print is not None] == kept


def test_texts_that_programs_write_to_the_top_folder_are_copied(root: Path) -> None:
    session = Session(root, atrace_apps=["any"])
    assert session.folder.read("options/copy_trace_marker") == "1"
    packets = session.end()
    assert [e.print.buf for e in events(packets) if e.print is not None] == [
        "B|1|hello\n",
        "second\n",
    ]
    assert problems(packets) == "atrace_apps has no effect here"


def test_categories_stand_for_events_of_the_kernel(root: Path) -> None:
    session = Session(root, atrace_categories=["sched", "irq", "gfx"])
    names = ("sched/sched_switch", "task/task_rename", "irq/softirq_raise")
    assert [session.folder.read(f"events/{name}/enable") for name in names] == ["1"] * 3
    assert session.folder.read("events/sched/sched_process_fork/enable") == "0\n"
    assert not first_stats(session.end()).unknown_ftrace_events


def test_categories_of_user_space_only_have_no_events_of_the_kernel(root: Path) -> None:
    session = Session(root, atrace_categories=["sched"], atrace_userspace_only=True)
    assert session.folder.read("events/sched/sched_switch/enable") == "0\n"
    assert {e.print is not None for e in events(session.end())} == {True}


# --- addresses and generic events


class WithAddresses(FakeTracefs):
    """The field `ip` of page faults is a pointer."""

    def _make(self, path: str) -> None:
        super()._make(path)
        file = Path(path, "events/exceptions/page_fault_user/format")
        file.write_text(file.read_text().replace("unsigned long ip", "void * ip"))


def page_faults(root: Path, **options: Any) -> list[TracePacket]:
    (root / "proc").mkdir()
    (root / "proc/kallsyms").write_text("0000000000000001 T lowest\n0000000000100000 T second\n")

    class Source(FakeFtrace):
        tracefs = WithAddresses

    config = FtraceConfig(ftrace_events=["exceptions/page_fault_user"], **options)
    session = Probing(Source, root, ftrace_config=config)
    session.source.on_stop()
    return session.take()


def test_addresses_are_numbers(root: Path) -> None:
    packets = page_faults(root, denser_generic_event_encoding=False)
    fields = [f for e in events(packets) if e.generic is not None for f in e.generic.field]
    numbers = [field.uint_value for field in fields if field.name == "ip"]
    assert len(numbers) == text().count(": page_fault_user:")
    assert numbers[0] == 1
    assert max(numbers) <= len(numbers)
    assert not any(packet.interned_data for packet in packets)


def test_functions_at_the_addresses_are_named_in_the_same_packet(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Symbols:
        def __init__(self, _path: str) -> None:
            pass

        def __len__(self) -> int:
            return 7

        def memory(self) -> int:
            return 5000

        def symbol(self, address: int) -> bytes | None:
            return b"f%x" % address if address % 2 else None

    monkeypatch.setattr("stretto.probes.ftrace_symbols._native.KernelSymbols", Symbols)
    packets = page_faults(root, symbolize_ksyms=True, denser_generic_event_encoding=False)
    assert first_stats(packets).kernel_symbols_parsed == 7
    assert first_stats(packets).kernel_symbols_mem_kb == 4
    named = [packet for packet in packets if packet.interned_data is not None]
    assert named
    for packet in named:
        assert packet.sequence_flags == TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
        assert packet.ftrace_events is not None
        assert packet.interned_data is not None
        symbols = packet.interned_data.kernel_symbols
        assert all(int(bytes(symbol.str or b"")[1:], 16) % 2 for symbol in symbols)
        numbers = {
            f.uint_value
            for e in packet.ftrace_events.event
            if e.generic is not None
            for f in e.generic.field
            if f.name == "ip"
        }
        assert {symbol.iid for symbol in symbols} <= numbers


def test_hidden_symbols_are_told(root: Path) -> None:
    session = Session(root, "sched/*", symbolize_ksyms=True)
    assert "kptr_restrict" in problems(session.end())


def test_generic_events_have_the_old_form_on_request(root: Path) -> None:
    packets = page_faults(root, denser_generic_event_encoding=False)
    found = [event.generic for event in events(packets) if event.generic is not None]
    assert len(found) == text().count(": page_fault_user:")
    assert {generic.event_name for generic in found} == {"page_fault_user"}
    assert [field.name for field in found[0].field] == ["address", "ip", "error_code"]
    assert not any(bundle.generic_event_descriptors for bundle in bundles(packets))


# --- functions of the kernel


def test_kprobes_are_defined_recorded_and_removed(root: Path) -> None:
    kinds = (Kprobe.KPROBE_TYPE_BOTH, Kprobe.KPROBE_TYPE_KPROBE, Kprobe.KPROBE_TYPE_KRETPROBE)
    wanted = [
        Kprobe(probe="vfs_read", type=kinds[0]),
        Kprobe(probe="vfs_write", type=kinds[1]),
        Kprobe(probe="none", type=kinds[2]),
        Kprobe(probe="a:b", type=kinds[1]),
    ]
    session = Session(root, kprobe_events=wanted)
    defined = [p.parent for p in (root / TOP).glob("events/stretto_*/*/format")]
    assert sorted(path.name for path in defined) == ["vfs_read", "vfs_read", "vfs_write"]
    enabled = list(Path(session.folder.path).glob("events/stretto_*/*/enable"))
    assert [path.read_text() for path in enabled] == ["1"] * 3
    (path,) = (root / TOP / "instances").iterdir()
    write_events(path, range(FIRST_KPROBE, FIRST_KPROBE + 3))
    packets = session.end()
    assert first_stats(packets).failed_ftrace_events == ["kretprobes/none", "kprobes/a:b"]
    found = [e.kprobe_event for e in events(packets) if e.kprobe_event is not None]
    assert [(event.name, event.type) for event in found] == [
        ("vfs_read", KprobeEvent.KPROBE_TYPE_BEGIN),
        ("vfs_read", KprobeEvent.KPROBE_TYPE_END),
        ("vfs_write", KprobeEvent.KPROBE_TYPE_INSTANT),
    ]
    assert not list((root / TOP).glob("events/stretto_*/*/format"))


def write_events(instance: Path, ids: range) -> None:
    """Add a page of CPU 0 with an event of each id."""
    records = b"".join(
        (10 << 5 | 2).to_bytes(4, "little") + id_.to_bytes(4, "little") + bytes(4) for id_ in ids
    )
    header = (1000).to_bytes(8, "little") + len(records).to_bytes(8, "little")
    page = (header + records).ljust(4096, b"\0")
    with (instance / "per_cpu/cpu0/trace_pipe_raw").open("ab") as file:
        file.write(page)


def test_kernel_without_kprobes_is_told(root: Path) -> None:
    (root / TOP / "kprobe_events").unlink()
    wanted = [Kprobe(probe="vfs_read", type=Kprobe.KPROBE_TYPE_KPROBE)]
    packets = Session(root, kprobe_events=wanted).end()
    assert "CONFIG_KPROBE_EVENTS" in problems(packets)
    assert first_stats(packets).failed_ftrace_events == ["kprobes/vfs_read"]


def test_kprobes_of_ended_processes_are_removed(root: Path) -> None:
    left = root / TOP / "events/stretto_p_999999999_1/vfs_read"
    left.mkdir(parents=True)
    Session(root, "sched/*").end()
    assert not left.exists()


def test_calls_of_functions_are_recorded_in_the_private_instance(root: Path) -> None:
    session = Session(root, function_filters=["vfs_*"], **GRAPH)
    assert session.folder.path != str(root / TOP)
    assert session.folder.read("current_tracer") == "function_graph"
    assert session.folder.read("set_ftrace_filter") == "vfs_*"
    assert not problems(session.end())


def test_roots_and_depth_of_calls_need_the_top_folder_which_is_restored(root: Path) -> None:
    before = files(root / TOP)
    session = Session(root, function_graph_roots=["vfs_read"], function_graph_max_depth=3, **GRAPH)
    assert session.folder.path == str(root / TOP)
    read = session.folder.read
    assert (read("set_graph_function"), read("max_graph_depth")) == ("vfs_read", "3")
    session.end()
    after = files(root / TOP)
    changed = {n: (before[n], after[n]) for n in before if before[n].strip() != after[n].strip()}
    assert changed.pop("set_graph_function") == ("#### all functions enabled ####\n", " ")
    assert {n for n, (old, new) in changed.items() if new not in old} == set()


def files(folder: Path) -> dict[str, str]:
    names = [path for path in folder.iterdir() if path.is_file()]
    return {path.name: path.read_text() for path in names}


def test_kernel_without_the_tracer_is_told_and_other_events_are_recorded(root: Path) -> None:
    (root / TOP / "available_tracers").write_text("nop\n")

    class Source(FakeFtrace):
        class tracefs(FakeTracefs):
            def _make(self, path: str) -> None:
                super()._make(path)
                Path(path, "available_tracers").write_text("nop\n")

    config = FtraceConfig(ftrace_events=["task/*"], **GRAPH)
    session = Probing(Source, root, ftrace_config=config)
    session.source.on_stop()
    packets = session.take()
    assert "CONFIG_FUNCTION_GRAPH_TRACER" in problems(packets)
    assert events(packets)


def test_filter_that_is_a_command_leaves_the_tracer_off(root: Path) -> None:
    session = Session(root, function_filters=["vfs_read:traceoff"], **GRAPH)
    assert session.folder.read("current_tracer") == "nop\n"
    assert "vfs_read:traceoff" in problems(session.end())


# --- clocks and buffers


def test_raw_clock_is_paired_with_the_trace_clock(root: Path) -> None:
    session = Session(root, "task/*", use_monotonic_raw_clock=True)
    assert session.folder.read("trace_clock") == "mono_raw"
    packets = session.end()
    assert bundles(packets)
    for bundle in bundles(packets):
        assert bundle.ftrace_clock == 4
        assert bundle.ftrace_timestamp > 0
        assert bundle.has("boot_timestamp")


def test_trace_clock_has_no_pair(root: Path) -> None:
    for bundle in bundles(Session(root, "task/*").end()):
        assert not bundle.has("ftrace_clock")


def test_buffers_are_read_when_they_are_filled_so_far(root: Path) -> None:
    session = Session(root, "task/*", drain_buffer_percent=25, drain_period_ms=60_000)
    assert session.folder.read("buffer_percent") == "25"
    session.end()


@pytest.mark.parametrize("can_wait", [True, False])
def test_without_a_period_buffers_are_read_when_they_are_half_full(
    root: Path, monkeypatch: pytest.MonkeyPatch, can_wait: bool
) -> None:
    monkeypatch.setattr(ftrace, "_can_wait_for_buffers", lambda: can_wait)
    session = Session(root, "task/*")
    assert session.folder.read("buffer_percent") == "50"
    assert len(session.runner.watched) == (2 if can_wait else 0)
    session.end()
    assert not session.runner.watched


def test_with_a_period_buffers_are_read_only_then(root: Path) -> None:
    session = Session(root, "task/*", drain_period_ms=100)
    assert not session.runner.watched
    session.end()


def test_reading_full_buffers_stays_within_the_budget(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ftrace, "_can_wait_for_buffers", lambda: True)
    runner = FakeTaskRunner(FakeClock())
    cpu_ns = itertools.count(0, READ_NS)
    machine = Machine(runner, lambda f: f(), runner.clock, str(root), cpu_ns=lambda: next(cpu_ns))
    reads: list[int] = []
    machine.observers.append(lambda _name, start, _end: reads.append(start))
    config = FtraceConfig(ftrace_events=["task/*"], drain_period_ms=60_000, drain_buffer_percent=1)
    session = Probing(FakeFtrace, root, machine, ftrace_config=config)
    runner.advance(20_000)  # Its files can always be read, as if the buffers were always full.
    session.source.on_stop()
    notes = [p.track_event.name for p in session.take() if p.track_event is not None]
    assert notes == [SLOW]
    first = [time for time in reads if time == reads[0]]
    assert len(first) > 1
    assert len(reads) > 2 * len(first)
    assert len(reads) * READ_NS < 20_000_000_000 / 10 + 5 * READ_NS


def test_preserved_buffer_is_that_of_the_top_folder(root: Path) -> None:
    top = root / TOP
    (top / "set_event").write_text("task:task_newtask\n")
    (top / "events/task/task_newtask/enable").write_text("1\n")
    (top / "trace").write_text("kept")
    session = Session(
        root, "task/*", preserve_ftrace_buffer=True, buffer_size_kb=64, use_monotonic_raw_clock=True
    )
    assert session.folder.path == str(top)
    assert (top / "trace").read_text() == "kept"
    assert (top / "buffer_size_kb").read_text() == "7 (expanded: 1408)\n"
    assert (top / "trace_clock").read_text() == "[local] global boot mono_raw\n"
    packets = session.end()
    assert first_stats(packets).preserve_ftrace_buffer
    assert bundles(packets)[0].ftrace_clock == 3
    assert (top / "events/task/task_newtask/enable").read_text() == "1"
    assert (top / "events/task/task_rename/enable").read_text() == "0"


def test_unset_tracefs_option_is_left_alone_and_a_wrong_name_told(root: Path) -> None:
    wanted = [
        FtraceConfig.TracefsOption(name="overwrite"),
        FtraceConfig.TracefsOption(name="../tracing_on", state=2),
    ]
    session = Session(root, "task/*", tracefs_options=wanted)
    assert session.folder.read("options/overwrite") == "1\n"
    assert session.folder.read("tracing_on") == "1"
    assert "'../tracing_on'" in problems(session.end())


# --- after a kill


def test_folder_that_a_killed_process_has_changed_is_restored(root: Path) -> None:
    mine = root / TOP / "instances/mine"
    mine.mkdir()
    fill(mine)
    session = Session(root, "task/*", instance_name="mine", buffer_size_kb=64)
    (journal,) = (root / "run/stretto-ftrace").iterdir()
    changes = [json.loads(line) for line in journal.read_text().splitlines()]
    assert [str(mine), "buffer_size_kb", "7"] in changes
    kept = journal.read_text() + '["half a li'
    changed = {name: (mine / name).read_text() for name in ("buffer_size_kb", "trace_clock")}
    assert changed == {"buffer_size_kb": "64", "trace_clock": "boot"}
    session.end()
    assert not journal.exists()
    journal.write_text(kept)
    for name, contents in changed.items():
        (mine / name).write_text(contents)
    Session(root, "task/*").end()
    assert (mine / "buffer_size_kb").read_text() == "7"
    assert (mine / "trace_clock").read_text() == "local"
    assert (mine / "events/task/task_rename/enable").read_text() == "0"
    assert not journal.exists()


def test_journal_of_a_running_session_is_kept(root: Path) -> None:
    mine = root / TOP / "instances/mine"
    mine.mkdir()
    fill(mine)
    first = Session(root, "task/*", instance_name="mine", buffer_size_kb=64)
    Session(root, "task/*").end()
    assert (mine / "buffer_size_kb").read_text() == "64"
    first.end()
    assert (mine / "buffer_size_kb").read_text() == "7"


def test_journal_of_a_folder_that_is_gone_is_removed(root: Path) -> None:
    folder = root / "run/stretto-ftrace"
    folder.mkdir(parents=True)
    (folder / "x.jsonl").write_text(json.dumps([str(root / "gone"), "a", "b"]) + "\n")
    Session(root, "task/*").end()
    assert not list(folder.iterdir())
