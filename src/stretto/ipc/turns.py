"""Shares a task runner between connections that have received a lot of data.

A connection handles a limited number of bytes and frames at a time. The remaining bytes are handled
in a later turn, which is queued here. One queued turn runs per round of the task runner, after the
callbacks of all ready descriptors and all other tasks.
"""

from __future__ import annotations

from stretto.base.c_modules import deque

TYPE_CHECKING = False  # Importing `typing` takes longer than importing this module.
if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.base.task_runner import TaskRunner

    Turn = Callable[[], object]


class Turns:
    """A queue of turns, shared by the connections of a host.

    Args:
        runner: Runs the turns.
    """

    def __init__(self, runner: TaskRunner) -> None:
        self._runner = runner
        self._waiting: deque[Turn] = deque()
        self._posted = False

    def add(self, turn: Turn) -> None:
        """Run `turn` after the turns that are queued already."""
        self._waiting.append(turn)
        self._post_next()

    def _post_next(self) -> None:
        if self._waiting and not self._posted:
            self._posted = True
            self._runner.post(self._run_one)

    def _run_one(self) -> None:
        turn = self._waiting.popleft()
        self._posted = False
        # Post the next turn first: an exception of the current turn must not stop the queue.
        self._post_next()
        turn()
