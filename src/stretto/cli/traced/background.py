"""Leaves the terminal: the command returns when the daemon is ready, or has failed.

    command --fork--> daemon (a session of its own, standard streams at /dev/null)
       |  <--- "1" ----  ready
       +-- prints the daemon's pid, exits 0

Errors up to here have been said on the terminal. Standard error stays if it is a regular
file, so that `2>>traced.log` keeps a log.
"""

from __future__ import annotations

import os
import signal
import stat
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def daemonize() -> Callable[[], object]:
    """Go on in a child; the parent doesn't return: it exits when the child is ready or dead.

    Returns:
        To be called when the daemon is ready.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid:
        os.close(write_end)
        ready = os.read(read_end, 1)
        if ready:
            print(pid, flush=True)
        os._exit(0 if ready else 1)
    os.close(read_end)
    os.setsid()
    os.chdir("/")
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # there is no terminal that could hang up

    def on_ready() -> None:
        _leave_streams()
        os.write(write_end, b"1")
        os.close(write_end)

    return on_ready


def _leave_streams() -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        if fd < 2 or not stat.S_ISREG(os.fstat(fd).st_mode):
            os.dup2(null, fd)
    if null > 2:
        os.close(null)
