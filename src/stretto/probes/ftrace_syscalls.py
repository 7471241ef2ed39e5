"""The filter of raw_syscalls events, for sessions that record some system calls only."""

from __future__ import annotations

import os

from stretto import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

EVENTS = ("raw_syscalls/sys_enter", "raw_syscalls/sys_exit")


def numbers(names: Iterable[str], machine: str = "") -> tuple[list[int], list[str]]:
    """Return the numbers of system calls, and the names that are unknown.

    Args:
        names: Names like `sys_read`.
        machine: The architecture, as uname() names it; by default this machine's.
    """
    known = _native.syscall_names(machine or os.uname().machine)
    by_name = {name: number for number, name in enumerate(known) if name}
    names = list(dict.fromkeys(names))
    found = sorted(by_name[name] for name in names if name in by_name)
    return found, [name for name in names if name not in by_name]


def event_filter(calls: Iterable[int]) -> str:
    """Return the filter that lets the kernel record these calls only."""
    return " || ".join(f"id == {number}" for number in calls)
