"""The exit of `stretto record`, with the status of the recorded program."""

from __future__ import annotations

import atexit
import os
import resource
import sys
from _thread import get_ident

from stretto.base.c_modules import signal


def exit_like(status: int) -> int:
    """Exit as the program did, without a core dump of this process.

    If the program was killed, this process dies of the same signal. Otherwise it runs its exit
    functions and omits the rest of the interpreter's finalization, which takes some 8 ms.

    Args:
        status: the program's exit status, or minus the signal that killed it.

    Returns:
        The exit status if the signal doesn't kill this process.
    """
    if status >= 0:
        atexit._run_exitfuncs()  # noqa: SLF001
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(status)
    number = -status
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    signal.pthread_kill(get_ident(), number)
    return 128 + number
