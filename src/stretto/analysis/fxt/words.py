"""The words of one record, read one after the other; nothing is read beyond its end."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from stretto.analysis.fxt import format as fxt
from stretto.base.errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import Mapping

_WORD = struct.Struct("<Q")


class Words:
    """Args:
    data: What holds the record.
    position: Where to begin, in bytes.
    end: Where the record, or part of it, ends.
    strings: The table that references point to.
    """

    __slots__ = ("_data", "_end", "_strings", "position")

    def __init__(self, data: bytes, position: int, end: int, strings: Mapping[int, str]) -> None:
        self._data = data
        self.position = position
        self._end = end
        self._strings = strings

    def part(self, end: int) -> Words:
        """What lies between here and `end`.

        Raises:
            DecodeError: There is less.
        """
        if end > self._end:
            raise DecodeError("it reaches beyond its record")
        return Words(self._data, self.position, end, self._strings)

    def word(self) -> int:
        """The next word.

        Raises:
            DecodeError: There is none.
        """
        position = self.position
        self._need(fxt.WORD_BYTES)
        self.position = position + fxt.WORD_BYTES
        value: int = _WORD.unpack_from(self._data, position)[0]
        return value

    def stream(self, size: int) -> bytes:
        """The next bytes, and over their padding.

        Raises:
            DecodeError: There are fewer.
        """
        position = self.position
        self._need(fxt.padded(size))
        self.position = position + fxt.padded(size)
        return self._data[position : position + size]

    def text(self, reference: int) -> str:
        """What a string reference means; the empty string if its entry was never made.

        Raises:
            DecodeError: It is inline, and longer than what is left.
        """
        if reference & fxt.INLINE:
            return self.stream(reference & ~fxt.INLINE).decode(errors="replace")
        return self._strings.get(reference, "") if reference else ""

    def _need(self, size: int) -> None:
        if self.position + size > self._end:
            missing = self.position + size - self._end
            raise DecodeError(f"it breaks off {missing} bytes before its end")
