"""Opens a trace as packets: Perfetto's or Fuchsia's format, compressed, in an archive, or plain."""

from __future__ import annotations

import errno
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, cast

from stretto.analysis.fxt.format import BIG_ENDIAN_MAGIC_BYTES
from stretto.analysis.trace_format import (
    FXT,
    JSON,
    SNIFFED_BYTES,
    TEXT,
    format_of_start,
    is_packet_json,
)
from stretto.analysis.unpacking import unpack, unpack_files
from stretto.base.errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from io import BufferedReader
    from typing import BinaryIO

STANDARD_INPUT = "-"
_REFUSALS = {
    TEXT: "it is text: make packets of it, with `stretto convert`",
    JSON: "it is JSON: make packets of it, with `stretto convert`; `stretto query` and "
    "`stretto summary` read Chrome's JSON as it is",
}


class NoTraceError(DecodeError):
    """A file has no format of a trace."""


_IMPORTED = (JSON, FXT)
"""Formats other than packets that the importer reads."""

_KERNEL_TEXT = (b" ", b"TRACE:\n", b"cpus=", b"<html>", b"<!doctype html>", b"<!DOCTYPE html>")


def is_kernel_text(start: bytes) -> bool:
    """Whether a file begins like the kernel's events as text (`native/analysis/systrace.h`)."""
    return start.startswith(_KERNEL_TEXT) or b"# tracer" in start[:128]


def _refuse(reason: str) -> None:
    raise DecodeError(reason)


@contextmanager
def open_file(path: str) -> Iterator[BufferedReader]:
    """Open a file for reading bytes; `-` is standard input.

    Raises:
        OSError: The file can't be read.
    """
    if path == STANDARD_INPUT:
        if sys.stdin is None:
            raise OSError(errno.EBADF, "standard input is closed: name a file", path)
        yield cast("BufferedReader", sys.stdin.buffer)
        return
    with open(path, "rb") as file:
        yield file


@contextmanager
def open_trace(path: str, damaged: Callable[[str], object] = _refuse) -> Iterator[BinaryIO]:
    """Open the packets of a trace file; `-` is standard input.

    The other argument is that of `open_packets`.

    Raises:
        OSError: The file can't be read.
        DecodeError: The file is not a trace.
    """
    with open_file(path) as file, open_packets(file, damaged) as packets:
        yield packets


@contextmanager
def open_packets(
    file: BufferedReader, damaged: Callable[[str], object] = _refuse
) -> Iterator[BinaryIO]:
    """Open the packets of a trace; FXT is converted into a temporary file.

    Args:
        file: The trace, at its beginning.
        damaged: Called with the reason if the compression is damaged or ends early. The trace
            then ends at this place. The default raises a DecodeError.

    Raises:
        DecodeError: The file is not a trace, can't be unpacked, or is an archive of several files.
    """
    with ExitStack() as stack:
        yield _packets(unpack(file, stack, damaged), stack, for_importer=False)


def trace_files(file: BufferedReader, damaged: Callable[[str], object]) -> Iterator[BinaryIO]:
    """Give the files of a trace: one, or those of an archive.

    Each is open until the next one is asked for. All formats that the importer reads stay as they
    are.

    Args:
        file: The trace, at its beginning.
        damaged: As for `open_packets`.

    Raises:
        DecodeError: A file is not a trace, or can't be unpacked.
    """
    for name, content in unpack_files(file, damaged):
        with ExitStack() as stack:
            try:
                packets = _packets(content, stack, for_importer=True)
            except DecodeError as error:
                raise type(error)(f"{name}: {error}" if name else str(error)) from error
            yield packets


def _packets(file: BufferedReader, stack: ExitStack, *, for_importer: bool) -> BinaryIO:
    start = file.peek(SNIFFED_BYTES)
    found = format_of_start(start)
    if start.startswith(BIG_ENDIAN_MAGIC_BYTES):
        raise DecodeError("an FXT trace of a big-endian machine; these aren't read")
    if found == JSON and is_packet_json(start):
        raise DecodeError(_REFUSALS[JSON])
    if for_importer and (found in _IMPORTED or (found is None and is_kernel_text(start))):
        return cast("BinaryIO", file)
    if start and found is None:
        raise NoTraceError("it is no trace")
    if start and found in _REFUSALS:
        raise DecodeError(_REFUSALS[found])
    if found != FXT:
        return cast("BinaryIO", file)
    from stretto.analysis.fxt.importer import import_fxt  # Few traces need it.

    spool = stack.enter_context(tempfile.TemporaryFile(prefix="stretto-"))  # noqa: SIM115
    packets = cast("BinaryIO", spool)
    import_fxt(cast("BinaryIO", file), packets.write)
    packets.seek(0)
    return packets
