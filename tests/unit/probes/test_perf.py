"""`linux.perf`, on a sampler whose records are given by the test."""

from __future__ import annotations

import errno
import os
import sys
from collections import deque
from pathlib import Path
from typing import Any

import pytest

from stretto import _native
from stretto.base.notes_tracks import notes_track
from stretto.probes.perf import Perf
from stretto.protos.config import PerfEventConfig, PerfEvents
from stretto.protos.trace import PerfSample, TracePacket
from tests.support.probing import Probing, write_files

Stacks = PerfEventConfig.CallstackSampling
MAPS = "1000-2000 r-xp 00000000 08:01 5 /bin/shop\n"
FILES = {
    "sys/devices/system/cpu/online": "0-1\n",
    "proc/kallsyms": "ffffffff81000000 T do_work\nffffffff81001000 T do_wait\n",
    "proc/10/cmdline": "/bin/shop\0--fast\0",
    "proc/10/stat": "10 (shop) S 7 10",
    "proc/10/task/11/comm": "worker\n",
    "proc/10/maps": MAPS,
    "proc/self/status": "RssAnon:\t  900 kB\nVmSwap:\t  200 kB\n",
}


class FakeSampler:
    """Gives the stops of `next` that a test has put into `stops`, then a sample per tick."""

    stops: deque[tuple[Any, ...]]
    refusal: int = 0

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments
        self.calls: list[tuple[Any, ...]] = []
        self.numbers: dict[int, int] = {}
        self.stacks: list[tuple[int, ...]] = []
        self.is_open = True

    def open(self, *arguments: Any) -> None:
        if self.refusal:
            raise OSError(self.refusal, "refused")
        self.calls.append(("open", *arguments))

    def enable(self, enable: bool) -> None:
        self.calls.append(("enable", enable))

    def close(self) -> None:
        self.is_open = False

    def read(self) -> bool:
        return False

    def next(self) -> tuple[Any, ...] | None:
        return self.stops.popleft() if self.stops else None

    def take(self) -> tuple[list[bytes], list[tuple[int, ...]]]:
        stacks, self.stacks = self.stacks, []
        sample = PerfSample(cpu=1, pid=10, tid=11, callstack_iid=1)
        return [TracePacket(timestamp=5, perf_sample=sample).encode()], stacks

    def decide(self, *arguments: Any) -> None:
        self.calls.append(("decide", *arguments))

    def renew(self, pid: int) -> None:
        self.calls.append(("renew", pid))

    def add_frame(self, space: int, address: int, key: int) -> int:
        return self.numbers.setdefault(key, len(self.numbers) + 1)

    def add_code(self, *arguments: Any) -> None:
        self.calls.append(("add_code", *arguments))

    def clear_code(self) -> None:
        self.calls.append(("clear_code",))

    def clear(self) -> None:
        self.numbers.clear()

    def stats(self) -> dict[str, int]:
        return {"frames": len(self.numbers), "stacks": 0}

    def counts(self) -> list[tuple[int, tuple[int, ...]]]:
        return [(0, (5, 6)), (1, (7, 8))]


class FakePerf(Perf):
    sampler = FakeSampler  # type: ignore[assignment]


@pytest.fixture
def started(tmp_path: Path) -> Any:
    """Return a function that starts the data source with a config."""
    write_files(tmp_path, FILES)
    FakeSampler.stops = deque()
    FakeSampler.refusal = 0

    def start(config: PerfEventConfig) -> Probing[FakePerf]:
        return Probing(FakePerf, tmp_path, perf_event_config=config)

    return start


def fake(probing: Probing[FakePerf]) -> FakeSampler:
    sampler = probing.source._open
    assert isinstance(sampler, FakeSampler)
    return sampler


def notes(packets: list[TracePacket]) -> list[str]:
    events = [packet.track_event for packet in packets if packet.track_event is not None]
    assert all(event.track_uuid == notes_track("linux.perf") for event in events)
    return [event.name for event in events]


STACKS = PerfEventConfig(
    timebase=PerfEvents.Timebase(frequency=100),
    callstack_sampling=Stacks(
        kernel_frames=True, scope=PerfEventConfig.Scope(target_cmdline=["shop"])
    ),
)


