"""Waits: which file or peer a system call has waited for, on a machine of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from stretto.probes import waits as module
from stretto.probes.machine import Machine
from stretto.probes.waiting_calls import NEW_THREAD, WaitingCalls
from stretto.probes.waits import ENDED, TOO_MANY, Wait, Waits
from stretto.testing.fake_clock import FakeClock
from stretto.testing.fake_task_runner import FakeTaskRunner
from tests.support.probing import write_files

CALLS = WaitingCalls("x86_64")
MS = 1_000_000
HIDDEN, PID, TID = 5, 70, 71
STAT = "{} (shop) S 1 " + "0 " * 17 + "12345 0\n"


class Process:
    """A process with the thread TID; its clock is at 100 ms."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.clock = FakeClock()
        self.clock.advance_ms(100)
        self.machine = Machine(FakeTaskRunner(self.clock), lambda f: f(), self.clock, str(root))
        self.now = self.machine.now_ns()
        self.waits = Waits(self.machine, CALLS, HIDDEN, MS)
        for tid, pid in ((TID, PID), (HIDDEN, HIDDEN)):
            files = {
                f"proc/{tid}/status": f"Name:\tworker\nTgid:\t{pid}\n",
                f"proc/{pid}/stat": STAT.format(pid),
                f"proc/{pid}/task/{tid}/comm": "worker\n",
            }
            write_files(root, files)

    def open(self, fd: int, target: str) -> None:
        link = self.root / f"proc/{PID}/fd/{fd}"
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(target)

    def call(
        self,
        name: str,
        first: int = 0,
        second: int = 0,
        *,
        ago_ms: int = 20,
        result: int = 0,
        lasts_ms: int = 10,
        used: int = -1,
        tid: int = TID,
    ) -> tuple[int, ...]:
        begin = self.now - ago_ms * MS
        end = begin + lasts_ms * MS if lasts_ms >= 0 else 0
        return (tid, CALLS.names.index(name), begin, end, result, first, second, used)

    def take(self, *calls: tuple[int, ...]) -> list[Wait]:
        """Return the waits in a list of calls."""
        assert self.waits.add(calls) == []
        return self.waits.add([])

    def target(self, *calls: tuple[int, ...]) -> str | None:
        """Return the file or peer of the only wait."""
        (wait,) = self.take(*calls)
        return wait.target.name if wait.target else None


@pytest.fixture
def process(tmp_path: Path) -> Process:
    return Process(tmp_path)


def test_wait_has_its_thread_and_the_file_behind_the_descriptor(process: Process) -> None:
    process.open(3, "/data/orders.db")
    (wait,) = process.take(process.call("fsync", 3))
    assert wait.name == "fsync"
    assert (wait.thread.pid, wait.thread.tid, wait.thread.process_name) == (PID, TID, "shop")
    assert wait.target is not None
    assert (wait.target.name, wait.target.is_socket) == ("/data/orders.db", False)


def test_socket_has_its_peer(process: Process) -> None:
    process.open(3, "socket:[16]")
    table = "Num RefCount Protocol Flags Type St Inode Path\n0: 2 0 0 1 01 16 /run/db\n"
    write_files(process.root, {f"proc/{PID}/net/unix": table})
    (wait,) = process.take(process.call("recvfrom", 3))
    assert wait.target is not None
    assert (wait.target.name, wait.target.is_socket) == ("/run/db", True)


def test_socket_that_is_missing_in_the_table_is_looked_up_again(process: Process) -> None:
    table = f"proc/{PID}/net/unix"
    process.open(3, "socket:[16]")
    process.waits.add_open([process.call("recvfrom", 3, lasts_ms=-1)])
    line = "Num RefCount Protocol Flags Type St Inode Path\n0: 2 0 0 1 01 16 /run/db\n"
    write_files(process.root, {table: line})
    assert process.target(process.call("recvfrom", 3)) == "/run/db"


def test_socket_of_an_unknown_kind_has_no_name(process: Process) -> None:
    process.open(3, "socket:[16]")
    assert process.target(process.call("recvfrom", 3)) is None


def test_calls_without_a_descriptor_have_no_target(process: Process) -> None:
    assert process.target(process.call("clock_nanosleep", 3)) is None
    assert process.target(process.call("poll", 3)) is None


def test_poll_has_the_descriptor_that_is_used_next(process: Process) -> None:
    process.open(9, "pipe:[4]")
    assert process.target(process.call("poll", 0x7F00, 1, used=9)) == "pipe:[4]"


