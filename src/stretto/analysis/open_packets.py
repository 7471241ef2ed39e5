"""Opens a trace as packets: Perfetto's or Fuchsia's format, compressed by gzip or not."""

from __future__ import annotations

import errno
import gzip
import sys
import tempfile
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from stretto.analysis.conversion import FXT, JSON, SNIFFED_BYTES, TEXT, format_of_start
from stretto.analysis.fxt.importer import import_fxt
from stretto.base.errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedReader
    from typing import BinaryIO

STANDARD_INPUT = "-"
_GZIP_START = b"\x1f\x8b"
_REFUSALS = {
    TEXT: "it is text: make packets of it, with `stretto convert`",
    JSON: "it is JSON: `stretto convert` makes packets of the form that it writes, and nothing "
    "here reads Chrome's",
    None: "it is no trace",
}


@contextmanager
def open_trace(path: str) -> Iterator[BinaryIO]:
    """Open the packets of a trace file; `-` is standard input.

    Raises:
        OSError: The file can't be read.
        DecodeError: The file is not a trace.
    """
    if path == STANDARD_INPUT:
        if sys.stdin is None:
            raise OSError(errno.EBADF, "standard input is closed: name a file", path)
        with open_packets(cast("BufferedReader", sys.stdin.buffer)) as packets:
            yield packets
        return
    with open(path, "rb") as file, open_packets(file) as packets:
        yield packets


@contextmanager
def open_packets(file: BufferedReader) -> Iterator[BinaryIO]:
    """Open the packets of a trace; FXT is converted into a temporary file.

    Args:
        file: The trace, at its beginning.

    Raises:
        DecodeError: The file is not a trace, or its compression is damaged.
    """
    if not file.peek(len(_GZIP_START)).startswith(_GZIP_START):
        with _unpacked(file) as packets:
            yield packets
        return
    try:
        with gzip.open(file) as unpacking, _unpacked(cast("BufferedReader", unpacking)) as packets:
            yield packets
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DecodeError(f"the gzip compression is damaged: {error}") from error


@contextmanager
def _unpacked(file: BufferedReader) -> Iterator[BinaryIO]:
    start = file.peek(SNIFFED_BYTES)
    found = format_of_start(start)
    if start and found in _REFUSALS:
        raise DecodeError(_REFUSALS[found])
    if found != FXT:
        yield cast("BinaryIO", file)
        return
    with tempfile.TemporaryFile(prefix="stretto-") as packets:
        import_fxt(cast("BinaryIO", file), packets.write)
        packets.seek(0)
        yield cast("BinaryIO", packets)
