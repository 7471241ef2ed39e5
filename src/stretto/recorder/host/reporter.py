"""The interface through which a recorder informs its user; the command line implements it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from stretto.protos.trace import TraceStats
    from stretto.recorder.host.contents import Contents


class RecordingResult(NamedTuple):
    """What a finished recording has produced."""

    contents: Contents | None
    """Counts of what is in the trace; None if it was streamed into a pipe."""
    stats: TraceStats
    """The last statistics of the service."""
    not_followed: Sequence[str]
    """A line per process or reason that is missing in the trace."""
    streamed: bool
    """The trace was written while the program ran; otherwise it was kept in a ring."""
    path: str
    """The file of the trace; "" for a pipe."""
    size: int | None
    """Bytes of the file; None if it could not be written."""
    seconds: float
    """From the start of the recording to its end."""


class Reporter(Protocol):
    """Shows a recording to its user."""

    @property
    def shows_progress(self) -> bool:
        """Whether `progress` shows anything; otherwise the recorder doesn't collect it."""
        ...

    def progress(self, program: int, pids: Collection[int], seconds: float, collected: int) -> None:
        """Called every second while the program runs.

        Args:
            program: pid of the program.
            pids: of the recorded processes.
            seconds: since the start of the recording.
            collected: bytes of trace data so far.
        """

    def stopped(self) -> None:
        """The recording has ended; the trace is written next."""

    def snapshot_written(self, path: str) -> None:
        """A snapshot is complete."""

    def snapshot_failed(self, reason: str) -> None:
        """A snapshot could not be written."""

    def error(self, message: str) -> None:
        """The trace is incomplete, or could not be written; a quiet recording says so too."""

    def finished(self, result: RecordingResult) -> None:
        """The trace is complete, or was given up after `error`."""
