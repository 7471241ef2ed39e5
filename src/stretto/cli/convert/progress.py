"""The progress of a conversion, as one line on a terminal."""

from __future__ import annotations

import io
import os
import sys
import time
from typing import TYPE_CHECKING, Any, cast

from stretto.cli.record.summary import size_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

_SILENT_S, _INTERVAL_S = 1.0, 0.2


class Progress:
    """Counts the bytes read and written. Shows both counts after a second, if enabled.

    Args:
        file: The trace.
        write: Called with each part of the result.
        shown: Whether to show the progress; by default if stderr is a terminal.
    """

    def __init__(
        self, file: BinaryIO, write: Callable[[bytes], object], *, shown: bool | None = None
    ) -> None:
        self.reader = cast("BinaryIO", _Reader(file, self))
        """The file to read from, which counts the bytes."""
        self._write = write
        self._shown = _is_watched() if shown is None else shown
        self._size = _size(file)
        self._next = time.monotonic() + _SILENT_S
        self._line = ""
        self.read_bytes = 0
        self.written_bytes = 0

    def has_read(self, size: int) -> None:
        """Count bytes read from the trace."""
        self.read_bytes += size
        self._show()

    def write(self, data: bytes) -> None:
        """Write to the result, and count the bytes."""
        self._write(data)
        self.written_bytes += len(data)
        self._show()

    def clear(self) -> None:
        """Remove the line."""
        if self._line:
            print(f"\r{' ' * len(self._line)}\r", end="", file=sys.stderr, flush=True)
            self._line = ""

    def _show(self) -> None:
        if not self._shown or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _INTERVAL_S
        done = f"{size_text(self.read_bytes)} read"
        if self._size:
            done = f"{min(100, 100 * self.read_bytes // self._size)} % read"
        line = f"stretto: {done}, {size_text(self.written_bytes)} written"
        print(f"\r{line.ljust(len(self._line))}", end="", file=sys.stderr, flush=True)
        self._line = line


class _Reader(io.RawIOBase):
    def __init__(self, file: BinaryIO, progress: Progress) -> None:
        self._file = file
        self._progress = progress

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        self._progress.has_read(len(data))
        return len(data)


def _is_watched() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _size(file: BinaryIO) -> int:
    """Return the size of a regular file; 0 for other files."""
    try:
        return os.fstat(file.fileno()).st_size
    except (OSError, AttributeError):
        return 0
