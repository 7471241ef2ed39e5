"""Reads the words of one record; nothing is read beyond its end."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from stretto.analysis.fxt import format as fxt
from stretto.base.errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import Mapping

_WORD = struct.Struct("<Q")


class Words:
    """A cursor over the words of a record, or of a part of it.

    Args:
        data: The bytes that contain the record.
        position: The start, in bytes.
        end: The end of the record or the part, in bytes.
        strings: The string table for references.
    """

    __slots__ = ("_data", "_end", "_strings", "position")

    def __init__(self, data: bytes, position: int, end: int, strings: Mapping[int, str]) -> None:
        self._data = data
        self.position = position
        self._end = end
        self._strings = strings

    def part(self, end: int) -> Words:
        """Return a cursor for the words from here to `end`.

        Raises:
            DecodeError: `end` is beyond this record.
        """
        if end > self._end:
            raise DecodeError("it reaches beyond its record")
        return Words(self._data, self.position, end, self._strings)

    def word(self) -> int:
        """Read the next word.

        Raises:
            DecodeError: The record has no further word.
        """
        position = self.position
        self._need(fxt.WORD_BYTES)
        self.position = position + fxt.WORD_BYTES
        value: int = _WORD.unpack_from(self._data, position)[0]
        return value

    def stream(self, size: int) -> bytes:
        """Read the next `size` bytes, and skip their padding.

        Raises:
            DecodeError: The record has fewer bytes left.
        """
        position = self.position
        self._need(fxt.padded(size))
        self.position = position + fxt.padded(size)
        return self._data[position : position + size]

    def text(self, reference: int) -> str:
        """Return the text of a string reference; "" if the table has no such entry.

        Raises:
            DecodeError: The text is inline, and longer than the rest of the record.
        """
        if reference & fxt.INLINE:
            return self.stream(reference & ~fxt.INLINE).decode(errors="replace")
        return self._strings.get(reference, "") if reference else ""

    def _need(self, size: int) -> None:
        if self.position + size > self._end:
            missing = self.position + size - self._end
            raise DecodeError(f"it is truncated: {missing} bytes are missing")
