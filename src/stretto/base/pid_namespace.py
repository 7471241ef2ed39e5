"""PID namespaces: whether the ids that this process sees are those of the kernel's events.

In a container, a process usually has a PID namespace of its own, in which ids are numbered anew.
The kernel's trace events, and its lists of what to trace, have the ids of the initial namespace.
"""

from __future__ import annotations

import os

_INITIAL = "pid:[4026531836]"
"""PROC_PID_INIT_INO of <linux/proc_ns.h>."""

OTHER_IDS = "this is a PID namespace (a container), and the kernel's events have ids of the outside"


def is_initial(proc: str = "/proc") -> bool:
    """Return whether this process is in the initial namespace; True if that is unknown."""
    try:
        return os.readlink(f"{proc}/self/ns/pid") == _INITIAL
    except OSError:
        return True
