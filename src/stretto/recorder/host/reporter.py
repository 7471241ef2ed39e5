"""The interface through which a recorder informs its user; the command line implements it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from stretto.protos.trace import TraceStats
    from stretto.recorder.host.contents import Contents
    from stretto.recorder.host.detail import Rise
    from stretto.recorder.host.totals import ProcessTotals


class RecordingResult(NamedTuple):
    """The result of a finished recording."""

    contents: Contents | None
    """The counted contents of the trace; None if it was streamed into a pipe."""
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
    """The time from the start of the recording to its end."""
    end_ns: int
    """The time of the end, by the boot-time clock."""
    totals: Sequence[ProcessTotals] = ()
    """With auto detail, the totals of the processes that ended by themselves."""
    rises: Sequence[Rise] = ()
    """With auto detail, the rises of its threshold."""
    auto_detail: bool = False
    notes: Sequence[str] = ()
    """A line for each requested data source and category that no process has offered."""


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
