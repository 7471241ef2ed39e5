"""The data source `linux.syscall_waits`, on a fake tracefs with pages of this test."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from stretto.probes.syscall_waits import MIN_NS, SyscallWaits
from stretto.probes.tracefs import Folder
from stretto.probes.waiting_calls import WaitingCalls
from stretto.protos.trace import TracePacket, TrackEvent
from tests.support.fake_tracefs import FakeTracefs, mount
from tests.support.probing import Probing, write_files

CALLS = WaitingCalls(os.uname().machine)
TID, PID = 71, 70
BEGIN_NS = 900_000_000


class EmptyTracefs(FakeTracefs):
    """Its buffers are empty."""

    def _make(self, path: str) -> None:
        super()._make(path)
        for pipe in Path(path).glob("per_cpu/*/trace_pipe_raw"):
            pipe.write_bytes(b"")


class FakeSyscallWaits(SyscallWaits):
    tracefs = EmptyTracefs


def event(ident: int, *values: int) -> bytes:
    """Return an event of the thread TID as a record without a time of its own."""
    data = struct.pack(f"<HHi{len(values)}q", ident, 0x103, TID, *values)
    return struct.pack("<I", len(data) // 4) + data


def later(nanoseconds: int) -> bytes:
    return struct.pack("<II", nanoseconds % (1 << 27) << 5 | 30, nanoseconds >> 27)


def page(*records: bytes) -> bytes:
    body = b"".join(records)
    return (struct.pack("<QQ", BEGIN_NS, len(body)) + body).ljust(4096, b"\0")


def ident(instance: Path, name: str) -> int:
    text = (instance / f"events/raw_syscalls/{name}/format").read_text()
    return int(text.partition("ID: ")[2].split()[0])


@pytest.fixture
def probing(tmp_path: Path) -> Probing[SyscallWaits]:
    mount(tmp_path)
    files = {
        f"proc/{TID}/status": f"Name:\tworker\nTgid:\t{PID}\n",
        f"proc/{PID}/stat": f"{PID} (shop) S 1 " + "0 " * 17 + "12345 0\n",
    }
    write_files(tmp_path, files)
    return Probing(FakeSyscallWaits, tmp_path)


def instance(root: Path) -> Path:
    (path,) = (root / "sys/kernel/tracing/instances").iterdir()
    return path


def record(root: Path, *, number: str, ends: bool = True) -> None:
    """Let the kernel of this test record a call: another page of CPU 0."""
    path = instance(root)
    call = CALLS.names.index(number)
    records = [event(ident(path, "sys_enter"), call, 3, *[0] * 5)]
    if ends:
        records += [later(2 * MIN_NS), event(ident(path, "sys_exit"), call, -110)]
    with (path / "per_cpu/cpu0/trace_pipe_raw").open("ab") as pipe:
        pipe.write(page(*records))


def events(packets: list[TracePacket]) -> list[tuple[int, int, str]]:
    return [
        (packet.timestamp, packet.track_event.type, packet.track_event.name)
        for packet in packets
        if packet.track_event is not None
    ]


def test_kernel_is_asked_for_waiting_calls_of_listed_threads_only(
    probing: Probing[SyscallWaits], tmp_path: Path
) -> None:
    folder = Folder(str(instance(tmp_path)))
    assert folder.read("set_event_pid") == str(os.getpid())
    assert folder.read("options/event-fork") == "1"
    for name in ("sys_enter", "sys_exit"):
        assert folder.read(f"events/raw_syscalls/{name}/enable") == "1"
        chosen = folder.read(f"events/raw_syscalls/{name}/filter").split(" || ")
        assert f"id == {CALLS.names.index('recvfrom')}" in chosen
        assert f"id == {CALLS.names.index('futex')}" not in chosen
    (tmp_path / "proc/80/task/81").mkdir(parents=True)
    probing.source.follow(80)
    # The fake file has the appended text. The kernel adds the id to its list.
    assert folder.read("set_event_pid") == f"{os.getpid()}81"
    probing.source.on_stop()
    assert not list((tmp_path / "sys/kernel/tracing/instances").iterdir())


def test_wait_is_a_slice_on_a_track_of_its_thread(
    probing: Probing[SyscallWaits], tmp_path: Path
) -> None:
    record(tmp_path, number="recvfrom")
    link = tmp_path / f"proc/{PID}/fd/3"
    link.parent.mkdir()
    link.symlink_to("/run/fifo")
    packets = probing.advance(50)
    process, thread, track, begin, end = packets
    assert process.track_descriptor.process.process_name == "shop"
    assert (thread.track_descriptor.thread.pid, thread.track_descriptor.thread.tid) == (PID, TID)
    assert track.track_descriptor.parent_uuid == thread.track_descriptor.uuid
    assert begin.track_event.track_uuid == track.track_descriptor.uuid
    assert events([begin, end]) == [
        (BEGIN_NS, TrackEvent.TYPE_SLICE_BEGIN, "recvfrom"),
        (BEGIN_NS + 2 * MIN_NS, TrackEvent.TYPE_SLICE_END, ""),
    ]
    values = {each.name: each.string_value for each in begin.track_event.debug_annotations}
    assert values == {"file": "/run/fifo", "error": "ETIMEDOUT"}
    probing.source.on_stop()


def test_wait_that_has_not_ended_is_written_at_the_stop(
    probing: Probing[SyscallWaits], tmp_path: Path
) -> None:
    record(tmp_path, number="read", ends=False)
    assert events(probing.advance(50)) == []
    probing.source.on_stop()
    assert events(probing.take()) == [(BEGIN_NS, TrackEvent.TYPE_SLICE_BEGIN, "read")]


def test_tracks_are_described_again_when_the_state_is_cleared(
    probing: Probing[SyscallWaits], tmp_path: Path
) -> None:
    described = []
    for _ in range(3):
        record(tmp_path, number="fsync")
        packets = probing.advance(30)
        described.append(any(packet.track_descriptor for packet in packets))
        if len(described) == 2:
            probing.source.on_clear_incremental_state()
    assert described == [True, False, True]
    probing.source.on_stop()


def test_what_is_missing_is_counted(probing: Probing[SyscallWaits], tmp_path: Path) -> None:
    record(tmp_path, number="fsync")
    (tmp_path / f"proc/{TID}/status").unlink()
    probing.advance(30)
    probing.source.on_stop()
    (packet,) = probing.take()
    event = packet.track_event
    assert event.name == "lost waits in system calls"
    counts = {each.name: each.uint_value for each in event.debug_annotations}
    assert counts == {"threads ended before they were seen": 1}


def test_without_tracefs_the_reason_is_told(tmp_path: Path) -> None:
    probing = Probing(FakeSyscallWaits, tmp_path)
    probing.source.follow(70)
    probing.source.on_stop()
    assert probing.take() == []


def test_format_that_is_unknown_is_refused(tmp_path: Path) -> None:
    class OtherKernel(FakeTracefs):
        def _make(self, path: str) -> None:
            super()._make(path)
            Path(path, "events/raw_syscalls/sys_exit/format").write_text("ID: 442\n")

    class OtherWaits(SyscallWaits):
        tracefs = OtherKernel

    mount(tmp_path)
    probing = Probing(OtherWaits, tmp_path)
    assert not list((tmp_path / "sys/kernel/tracing/instances").iterdir())
    assert probing.advance(50) == []
