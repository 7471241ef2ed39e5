"""The input of `stretto convert`; a trace compressed by gzip is decompressed."""

from __future__ import annotations

import gzip
import io
import os
import sys
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from stretto.analysis.trace_format import SNIFFED_BYTES
from stretto.base.errors import CommandError, DecodeError
from stretto.cli.output_file import STANDARD

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

_GZIP_START = b"\x1f\x8b"


class Source:
    """A trace whose beginning can be examined before the trace is read.

    Args:
        file: A file opened for reading bytes; it may be standard input.

    Attributes:
        start: The first `SNIFFED_BYTES` of the decompressed trace, or the whole of a shorter trace.
        status: The status of the file; None if it isn't available.

    Raises:
        DecodeError: The compression is damaged.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.status = _status(file)
        self._file = file
        self._packed = False
        self._pushed_back = self.start = file.read(SNIFFED_BYTES)
        if self.start.startswith(_GZIP_START):
            whole = cast("BinaryIO", _Reading(file, self.start))
            self._file = cast("BinaryIO", gzip.GzipFile(fileobj=whole))
            self._packed = True
            self._pushed_back = b""
            self._pushed_back = self.start = self.read(SNIFFED_BYTES)

    def read(self, size: int) -> bytes:
        """Read at most `size` bytes; the result is shorter at the end of the file or of `start`.

        Raises:
            DecodeError: The compression is damaged.
        """
        if self._pushed_back:
            data, self._pushed_back = self._pushed_back[:size], self._pushed_back[size:]
            return data
        try:
            return self._file.read(size)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise DecodeError(f"the gzip compression is damaged: {error}") from error

    def fileno(self) -> int:
        """Return the descriptor of the file.

        Raises:
            OSError: There is no descriptor, or the file is compressed.
        """
        if self._packed:
            raise io.UnsupportedOperation("fileno")
        return self._file.fileno()


class _Reading:
    """A file whose beginning was read before; `read` begins with that part again."""

    def __init__(self, file: BinaryIO, start: bytes) -> None:
        self._file = file
        self._start = start

    def read(self, size: int) -> bytes:
        if not self._start:
            return self._file.read(size)
        data, self._start = self._start[:size], self._start[size:]
        return data


def _status(file: BinaryIO) -> os.stat_result | None:
    try:
        return os.fstat(file.fileno())
    except OSError:
        return None


@contextmanager
def open_input(path: str) -> Iterator[Source]:
    """Open a trace.

    Raises:
        CommandError: The trace can't be read.
    """
    if path == STANDARD:
        if sys.stdin is None:
            raise CommandError("convert: standard input is closed: name a file.", 2)
        yield _source(sys.stdin.buffer, path)
        return
    try:
        file = open(path, "rb")  # noqa: SIM115
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", "") or error
        raise CommandError(f"convert: can't read {path!r}: {reason}.", 2) from error
    with file:
        yield _source(cast("BinaryIO", file), path)


def _source(file: BinaryIO, path: str) -> Source:
    try:
        return Source(file)
    except DecodeError as error:
        raise CommandError(f"convert: {path!r}: {error}.") from error
    except OSError as error:
        raise CommandError(f"convert: can't read {path!r}: {error.strerror}.", 2) from error
