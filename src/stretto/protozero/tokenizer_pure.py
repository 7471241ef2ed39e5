"""Implements the native class of `stretto.protozero.tokenizer` in Python."""

from __future__ import annotations

from stretto.base.errors import DecodeError, LocalProtocolError
from stretto.protozero.wire import DELIMITED, FIXED32, FIXED64, VARINT, read_varint

TYPE_CHECKING = False  # Importing `typing` takes longer than importing this module.
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self

_MAX_VARINT = 10


class _CutError(Exception):
    """Raised if the data ends within a field."""


class Tokenizer:
    """Splits a stream into messages; see `stretto.protozero.tokenizer`."""

    def __init__(
        self,
        make: Callable[[bytes], Any] = bytes,
        marker: bytes = b"",
        field: int = 1,
        max_size: int = 64 << 20,
    ) -> None:
        self._make = make
        self._marker = marker
        self._field = field
        self._max_size = max_size
        self._data = b""
        self._pos = 0
        self._lost = self._ended = False
        self.errors = 0
        self.bytes_skipped = 0

    def append(self, data: bytes | bytearray | memoryview) -> Self:
        """Append a piece of the stream; return self, which iterates over complete messages."""
        if self._ended:
            raise LocalProtocolError("the stream has ended: make a new Tokenizer")
        self._data = self._data[self._pos :] + bytes(data)
        self._pos = 0
        return self

    def end(self) -> Self:
        """End the stream; return self, which iterates over messages recovered at the end."""
        self._ended = True
        return self

    @property
    def bytes_left(self) -> int:
        return len(self._data) - self._pos

    def count(self) -> int:
        """Consume the complete messages and return their number."""
        make, self._make = self._make, len
        try:
            return sum(1 for _ in self)
        finally:
            self._make = make

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        while not self._lost or self._find_marker():
            try:
                message, self._pos = self._measure(self._pos)
            except _CutError:
                if not (self._ended and self.bytes_left):
                    break
                self._get_lost()
            except DecodeError:
                self._get_lost()
            else:
                if message is not None:
                    return self._make(message)
        raise StopIteration

    def _get_lost(self) -> None:
        self.errors += 1
        self._lost = True

    def _find_marker(self) -> bool:
        found = self._data.find(self._marker, self._pos) if self._marker else -1
        self._lost = found < 0
        # The last bytes of the data may be the start of a marker.
        kept = max(len(self._marker) - 1, 0) if not self._ended else 0
        after = found + len(self._marker) if found >= 0 else max(self._pos, len(self._data) - kept)
        self.bytes_skipped += after - self._pos
        self._pos = after
        return not self._lost

    def _measure(self, begin: int) -> tuple[bytes | None, int]:
        """Return the message at a position (None for another field) and the next position."""
        key, pos = self._varint(begin)
        number, wire_type = key >> 3 & 0xFFFFFFFF, key & 7
        if number == 0 or wire_type not in (VARINT, FIXED64, DELIMITED, FIXED32):
            raise DecodeError(f"no field at offset {begin}")
        size = {FIXED64: 8, FIXED32: 4}.get(wire_type, 0)
        if wire_type == VARINT:
            _, pos = self._varint(pos)
        elif wire_type == DELIMITED:
            size, pos = self._varint(pos)
            if size > self._max_size:
                raise DecodeError(f"a message of {size} bytes at offset {begin}")
        if pos + size > len(self._data):
            raise _CutError
        is_message = wire_type == DELIMITED and number == self._field
        return (self._data[pos : pos + size] if is_message else None), pos + size

    def _varint(self, pos: int) -> tuple[int, int]:
        try:
            return read_varint(self._data, pos, len(self._data))
        except DecodeError:
            if len(self._data) - pos < _MAX_VARINT:
                raise _CutError from None
            raise
