"""Starts a daemon: the command returns when the daemon is ready, or has failed.

    command --fork--> daemon (its own session, standard streams at /dev/null)
       |  <-- status --  ready (0), or the exit code of the command
       +-- prints the daemon's pid, exits with the status

Errors before the daemon is ready are printed on the terminal. Standard error is kept if it is a
regular file, so that `2>>traced.log` keeps a log.
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
"""The exit code of the command if the daemon has died."""
TIMED_OUT = 2


def daemonize(timeout_s: float | None = None) -> Callable[[int], object]:
    """Continue in a child process. The parent exits when the child is ready or dead.

    Args:
        timeout_s: how long the parent waits; then it exits with `TIMED_OUT`.

    Returns:
        A function to be called once when the daemon is ready, with the exit code of the parent.
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
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # The daemon has no terminal any more.

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
