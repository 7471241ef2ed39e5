"""Leaves the terminal: the command returns when the daemon is ready, or has failed.

    command --fork--> daemon (a session of its own, standard streams at /dev/null)
       |  <-- status --  ready (0), or what the command is to exit with
       +-- prints the daemon's pid, exits with the status

Errors up to here have been said on the terminal. Standard error stays if it is a regular
file, so that `2>>traced.log` keeps a log.
"""

from __future__ import annotations

import os
import select
import signal
import stat
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


FAILED = 1
"""What the command exits with if the daemon has died."""
TIMED_OUT = 2


def daemonize(timeout_s: float | None = None) -> Callable[[int], object]:
    """Go on in a child; the parent doesn't return: it exits when the child is ready or dead.

    Args:
        timeout_s: after which the parent waits no longer, and exits with `TIMED_OUT`.

    Returns:
        To be called when the daemon is ready, once, with the exit code of the parent.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid:
        os.close(write_end)
        status = _wait(read_end, timeout_s)
        if status != FAILED:
            print(pid, flush=True)
        os._exit(status)
    os.close(read_end)
    os.setsid()
    os.chdir("/")
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # there is no terminal that could hang up

    def on_ready(status: int) -> None:
        _leave_streams()
        os.write(write_end, bytes([status]))
        os.close(write_end)

    return on_ready


def _wait(fd: int, timeout_s: float | None) -> int:
    if not select.select([fd], [], [], timeout_s)[0]:
        return TIMED_OUT
    return (os.read(fd, 1) or bytes([FAILED]))[0]


def _leave_streams() -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        if fd < 2 or not stat.S_ISREG(os.fstat(fd).st_mode):
            os.dup2(null, fd)
    if null > 2:
        os.close(null)
