from __future__ import annotations

import os
from typing import Any

import pytest

from stretto.probes import process_counters
from stretto.probes.process_counters import ProcessCounters
from stretto.protos.trace import CounterDescriptor, TracePacket

TRACKS: dict[str, int] = {}


class Counters(ProcessCounters):
    """A data source of process counters that keeps its written packets in a list."""

    name = "test.process_counters"

    def __init__(self) -> None:
        super().__init__()
        self.packets: list[TracePacket] = []

    def write(self, packet: TracePacket | bytes) -> bool:
        assert isinstance(packet, bytes)
        self.packets.append(TracePacket.decode(packet))
        return True

    def take(self) -> list[TracePacket]:
        taken, self.packets = self.packets, []
        return taken


@pytest.fixture
def counters():
    return Counters()


def described_tracks(packets: list[TracePacket]) -> set[int]:
    return {p.track_descriptor.uuid for p in packets if p.track_descriptor is not None}


def values(packets: list[TracePacket]) -> dict[str, float]:
    """Return the last value of each counter, by its name."""
    events = [packet.track_event for packet in packets if packet.track_event is not None]
    names = {uuid: name for name, uuid in TRACKS.items()}
    return {names[event.track_uuid]: event.double_counter_value for event in events}


@pytest.fixture(autouse=True)
def tracks(monkeypatch: pytest.MonkeyPatch) -> None:
    TRACKS.clear()
    original = ProcessCounters._track

    def track(self: ProcessCounters, process: Any, name: str, now: int) -> int:
        TRACKS[name] = original(self, process, name, now)
        return TRACKS[name]

    monkeypatch.setattr(ProcessCounters, "_track", track)


def test_memory_of_a_process_is_sampled_in_bytes(counters):
    counters.sample([os.getpid()])
    packets = counters.take()
    found = values(packets)
    assert 1_000_000 < found["mem.rss"] < found["mem.virt"]
    units = {p.track_descriptor.name: p.track_descriptor.counter for p in packets
             if p.track_descriptor and p.track_descriptor.counter}  # fmt: skip
    assert set(units) == set(found)
    assert {unit.unit for unit in units.values()} == {CounterDescriptor.UNIT_SIZE_BYTES}


def test_counter_that_never_leaves_zero_has_no_track(counters, monkeypatch):
    sizes = iter([{"mem.rss": 5, "mem.swap": 0}, {"mem.rss": 5, "mem.swap": 1}, {"mem.rss": 5}])
    monkeypatch.setattr(process_counters, "_memory", lambda pid: next(sizes))
    counters.sample([os.getpid()])
    assert "mem.swap" not in values(counters.take())
    counters.sample([os.getpid()])
    assert values(counters.take())["mem.swap"] == 1


def test_cpu_use_since_the_previous_sample_is_recorded(counters, monkeypatch):
    times = iter([(1_000_000_000, 5), (1_750_000_000, 5)])
    now = iter([10_000_000_000, 11_000_000_000])
    monkeypatch.setattr(process_counters, "_cpu", lambda pid: next(times))
    monkeypatch.setattr(process_counters, "_memory", lambda pid: {"mem.rss": 0})
    monkeypatch.setattr(process_counters.api, "now", lambda: next(now))
    counters.sample([7])
    assert counters.take() == [], "one sample says nothing about use"
    counters.sample([7])
    process, track, event = counters.take()
    assert process.track_descriptor.process.pid == 7
    assert track.track_descriptor.parent_uuid == process.track_descriptor.uuid
    assert event.track_event.track_uuid == track.track_descriptor.uuid
    assert event.track_event.double_counter_value == 75.0


def test_counts_that_only_grow_are_shown_as_their_growth_in_a_second(counters, monkeypatch):
    now = iter([10_000_000_000, 11_000_000_000, 13_000_000_000, 14_000_000_000])
    counts = iter([{"switches": 100}, {"switches": 160}, {"switches": 5}])
    monkeypatch.setattr(process_counters, "_cpu", lambda pid: (0, 5))
    monkeypatch.setattr(process_counters, "_memory", lambda pid: {"mem.rss": 0})
    monkeypatch.setattr(process_counters.api, "now", lambda: next(now))
    monkeypatch.setattr(counters, "counts", lambda pid: next(counts))
    counters.sample([7])
    counters.sample([7])
    assert counters.take() == [], "one count says nothing about its growth"
    counters.sample([7])
    _, track, event = counters.take()
    assert track.track_descriptor.counter.unit_name == "/s"
    assert event.track_event.double_counter_value == 30.0
    counters.sample([7])
    assert counters.take() == [], "a count that has become smaller is that of another program"


def test_reused_pid_has_no_cpu_use_from_the_old_process(counters, monkeypatch):
    times = iter([(1_000_000_000, 5), (2_000_000_000, 6)])
    monkeypatch.setattr(process_counters, "_cpu", lambda pid: next(times))
    monkeypatch.setattr(process_counters, "_memory", lambda pid: {"mem.rss": 0})
    counters.sample([7])
    counters.sample([7])
    assert counters.take() == []


def test_track_descriptors_are_repeated_after_the_incremental_state_is_cleared(counters):
    for _ in range(2):
        counters.sample([os.getpid()])
    described = described_tracks(counters.take())
    counters.sample([os.getpid()])
    assert not described_tracks(counters.take()) & described
    counters.on_clear_incremental_state()
    counters.sample([os.getpid()])
    assert described_tracks(counters.take()) >= described


def test_ended_processes_are_skipped(counters):
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    counters.sample([pid])
    assert counters.take() == []


def test_counters_of_a_process_that_has_ended_become_zero(counters):
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(write_end)
        os.read(read_end, 1)
        os._exit(0)
    counters.sample([pid])
    counters.sample([pid])
    assert counters.living == {pid}
    counters.take()
    os.close(write_end)
    os.close(read_end)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    counters.sample([pid])  # The process has ended and is a zombie.
    os.waitpid(pid, 0)
    found = values(counters.take())
    assert {"mem.rss", "mem.virt"} <= set(found)
    assert set(found.values()) == {0}
    assert counters.living == set()
    counters.sample([pid])
    assert counters.take() == [], "it ends once"
