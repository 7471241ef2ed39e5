"""Implements the native classes of `stretto.protozero.decoder` in Python."""

from __future__ import annotations

import struct

from stretto.base.errors import DecodeError
from stretto.protozero import wire

TYPE_CHECKING = False  # Importing `typing` takes longer than importing this module.
if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_FIELD_NUMBER = (1 << 24) - 1
_U32 = 0xFFFFFFFF
_NOTHING = memoryview(b"")


class DecodedField:
    """A decoded field, not converted to its type.

    The `as_` methods convert the value to a type. They truncate integers to their width, and return
    0 or an empty value if the wire type doesn't fit the type: a peer may send a field with any wire
    type.

    Attributes:
        number: field number.
        wire_type: VARINT, FIXED64, DELIMITED or FIXED32 of `wire`.
        value: unsigned value; 0 for a delimited field.
        data: bytes of a delimited field, as a view of the input; otherwise empty.
    """

    __slots__ = ("data", "number", "value", "wire_type")

    def __init__(self, number: int, wire_type: int, value: int, data: memoryview) -> None:
        self.number = number
        self.wire_type = wire_type
        self.value = value
        self.data = data

    def as_uint64(self) -> int:
        return self.value

    def as_int64(self) -> int:
        return self.value - (1 << 64) if self.value >> 63 else self.value

    def as_uint32(self) -> int:
        return self.value & _U32

    def as_int32(self) -> int:
        value = self.value & _U32
        return value - (1 << 32) if value >> 31 else value

    def as_sint64(self) -> int:
        return wire.unzigzag(self.value)

    def as_sint32(self) -> int:
        return wire.unzigzag(self.value & _U32)

    def as_bool(self) -> bool:
        return self.value != 0

    def as_float(self) -> float:
        (number,) = struct.unpack("<f", (self.value & _U32).to_bytes(4, "little"))
        return float(number)

    def as_double(self) -> float:
        (number,) = struct.unpack("<d", self.value.to_bytes(8, "little"))
        return float(number)

    def as_bytes(self) -> bytes:
        return bytes(self.data)

    def as_string(self) -> str:
        """Decode the bytes as UTF-8; invalid bytes become surrogate escapes."""
        return str(self.data, "utf-8", "surrogateescape")

    def as_message(self) -> Decoder:
        return Decoder(self.data)

    def packed_varints(self) -> Iterator[int]:
        """Iterate over the elements of a packed field.

        Raises:
            DecodeError: The last element is incomplete.
        """
        return self._packed(wire.VARINT)

    def packed_fixed32(self) -> Iterator[int]:
        """Like `packed_varints`, for 32-bit elements."""
        return self._packed(wire.FIXED32)

    def packed_fixed64(self) -> Iterator[int]:
        """Like `packed_varints`, for 64-bit elements."""
        return self._packed(wire.FIXED64)

    def _packed(self, wire_type: int) -> Iterator[int]:
        pos, end = 0, len(self.data)
        while pos < end:
            value, pos = wire.read_value(self.data, pos, end, wire_type)
            yield value

    def __repr__(self) -> str:
        value = bytes(self.data) if self.wire_type == wire.DELIMITED else self.value
        return f"DecodedField({self.number}, wire_type={self.wire_type}, {value!r})"


class Decoder:
    """An iterator over the fields of one message."""

    __slots__ = ("_data", "_pos", "error")

    def __init__(self, data: bytes | bytearray | memoryview) -> None:
        self._data = memoryview(data).cast("B")
        self._pos = 0
        self.error: DecodeError | None = None
        """Why iteration stopped before the end."""

    @property
    def bytes_left(self) -> int:
        """Number of unread bytes; if it isn't 0 after the iteration, the rest is malformed."""
        return len(self._data) - self._pos

    def __iter__(self) -> Decoder:
        return self

    def __next__(self) -> DecodedField:
        data, end = self._data, len(self._data)
        while self._pos < end:
            try:
                number, wire_type, value, pos = wire.read_field(data, self._pos, end)
            except DecodeError as error:
                self.error = error
                break
            self._pos = pos
            if number > _MAX_FIELD_NUMBER:
                continue
            if wire_type != wire.DELIMITED:
                return DecodedField(number, wire_type, value, _NOTHING)
            if pos - value <= wire.MAX_SIZE:
                return DecodedField(number, wire_type, 0, data[value:pos])
        raise StopIteration

    def find(self, number: int) -> DecodedField | None:
        """Return the first field with this number in the message."""
        for field in Decoder(self._data):
            if field.number == number:
                return field
        return None
