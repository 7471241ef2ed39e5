"""The interface through which a recorder informs its user; the command line implements it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection

    from stretto.recorder.host.result import RecordingResult


class Reporter(Protocol):
    """Shows a recording to its user."""

    @property
    def shows_progress(self) -> bool:
        """Whether the recorder calls `progress`."""
        ...

    def progress(self, program: int, pids: Collection[int], seconds: float, collected: int) -> None:
        """Called every second while the program runs.

        Args:
            program: pid of the program.
            pids: pids of the recorded processes.
            seconds: time since the start of the recording.
            collected: bytes of trace data so far.
        """

    def stopped(self) -> None:
        """Called when the recording has ended, before the trace is written."""

    def snapshot_written(self, path: str) -> None:
        """Called when a snapshot is complete."""

    def snapshot_failed(self, reason: str) -> None:
        """Called if a snapshot could not be written."""

    def error(self, message: str) -> None:
        """Called if the trace is incomplete or could not be written.

        The message is shown even with `--quiet`."""

    def finished(self, result: RecordingResult) -> None:
        """Called at the end; the trace is complete, or `error` was called before."""
