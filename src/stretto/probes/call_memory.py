"""What a thread has passed to a system call in its memory, read while it waits in the call.

    openat(AT_FDCWD, "data/orders.db", ...)       the path
    poll({fd = 7, ...}, 1, ...)                   the descriptor, if there is one

The kernel says in which call a thread waits, and with which arguments. It says so before and after
the memory is read: then the memory was that of the call.
"""

from __future__ import annotations

import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto.probes.machine import Machine
    from stretto.probes.waiting_calls import Call

MAX_PATH = 4096
_AT_FDCWD = (1 << 32) - 100
_PAGE = 4096


def path_argument(machine: Machine, call: Call, name: str) -> str:
    """Return the path of a file that a thread opens; "" if it can't be read.

    Args:
        machine: Has the folder `proc`.
        call: The call, which has not ended.
        name: Its name: `open`, `creat`, `openat` or `openat2`.
    """
    at_folder = name.startswith("openat")
    data = _read(machine, call, call.second if at_folder else call.first, MAX_PATH)
    path = os.fsdecode(data.partition(b"\0")[0])
    if not path or path.startswith("/"):
        return path
    here = not at_folder or call.first & 0xFFFFFFFF == _AT_FDCWD
    folder = machine.link(f"proc/{call.tid}/{'cwd' if here else f'fd/{call.first}'}")
    return os.path.normpath(os.path.join(folder, path))


def polled_descriptor(machine: Machine, call: Call) -> int:
    """Return the only descriptor of a call of poll() or ppoll(); -1 if there isn't only one."""
    data = _read(machine, call, call.first, 4) if call.second == 1 else b""
    return int(struct.unpack("=i", data)[0]) if len(data) == 4 else -1


def _read(machine: Machine, call: Call, address: int, size: int) -> bytes:
    if not _waits_in(machine, call):
        return b""
    data = b""
    try:
        fd = os.open(machine.path(f"proc/{call.tid}/mem"), os.O_RDONLY | os.O_CLOEXEC)
        try:
            # A read ends at a page that isn't there.
            data = os.pread(fd, min(size, _PAGE - address % _PAGE), address)
            if len(data) < size and b"\0" not in data:
                data += os.pread(fd, size - len(data), address + len(data))
        finally:
            os.close(fd)
    except (OSError, OverflowError):
        pass
    return data if _waits_in(machine, call) else b""


def _waits_in(machine: Machine, call: Call) -> bool:
    """Whether a thread waits in a call with these arguments."""
    words = machine.read(f"proc/{call.tid}/syscall").split()
    if len(words) < 3 or not words[0].isdigit():
        return False  # It runs, or the kernel doesn't tell.
    found = (int(words[0]), int(words[1], 16), int(words[2], 16))
    return found == (call.number, call.first, call.second)