def test_each_cpu_is_opened_then_the_defaults_are_written(started: Any) -> None:
    probing = started(STACKS)
    (first,) = probing.advance(0)[:1]
    assert first.sequence_flags == 1
    defaults = first.trace_packet_defaults
    assert defaults is not None
    assert defaults.timestamp_clock_id == 5
    assert defaults.perf_sample_defaults is not None
    assert defaults.perf_sample_defaults.timebase is not None
    assert defaults.perf_sample_defaults.timebase.frequency == 100
    sampler = fake(probing)
    assert sampler.arguments == (2, True, True, 512, 22, 0, True)
    assert [call[:2] for call in sampler.calls] == [("open", 0), ("open", 1), ("enable", True)]


def test_new_threads_frames_and_stacks_are_written_before_the_samples(started: Any) -> None:
    probing = started(STACKS)
    probing.take()
    FakeSampler.stops.extend(
        [
            ("thread", 10, 11, True),
            ("frames", 10, ((0, 0xFFFFFFFF81000010), (3, 0x1004), (3, 0x9999))),
            ("frames", 10, ((0, 0xFFFFFFFF81000020),)),
        ]
    )
    fake(probing).stacks = [(3, 2, 1)]
    described, interned, sample = probing.advance(100)
    tree, data = described.process_tree, interned.interned_data
    assert tree is not None
    assert (tree.processes[0].pid, tree.processes[0].ppid) == (10, 7)
    assert tree.processes[0].cmdline == ["/bin/shop", "--fast"]
    assert (tree.threads[0].tid, tree.threads[0].tgid, tree.threads[0].name) == (11, 10, "worker")
    assert data is not None
    assert [text.str for text in data.function_names] == [b"do_work"]
    assert [text.str for text in data.mapping_paths] == [b"kernel", b"bin", b"shop", b"unknown"]
    assert [(frame.iid, frame.rel_pc) for frame in data.frames] == [(1, 0), (2, 4), (3, 0)]
    assert (data.callstacks[0].iid, data.callstacks[0].frame_ids) == (1, [3, 2, 1])
    assert (data.mappings[1].start, data.mappings[1].end) == (0x1000, 0x2000)
    assert sample.perf_sample is not None
    assert ("decide", 10, True) in fake(probing).calls


def test_sampler_is_told_which_file_has_the_code_of_an_address(
    started: Any, tmp_path: Path
) -> None:
    maps = f"{MAPS}4000-8000 r-xp 00001000 08:01 6 {sys.executable}\n"
    (tmp_path / "proc/10/maps").write_text(maps)
    (tmp_path / "proc/10/root").symlink_to("/")
    probing = started(STACKS)
    FakeSampler.stops.extend([("code", 10, address) for address in (0x4010, 0x1004, 0x9999)])
    probing.advance(100)
    (program, shop) = [call[1:] for call in fake(probing).calls if call[0] == "add_code"]
    assert program[:2] == (0x4000, 0x8000)
    assert isinstance(program[3], _native.ElfFile)
    assert program[2] == (0x4010 - program[3].address(0x1010)) % 2**64
    assert shop == (0x1000, 0x2000, 0x1000, None)


def test_files_are_forgotten_with_their_unwind_tables(started: Any) -> None:
    config = PerfEventConfig(
        callstack_sampling=Stacks(kernel_frames=True), unwind_state_clear_period_ms=500
    )
    probing = started(config)
    probing.advance(1000)
    assert ("clear_code",) in fake(probing).calls


def test_processes_out_of_scope_are_not_described(started: Any) -> None:
    probing = started(STACKS)
    probing.take()
    FakeSampler.stops.extend([("thread", 12, 12, True), ("thread", 13, 2**32 - 1, False)])
    assert [p.process_tree for p in probing.advance(100)] == [None]
    assert ("decide", 12, False) in fake(probing).calls


def test_exec_makes_a_process_new(started: Any) -> None:
    probing = started(STACKS)
    FakeSampler.stops.extend(
        [
            ("thread", 20, 20, True),
            ("name", 20, 20, b"shop", True),
            ("mapping", 20, 0x4000, 0x1000, 0, b"/bin/shop"),
            ("thread", 20, 20, True),
            ("frames", 20, ((5, 0x4008),)),
            ("mapping", 20, 0x4000, 0x1000, 0, b"/bin/other"),
            ("exit", 20, 20),
        ]
    )
    packets = probing.advance(100)
    (tree,) = [p.process_tree for p in packets if p.process_tree is not None]
    assert [process.cmdline for process in tree.processes] == [["shop"]]
    assert fake(probing).calls[-3:] == [
        ("decide", 20, False),
        ("decide", 20, True),
        ("renew", 20),
    ]


