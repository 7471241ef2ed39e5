"""The system calls in which threads wait, and those that change descriptors."""

from __future__ import annotations

from typing import NamedTuple

from stretto import _native

WAIT, TOLD, POLL, USES_FD, READS, NEW_THREAD = 1, 2, 4, 8, 16, 65535
"""What native code tells about a call (native/probes/syscall_waits.h)."""

READING = "read pread64 readv preadv preadv2 recvfrom recvmsg recvmmsg accept accept4"
OF_DESCRIPTOR = (
    "write pwrite64 writev pwritev pwritev2 sendto sendmsg sendmmsg connect sendfile splice "
    "copy_file_range fsync fdatasync sync_file_range flock fcntl ftruncate fallocate getdents64"
)
POLLING = "poll ppoll select pselect6 epoll_wait epoll_pwait epoll_pwait2"
OPENING = "open openat openat2 creat"
OTHER = (
    "nanosleep clock_nanosleep wait4 waitid pause rt_sigtimedwait rt_sigsuspend sync syncfs msync "
    "io_getevents io_uring_enter msgrcv semtimedop"
)
ALWAYS = {
    "close": TOLD, "dup2": TOLD, "dup3": TOLD, "close_range": TOLD, "execve": TOLD,
    "execveat": TOLD, "connect": TOLD | WAIT | USES_FD, "accept": TOLD | WAIT | USES_FD | READS,
    "accept4": TOLD | WAIT | USES_FD | READS,
}  # fmt: skip
"""Calls after which a descriptor has another name, or a new one."""
KINDS = (
    dict.fromkeys(READING.split(), WAIT | USES_FD | READS)
    | dict.fromkeys(OF_DESCRIPTOR.split(), WAIT | USES_FD)
    | dict.fromkeys(POLLING.split(), WAIT | POLL)
    | dict.fromkeys((OPENING + " " + OTHER).split(), WAIT)
    | ALWAYS
)
"""What is reported about each call."""
RETURNING_FD = frozenset(OPENING.split())
"""Calls that return the descriptor of the file that they have opened."""


class Call(NamedTuple):
    """A system call, as `_native.SyscallWaits` tells it. The end is 0 if it has not ended."""

    tid: int
    number: int
    begin: int
    end: int
    result: int
    first: int
    second: int
    used_fd: int


class WaitingCalls:
    """The calls of an architecture, by their numbers.

    Args:
        machine: The architecture, as uname() names it. Some lack a few calls.
    """

    def __init__(self, machine: str) -> None:
        names = _native.syscall_names(machine)
        self.names = [(name or "").removeprefix("sys_") for name in names]
        self.kinds = bytes(KINDS.get(name, 0) for name in self.names)
