"""Auto detail, on the recorder's side: raises the threshold as the trace grows.

Recorded processes show the calls whose duration is at least a threshold, and only count shorter
calls. They read the threshold from a mapped file of the workspace.
"""

from __future__ import annotations

import mmap
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto.recorder.workspace import Workspace

FIRST_NS = 50_000
STEPS = ((0.5, 1_000_000), (0.75, 20_000_000), (0.9, 1_000_000_000))
"""(part of the size, threshold in nanoseconds from this part on)."""

PERIOD_MS = 200
"""Time between two checks of the size of the trace."""


class Rise:
    """A rise of auto detail's threshold.

    Args:
        seconds: the time since the start of the recording.
        threshold_ns: the new threshold.
        size: the size of the trace at the rise, in bytes.
    """

    __slots__ = ("seconds", "size", "threshold_ns")

    def __init__(self, seconds: float, threshold_ns: int, size: int) -> None:
        self.seconds = seconds
        self.threshold_ns = threshold_ns
        self.size = size


class Detail:
    """The threshold of auto detail in one recording.

    Args:
        workspace: the workspace that contains the file with the threshold.
        size: the largest size of the trace, in bytes.
    """

    def __init__(self, workspace: Workspace, size: int) -> None:
        self._size = size
        self.rises: list[Rise] = []
        fd = os.open(workspace.threshold, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(fd, 8)
            self._file = mmap.mmap(fd, 8)
        finally:
            os.close(fd)
        self._set(FIRST_NS)

    def _set(self, threshold_ns: int) -> None:
        # A single store of eight bytes: recorded processes may read the threshold at any time.
        memoryview(self._file).cast("Q")[0] = threshold_ns

    def update(self, size: int, seconds: float) -> None:
        """Raise the threshold if the trace has reached the next step of `STEPS`.

        Args:
            size: the size of the trace, in bytes.
            seconds: the time since the start of the recording.
        """
        due = [threshold for part, threshold in STEPS if size >= part * self._size]
        for threshold in due[len(self.rises) :]:
            self.rises.append(Rise(seconds, threshold, size))
            self._set(threshold)
