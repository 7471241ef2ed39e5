"""The exit of `stretto record`, with the status of the recorded program."""

from __future__ import annotations

import resource
import signal
from _thread import get_ident


def exit_like(status: int) -> int:
    """Exit as the program did, without a core dump of this process.

    Args:
        status: the program's exit status, or minus the signal that killed it.

    Returns:
        The exit status; if the program was killed, this process dies of the same signal.
    """
    if status >= 0:
        return status
    number = -status
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    signal.pthread_kill(get_ident(), number)
    return 128 + number
