"""Arguments of system calls in the memory of a thread, on a machine of files."""

from __future__ import annotations

import struct
from pathlib import Path

from stretto.probes.call_memory import path_argument, polled_descriptor
from stretto.probes.machine import Machine
from stretto.probes.waiting_calls import Call
from stretto.testing.fake_clock import FakeClock
from stretto.testing.fake_task_runner import FakeTaskRunner
from tests.support.probing import write_files

TID, NUMBER = 71, 257
HERE = (1 << 64) - 100  # AT_FDCWD, as the kernel reports it.


def waiting(root: Path, first: int, second: int, address: int, content: bytes) -> Call:
    """Return a call of a thread that has `content` at an address."""
    write_files(root, {f"proc/{TID}/syscall": f"{NUMBER} {first:#x} {second:#x} 0x0\n"})
    with (root / f"proc/{TID}/mem").open("wb") as memory:
        memory.seek(address)
        memory.write(content)
    folder = root / "shop"
    folder.mkdir(exist_ok=True)
    for name in ("cwd", "fd/5"):
        link = root / f"proc/{TID}/{name}"
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(f"/home/{link.name}")
    return Call(TID, NUMBER, 1, 0, 0, first, second, -1)


def machine(root: Path) -> Machine:
    clock = FakeClock()
    return Machine(FakeTaskRunner(clock), lambda f: f(), clock, str(root))


def test_path_of_openat_is_absolute(tmp_path: Path) -> None:
    call = waiting(tmp_path, HERE, 8000, 8000, b"/run/fifo\0more")
    assert path_argument(machine(tmp_path), call, "openat") == "/run/fifo"


def test_path_may_cross_pages_and_is_joined_with_its_folder(tmp_path: Path) -> None:
    path = b"x" * 200 + b"/../fifo"
    call = waiting(tmp_path, HERE, 8100, 8100, path + b"\0")
    assert path_argument(machine(tmp_path), call, "openat") == "/home/cwd/fifo"


def test_folder_may_be_a_descriptor(tmp_path: Path) -> None:
    call = waiting(tmp_path, 5, 8000, 8000, b"fifo\0")
    assert path_argument(machine(tmp_path), call, "openat2") == "/home/5/fifo"


def test_path_of_open_is_its_first_argument(tmp_path: Path) -> None:
    call = waiting(tmp_path, 8000, 0, 8000, b"fifo\0")
    assert path_argument(machine(tmp_path), call, "open") == "/home/cwd/fifo"


def test_poll_of_one_descriptor_has_it(tmp_path: Path) -> None:
    call = waiting(tmp_path, 8000, 1, 8000, struct.pack("=ihh", 7, 1, 0))
    assert polled_descriptor(machine(tmp_path), call) == 7


def test_poll_of_several_descriptors_has_none(tmp_path: Path) -> None:
    call = waiting(tmp_path, 8000, 2, 8000, struct.pack("=ihh", 7, 1, 0))
    assert polled_descriptor(machine(tmp_path), call) == -1


def test_thread_that_has_left_the_call_is_not_read(tmp_path: Path) -> None:
    call = waiting(tmp_path, HERE, 8000, 8000, b"/run/fifo\0")
    for text in ("running\n", f"{NUMBER} {HERE:#x} 0x9000 0x0\n", "232 0x1 0x2\n", ""):
        write_files(tmp_path, {f"proc/{TID}/syscall": text})
        assert path_argument(machine(tmp_path), call, "openat") == ""


def test_memory_that_cannot_be_read_has_no_path(tmp_path: Path) -> None:
    call = waiting(tmp_path, HERE, 8000, 8000, b"/run/fifo\0")
    (tmp_path / f"proc/{TID}/mem").unlink()
    assert path_argument(machine(tmp_path), call, "openat") == ""
    assert path_argument(machine(tmp_path), call._replace(second=1 << 63), "openat") == ""
