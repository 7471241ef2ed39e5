"""Zip archives that are cut off.

The directory of a zip archive is at its end. Without it, the files are found by the headers before
them, one after another.
"""

from __future__ import annotations

import os
import struct
import zlib
from typing import TYPE_CHECKING, NamedTuple

from stretto.base.errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

_MAGIC = b"PK\x03\x04"
_HEADER = struct.Struct("<4s2xHH8xIIHH")
"""Signature, flags, method; the sizes of the packed and of the original data, of name and extra."""
_ENCRYPTED, _SIZES_FOLLOW = 1, 8
_STORED, _DEFLATED = 0, 8
_ZIP64 = 0xFFFFFFFF
_MAX_DESCRIPTOR = 24
"""What is between a file and the next header, if the sizes follow the data."""
_CHUNK = 1 << 16


class Part(NamedTuple):
    """A file of an archive.

    Attributes:
        name: Its name.
        start: The position of its data.
        size: The size of its data; None if only the data says where it ends.
        is_packed: Whether the data is compressed by deflate.
    """

    name: str
    start: int
    size: int | None
    is_packed: bool


class Content:
    """Reads the content of a part. Each has its own position in the file.

    Args:
        file: The archive.
        part: The part.
        is_last: Whether the archive ends in this part or after it.
    """

    def __init__(self, file: BinaryIO, part: Part, *, is_last: bool = False) -> None:
        self._file = file
        self._part = part
        self._is_last = is_last
        self._inflate = zlib.decompressobj(-zlib.MAX_WBITS) if part.is_packed else None
        self.position = part.start
        """Where the data ends, once all is read."""

    def read1(self, size: int) -> bytes:
        """Return some of the content; nothing at its end.

        Raises:
            EOFError: The archive ends here.
            zlib.error: The data is damaged.
        """
        data = b""
        while not data and (packed := self._packed(size)):
            data = packed if self._inflate is None else self._inflated(packed, size)
        if not data and (self._is_last or not self._is_complete()):
            raise EOFError("it is cut off")
        return data

    def _packed(self, size: int) -> bytes:
        if self._inflate is not None:
            if self._inflate.eof:
                return b""
            if self._inflate.unconsumed_tail:
                return self._inflate.unconsumed_tail
            size = _CHUNK
        if self._part.size is not None:
            size = min(size, self._part.start + self._part.size - self.position)
        self._file.seek(self.position)
        data = self._file.read(size)
        self.position += len(data)
        return data

    def _inflated(self, packed: bytes, size: int) -> bytes:
        assert self._inflate is not None
        data = self._inflate.decompress(packed, size)
        self.position -= len(self._inflate.unused_data)
        return data

    def _is_complete(self) -> bool:
        if self._inflate is not None:
            return self._inflate.eof
        return self._part.size == self.position - self._part.start


def parts(file: BinaryIO) -> list[Part]:
    """Return the files of an archive that is cut off; the last one may be incomplete.

    Args:
        file: The archive; it can seek.

    Raises:
        DecodeError: There is no file, or its data can't be read.
    """
    found = list(_parts(file))
    if not found:
        raise DecodeError("the zip archive can't be read: it ends before its first file")
    return found


def _parts(file: BinaryIO) -> Iterator[Part]:
    end = file.seek(0, os.SEEK_END)
    position: int | None = 0
    while position is not None and (part := _part_at(file, position)) is not None:
        if not part.name.endswith("/"):
            yield part
        position = _after(file, part, end)


def _part_at(file: BinaryIO, position: int) -> Part | None:
    file.seek(position)
    header = file.read(_HEADER.size)
    if len(header) < _HEADER.size or not header.startswith(_MAGIC):
        return None
    _, flags, method, size, original, name_size, extra_size = _HEADER.unpack(header)
    name = file.read(name_size)
    start = position + _HEADER.size + name_size + extra_size
    if len(name) < name_size:
        return None
    if flags & _ENCRYPTED or method not in (_STORED, _DEFLATED):
        raise DecodeError(
            "the zip archive can't be read: it is cut off, and its files are encrypted "
            "or compressed by another method than deflate"
        )
    is_known = not flags & _SIZES_FOLLOW and _ZIP64 not in (size, original)
    return Part(
        name.decode("utf-8", "replace"), start, size if is_known else None, method != _STORED
    )


def _after(file: BinaryIO, part: Part, end: int) -> int | None:
    """Return the position of the header after a part; None if there is none."""
    if part.size is not None:
        after = part.start + part.size
        return after if after < end else None
    content = Content(file, part)
    try:
        while content.read1(_CHUNK):
            pass
    except (EOFError, zlib.error):
        return None
    file.seek(content.position)
    offset = file.read(_MAX_DESCRIPTOR + len(_MAGIC)).find(_MAGIC)
    return content.position + offset if offset >= 0 else None
