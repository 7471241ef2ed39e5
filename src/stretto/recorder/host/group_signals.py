"""A process that tells whether a signal was meant for the whole process group.

A signal sent to the group (`kill -- -PGID`, an IDE's stop button) reaches the program without
us; one sent to the recorder alone must be passed on. The kernel doesn't say which it was. So
`cat` waits in the same group, with every signal at its default: if it is hit as well, the
signal was the group's. It ends when the recorder does, for its input is a pipe of ours.
"""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.base.selector_task_runner import SelectorTaskRunner

PATIENCE_MS = 30
"""How long the witness may take to feel a signal."""

_EXECUTABLE = "/bin/cat"
_DEFAULT_ACTIONS = {
    number for number in signal.valid_signals() if number not in (signal.SIGKILL, signal.SIGSTOP)
}


class Witness:
    """The process; made again when a signal has ended it."""

    def __init__(self, runner: SelectorTaskRunner) -> None:
        self._runner = runner
        self._pid = 0
        self._pipe = -1
        self._felt: dict[int, float] = {}
        self._start()

    def _start(self) -> None:
        read_end, self._pipe = os.pipe()
        null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        try:
            self._pid = os.posix_spawn(
                _EXECUTABLE,
                [_EXECUTABLE],
                {},
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, read_end, 0),
                    (os.POSIX_SPAWN_DUP2, null, 1),
                    (os.POSIX_SPAWN_DUP2, null, 2),
                ],
                setsigmask=(),
                setsigdef=_DEFAULT_ACTIONS,
            )
        except OSError:
            self._pid = 0  # no `cat`: every signal counts as ours alone
        finally:
            os.close(read_end)
            os.close(null)

    def ask(self, number: int, if_ours: Callable[[], object]) -> None:
        """Call `if_ours` soon, unless the signal was the group's."""
        asked = time.monotonic()

        def decide() -> None:
            self.look()
            felt = self._felt.pop(number, None)
            if felt is None or felt < asked - PATIENCE_MS / 1000:
                if_ours()

        self._runner.post_delayed(decide, PATIENCE_MS)

    def look(self) -> None:
        """See how it does (after SIGCHLD)."""
        if not self._pid:
            return
        result = os.waitid(os.P_PID, self._pid, os.WEXITED | os.WSTOPPED | os.WNOHANG)
        if result is None:
            return
        self._felt[result.si_status] = time.monotonic()
        if result.si_code == os.CLD_STOPPED:
            os.kill(self._pid, signal.SIGCONT)
            return
        os.close(self._pipe)
        self._start()

    def close(self) -> None:
        """End it."""
        if self._pid:
            os.close(self._pipe)
            os.waitpid(self._pid, 0)
            self._pid = 0
