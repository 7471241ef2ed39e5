"""Auto detail, on the recorder's side: as the trace grows, its threshold rises.

Recorded processes show the calls that last at least as long as a threshold, and count the others.
They read the threshold from a file of the workspace, which they have mapped.
"""

from __future__ import annotations

import mmap
import os
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from stretto.recorder.workspace import Workspace

FIRST_NS = 50_000
STEPS = ((0.5, 1_000_000), (0.75, 20_000_000), (0.9, 1_000_000_000))
"""From this part of the size on: the threshold, in nanoseconds."""

PERIOD_MS = 200
"""Time between two looks at the size of the trace."""


class Rise(NamedTuple):
    """A rise of the threshold."""

    seconds: float
    """Since the start of the recording."""
    threshold_ns: int
    size: int
    """Bytes of the trace at that time."""


class Detail:
    """The threshold of one recording.

    Args:
        workspace: where the file is.
        size: bytes that the trace should fit into.
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
        # One store of eight bytes, as processes read it at any time.
        memoryview(self._file).cast("Q")[0] = threshold_ns

    def update(self, size: int, seconds: float) -> None:
        """Raise the threshold if the trace has become so large.

        Args:
            size: of the trace, in bytes.
            seconds: since the start of the recording.
        """
        due = [threshold for part, threshold in STEPS if size >= part * self._size]
        for threshold in due[len(self.rises) :]:
            self.rises.append(Rise(seconds, threshold, size))
            self._set(threshold)
