"""Detects whether a signal was sent to the whole process group or to the recorder alone.

A signal to the group (`kill -- -PGID`, the stop button of an IDE) reaches the program without the
recorder. A signal to the recorder alone must be forwarded. The kernel doesn't report which of the
two has happened.

So a child process, `cat`, waits in the same group with the default action for every signal. If a
signal ends or stops `cat` as well, it was sent to the group. `cat` reads from a pipe of the
recorder, and ends when the recorder ends. It has no other descriptor of the recorder.
"""

from __future__ import annotations

import os
import time

from stretto.base.c_modules import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.base.selector_task_runner import SelectorTaskRunner

DELAY_MS = 30
"""How long after the recorder the child may receive a signal of the group."""

_EXECUTABLE = "/bin/cat"
_DEFAULT_ACTIONS = {
    number for number in signal.valid_signals() if number not in (signal.SIGKILL, signal.SIGSTOP)
}


class GroupSignalDetector:
    """Runs the child process, and starts a new one after a signal has ended the child.

    Args:
        runner: the task runner of the delayed actions.
    """

    def __init__(self, runner: SelectorTaskRunner) -> None:
        self._runner = runner
        self._pid = 0
        self._pipe = -1
        self._received: dict[int, float] = {}
        self._start()

    def _start(self) -> None:
        read_end, self._pipe = os.pipe()
        null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        try:
            self._pid = os.posix_spawn(
                _EXECUTABLE,
                [_EXECUTABLE],
                {},
                # The child doesn't inherit the recorder's output: a reader waits until all writers
                # close it.
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, read_end, 0),
                    (os.POSIX_SPAWN_DUP2, null, 1),
                    (os.POSIX_SPAWN_DUP2, null, 2),
                ],
                setsigmask=(),
                setsigdef=_DEFAULT_ACTIONS,
            )
        except OSError:
            self._pid = 0  # `cat` could not be started: then every signal is forwarded.
            os.close(self._pipe)
        finally:
            os.close(read_end)
            os.close(null)

    def if_not_for_group(self, number: int, action: Callable[[], object]) -> None:
        """Call `action` after a short delay, unless the signal was sent to the group."""
        received = time.monotonic()

        def decide() -> None:
            self.check()
            in_group = self._received.pop(number, None)
            if in_group is None or in_group < received - DELAY_MS / 1000:
                action()

        self._runner.post_delayed(decide, DELAY_MS)

    def check(self) -> None:
        """Store the signal that has ended or stopped the child, if any; called on SIGCHLD."""
        if not self._pid:
            return
        result = os.waitid(os.P_PID, self._pid, os.WEXITED | os.WSTOPPED | os.WNOHANG)
        if result is None:
            return
        self._received[result.si_status] = time.monotonic()
        if result.si_code == os.CLD_STOPPED:
            os.kill(self._pid, signal.SIGCONT)
            return
        os.close(self._pipe)
        self._start()

    def close(self) -> None:
        """End the child and wait for it."""
        if self._pid:
            os.close(self._pipe)
            os.waitpid(self._pid, 0)
            self._pid = 0