def test_cleared_state_is_written_again(started: Any) -> None:
    probing = started(STACKS)
    probing.take()
    stops = [("thread", 10, 11, True), ("frames", 10, ((0, 0xFFFFFFFF81000010),))]
    FakeSampler.stops.extend(stops)
    first = probing.advance(100)
    probing.source.on_clear_incremental_state()
    FakeSampler.stops.extend(stops)
    again = probing.advance(100)
    assert again[0].sequence_flags == 1
    assert [p.interned_data for p in again if p.interned_data is not None]
    assert len(again) == len(first) + 1


def test_losses_of_the_kernel_are_told(started: Any) -> None:
    probing = started(STACKS)
    probing.take()
    FakeSampler.stops.extend([("lost", 1, 77), ("throttle", 0, 0)])
    (lost, _) = probing.advance(100)
    assert lost.perf_sample is not None
    assert (lost.perf_sample.cpu, lost.perf_sample.kernel_records_lost) == (1, 77)
    assert lost.timestamp_clock_id == 6
    probing.source.on_stop()
    assert "paused the event 1 times" in notes(probing.take())[0]


def test_polled_counters_are_written_for_each_cpu(started: Any) -> None:
    timebase = PerfEvents.Timebase(poll_period_ms=50)
    probing = started(PerfEventConfig(timebase=timebase))
    probing.take()
    samples = [packet.perf_sample for packet in probing.advance(50)]
    assert [(s.cpu, s.timebase_count, s.follower_counts) for s in samples if s is not None] == [
        (0, 5, [6]),
        (1, 7, [8]),
    ]


def test_memory_above_the_limit_stops_the_recording(started: Any) -> None:
    config = PerfEventConfig(max_daemon_memory_kb=1000, ring_buffer_read_period_ms=500)
    probing = started(config)
    packets = probing.advance(1000)
    (event,) = [
        p.perf_sample.producer_event
        for p in packets
        if p.perf_sample is not None and p.perf_sample.producer_event is not None
    ]
    assert event.source_stop_reason == PerfSample.ProducerEvent.PROFILER_STOP_GUARDRAIL
    assert "max_daemon_memory_kb" in notes(packets)[0]
    assert probing.source._open is None
    probing.source.on_flush()
    probing.source.on_stop()
    assert probing.take() == []


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (errno.ENOENT, "no such counter"),
        (errno.EOPNOTSUPP, "no such counter"),
        (errno.ENOSYS, "no perf events"),
        (errno.EINVAL, "refuses the event"),
        (errno.EMFILE, "refused"),
        (errno.EACCES, "seccomp" if os.geteuid() == 0 else "perf_event_paranoid"),
    ],
    ids=errno.errorcode.get,
)
def test_refusal_of_the_kernel_is_told_with_its_reason(
    started: Any, number: int, reason: str
) -> None:
    FakeSampler.refusal = number
    probing = started(STACKS)
    (note,) = notes(probing.take())
    assert note.startswith("not recorded: CPU 0: ")
    assert reason in note
    probing.source.on_flush()
    probing.source.on_clear_incremental_state()
    probing.source.on_stop()
    assert probing.take() == []


def test_cpus_that_fail_may_be_ignored(started: Any) -> None:
    FakeSampler.refusal = errno.ENOENT
    probing = started(PerfEventConfig(ignore_open_failure=True))
    assert notes(probing.take()) == ["not recorded: no CPU has these events"]


def test_only_cpus_that_are_online_are_recorded(started: Any) -> None:
    probing = started(PerfEventConfig(target_cpu=[1, 5]))
    assert [call[1] for call in fake(probing).calls if call[0] == "open"] == [1]
    probing = started(PerfEventConfig(target_cpu=[5]))
    assert "no CPU of target_cpu" in notes(probing.take())[0]


def test_shard_is_one_for_all_sources_of_a_session(started: Any) -> None:
    scope = PerfEventConfig.Scope(process_shard_count=1000)
    config = PerfEventConfig(callstack_sampling=Stacks(kernel_frames=True, scope=scope))

    def shard() -> int:
        defaults = started(config).take()[0].trace_packet_defaults
        assert defaults is not None
        assert defaults.perf_sample_defaults is not None
        assert defaults.perf_sample_defaults.process_shard_count == 1000
        return int(defaults.perf_sample_defaults.chosen_process_shard)

    assert shard() == shard()


def test_hidden_kernel_symbols_are_told(started: Any, tmp_path: Path) -> None:
    (tmp_path / "proc/kallsyms").write_text("0000000000000000 T do_work\n")
    assert "kptr_restrict" in notes(started(STACKS).take())[0]
