"""Runs a command where system calls are refused, as containers and sandboxes do.

    python seccomp.py ENOSYS memfd_create,process_vm_readv command...

The filter holds for the command and all its children.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys

NUMBERS = {
    "eventfd2": {"x86_64": 290, "aarch64": 19},
    "io_uring_setup": {"x86_64": 425, "aarch64": 425},
    "memfd_create": {"x86_64": 319, "aarch64": 279},
    "perf_event_open": {"x86_64": 298, "aarch64": 241},
    "pidfd_open": {"x86_64": 434, "aarch64": 434},
    "process_vm_readv": {"x86_64": 310, "aarch64": 270},
    "ptrace": {"x86_64": 101, "aarch64": 117},
    "userfaultfd": {"x86_64": 323, "aarch64": 282},
}
PR_SET_NO_NEW_PRIVS = 38
PR_SET_SECCOMP = 22
MODE_FILTER = 2
LOAD_NUMBER, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, FAIL_WITH = 0x7FFF0000, 0x00050000


def available() -> bool:
    """Returns whether the kernel has seccomp filters, and the processor is x86-64 or ARM64."""
    return os.path.exists("/proc/sys/kernel/seccomp/actions_avail") and platform.machine() in (
        "x86_64",
        "aarch64",
    )


def instruction(code: int, value: int, jump_true: int = 0) -> bytes:
    return struct.pack("=HBBI", code, jump_true, 0, value)


def refuse(names: list[str], error: int) -> None:
    """Makes the system calls fail with an error number, in this process and its later children."""
    numbers = [NUMBERS[name][platform.machine()] for name in names]
    code = instruction(LOAD_NUMBER, 0)
    for left, number in zip(range(len(numbers), 0, -1), numbers, strict=True):
        code += instruction(JUMP_IF_EQUAL, number, jump_true=left)
    code += instruction(RETURN, ALLOW) + instruction(RETURN, FAIL_WITH | error)
    buffer = ctypes.create_string_buffer(code)
    program = struct.pack("@HP", len(code) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in (
        (PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), 0, 0, 0),
        (PR_SET_SECCOMP, ctypes.c_ulong(MODE_FILTER), program, 0, 0),
    ):
        if libc.prctl(*arguments):
            raise OSError(ctypes.get_errno(), "the kernel takes no seccomp filter")


if __name__ == "__main__":
    refuse(sys.argv[2].split(","), getattr(errno, sys.argv[1]))
    os.execvp(sys.argv[3], sys.argv[3:])