def test_open_has_the_file_that_it_has_opened(process: Process) -> None:
    process.open(4, "/slow/file")
    assert process.target(process.call("openat", 0, result=4)) == "/slow/file"
    assert process.target(process.call("openat", 0, result=-2)) is None


def test_short_call_and_those_of_the_recorder_are_no_waits(process: Process) -> None:
    assert process.take(process.call("accept", 3, lasts_ms=0)) == []
    assert process.take(process.call("read", 3, tid=HIDDEN)) == []


def test_threads_of_stretto_in_the_program_are_left_out(process: Process) -> None:
    write_files(process.root, {f"proc/{PID}/task/{TID}/comm": "stretto-io\n"})
    assert process.take(process.call("poll")) == []


def test_name_that_is_read_after_the_descriptor_was_closed_is_left_out(process: Process) -> None:
    process.open(3, "/later/file")
    closed = process.call("close", 3, ago_ms=5, lasts_ms=0)
    assert process.target(process.call("read", 3), closed) is None
    assert process.target(process.call("read", 3), process.call("dup2", 8, 3, ago_ms=5)) is None


def test_close_that_is_seen_at_the_next_time_counts_too(process: Process) -> None:
    process.open(3, "/later/file")
    assert process.waits.add([process.call("read", 3)]) == []
    (wait,) = process.waits.add([process.call("close", 3, ago_ms=1, lasts_ms=0)])
    assert wait.target is None


def test_name_that_was_read_before_the_descriptor_was_closed_is_kept(process: Process) -> None:
    process.open(3, "/first")
    connected = process.call("connect", 3, lasts_ms=0)
    assert process.take(connected) == []
    process.clock.advance_ms(50)
    process.now = process.machine.now_ns()
    process.open(3, "/second")
    wait = process.call("read", 3)
    closed = process.call("close", 3, ago_ms=5, lasts_ms=0)
    assert process.target(wait, closed) == "/first"
    assert process.target(process.call("read", 3, ago_ms=-20)) == "/second"


def test_new_program_has_new_names(process: Process) -> None:
    process.open(3, "/first")
    assert process.target(process.call("read", 3)) == "/first"
    process.open(3, "/second")
    executed = process.call("execve", ago_ms=-1, lasts_ms=0)
    assert process.target(executed, process.call("read", 3, ago_ms=-20)) == "/second"


def test_thread_is_known_after_it_has_ended_if_it_was_seen(process: Process) -> None:
    assert process.take((TID, NEW_THREAD, 1, 0, 0, 0, 0, -1)) == []
    (process.root / f"proc/{TID}/status").unlink()
    assert [wait.name for wait in process.take(process.call("read"))] == ["read"]


def test_waits_of_unknown_threads_and_too_many_waits_are_counted(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert process.take(process.call("read", tid=999)) == []
    monkeypatch.setattr(module, "MAX_HELD", 2)
    assert len(process.take(*[process.call("read")] * 5)) == 2
    assert process.waits.lost == {ENDED: 1, TOO_MANY: 3}


def test_wait_that_has_not_ended_has_no_end(process: Process) -> None:
    process.open(3, "pipe:[1]")
    (wait,) = process.take(process.call("read", 3, lasts_ms=-1))
    assert wait.call.end == 0
    assert wait.target is not None


def test_wait_is_named_while_it_lasts(process: Process) -> None:
    process.open(3, "/first")
    wait = process.call("read", 3, lasts_ms=-1)
    process.waits.add_open([wait])
    process.open(3, "/second")
    closed = process.call("close", 3, ago_ms=-5, lasts_ms=0)
    ended = process.call("read", 3)
    assert process.target(closed, ended) == "/first"


def test_file_that_is_being_opened_is_named_by_the_path_in_the_call(process: Process) -> None:
    wait = process.call("openat", (1 << 64) - 100, 64, lasts_ms=-1)
    number = CALLS.names.index("openat")
    files = {f"proc/{TID}/syscall": f"{number} {(1 << 64) - 100:#x} 0x40 0x0\n"}
    write_files(process.root, files | {f"proc/{TID}/mem": "-" * 64 + "/run/fifo\0"})
    process.waits.add_open([wait])
    ended = process.call("openat", (1 << 64) - 100, 64, result=4)
    closed = process.call("close", 4, ago_ms=5, lasts_ms=0)
    assert process.target(ended, closed) == "/run/fifo"


def test_waits_that_never_end_are_forgotten(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    process.open(3, "/first")
    monkeypatch.setattr(module, "MAX_HELD", 3)
    for ago in range(8):
        process.waits.add_open([process.call("read", 3, ago_ms=ago, lasts_ms=-1)])
    assert len(process.waits._open) == 2
