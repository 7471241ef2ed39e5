"""The files between which `stretto convert` stands.

The result appears under its name when it is whole, and for its owner only. `-` is standard input
or output; a FIFO or device is written as it comes.
"""

from __future__ import annotations

import io
import os
import stat
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from stretto.analysis.conversion import SNIFFED_BYTES
from stretto.base.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

STANDARD = "-"


class Source:
    """A trace, of which the beginning can be looked at before it is read.

    Args:
        file: Any file, standard input for one.

    Attributes:
        start: The first `SNIFFED_BYTES`, or all there is.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.start = file.read(SNIFFED_BYTES)
        self._pushed_back = self.start

    def read(self, size: int) -> bytes:
        """Read bytes; fewer than `size` at the end, or where the beginning ends."""
        if not self._pushed_back:
            return self._file.read(size)
        data, self._pushed_back = self._pushed_back[:size], self._pushed_back[size:]
        return data

    def fileno(self) -> int:
        """Of the file."""
        return self._file.fileno()


@contextmanager
def open_input(path: str) -> Iterator[Source]:
    """Open a trace.

    Raises:
        CommandError: It can't be read.
    """
    if path == STANDARD:
        yield Source(sys.stdin.buffer)
        return
    try:
        with open(path, "rb") as file:
            yield Source(file)
    except OSError as error:
        if error.filename != path:
            raise
        raise CommandError(f"convert: can't read {path!r}: {error.strerror}.", 2) from error


@contextmanager
def open_output(path: str, source: Source, *, binary: bool) -> Iterator[BinaryIO]:
    """Open the result; if the block fails, what was there stays.

    Args:
        path: Of the result.
        source: What is read; it isn't overwritten.
        binary: It isn't meant for a terminal.

    Raises:
        CommandError: It can't be written.
    """
    if path == STANDARD:
        if binary and sys.stdout.isatty():
            raise CommandError("convert: a binary trace isn't for a terminal: add `> FILE`.", 2)
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        there = os.stat(path)
    except OSError:
        there = None
    if there is not None and _is_same(there, source):
        raise CommandError(
            f"convert: {path!r} is the trace that is read: choose another name for the result.", 2
        )
    if there is not None and not stat.S_ISREG(there.st_mode):
        with _opened(path, path, os.O_WRONLY) as file:
            yield file
        return
    part = f"{path}.part"
    try:
        with _opened(part, path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW) as file:
            yield file
        os.replace(part, path)
    except BaseException:
        if os.path.lexists(part):
            os.unlink(part)
        raise


@contextmanager
def _opened(path: str, shown: str, flags: int) -> Iterator[BinaryIO]:
    try:
        fd = os.open(path, flags | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise CommandError(f"convert: can't write {shown!r}: {error.strerror}.", 2) from error
    with open(fd, "wb") as file:
        yield cast("BinaryIO", file)


def _is_same(there: os.stat_result, source: Source) -> bool:
    try:
        return os.path.samestat(there, os.fstat(source.fileno()))
    except (OSError, io.UnsupportedOperation):
        return False
