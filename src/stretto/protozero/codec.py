"""Codecs: check, encode and decode single values of each type, without their tags.

Integers are truncated to their width when they are decoded, as in every protobuf parser.
Strings that are not UTF-8 are decoded with surrogate escapes, and encode to the same bytes
again. Enum values are plain integers, so unknown values are kept.
"""

from __future__ import annotations

from stretto.protozero import wire
from stretto.protozero.quoting import quoted

TYPE_CHECKING = False  # Importing `typing` takes longer than importing this module.
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from stretto.protozero.enums import Enum

_U64 = 0xFFFFFFFFFFFFFFFF


class Codec:
    """The codec of one value type.

    Attributes:
        kind: name of the type in .proto files, or the full name of a message.
        wire_type: wire type of an encoded value.
        default: value of an unset field.
        check: normalizes a value, or raises ValueError with the expected type.
        pack: encodes a checked value; delimited values include their length.
        take: decodes a value; takes the data, value and end as `read_field` returns them, and
            the number of enclosing messages.
    """

    __slots__ = ("check", "default", "kind", "pack", "take", "wire_type")
    is_message = False

    def __init__(
        self,
        kind: str,
        wire_type: int,
        default: Any,
        *,
        check: Callable[[Any], Any],
        pack: Callable[[Any], bytes],
        take: Callable[[bytes, int, int, int], Any],
    ) -> None:
        self.kind = kind
        self.wire_type = wire_type
        self.default = default
        self.check = check
        self.pack = pack
        self.take = take

    def unset_value(self) -> Any:
        """Return the value of a map entry that has only a key."""
        return self.default


class MessageCodec(Codec):
    """The codec of a message class. The message class is created when it is first used.

    `message` imports this module, so the message class is annotated as `Any`, not as `Message`.
    """

    __slots__ = ("_class", "_resolve")
    is_message = True

    def __init__(self, name: str, resolve: Callable[[], type[Any]]) -> None:
        super().__init__(
            name, wire.DELIMITED, None, check=self._check, pack=self._pack, take=self._take
        )
        self._resolve = resolve
        self._class: type[Any] | None = None

    def unset_value(self) -> Any:
        return self.message_class()

    @property
    def message_class(self) -> type[Any]:
        if self._class is None:
            self._class = self._resolve()
        return self._class

    def _check(self, value: Any) -> Any:
        if not isinstance(value, self.message_class):
            raise ValueError(f"expected {self.kind}, got {quoted(value)}")
        return value

    def _pack(self, value: Any) -> bytes:
        return _pack_bytes(value.encode())

    def _take(self, data: bytes, start: int, end: int, depth: int) -> Any:
        message = self.message_class()
        message.merge_encoded(data, start, end, depth + 1)
        return message


def _pack_bytes(data: bytes) -> bytes:
    return wire.varint(len(data)) + data


def _integer(kind: str, wire_type: int, bits: int, signed: bool) -> Codec:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    mask = (1 << bits) - 1
    size = bits // 8

    def check(value: Any) -> int:
        try:
            # `__index__` accepts every integer type, such as bool and numpy's integers, but not
            # float.
            number = int(value.__index__())
        except (AttributeError, TypeError):
            number = high + 1
        if not low <= number <= high:
            raise ValueError(f"expected {kind} ({low} to {high}), got {quoted(value)}")
        return number

    def pack_varint(value: int) -> bytes:
        return wire.varint(value & _U64)

    def pack_fixed(value: int) -> bytes:
        return (value & mask).to_bytes(size, "little")

    def take(_data: bytes, value: int, _end: int, _depth: int) -> int:
        value &= mask
        return value - mask - 1 if value > high else value

    pack = pack_varint if wire_type == wire.VARINT else pack_fixed
    return Codec(kind, wire_type, 0, check=check, pack=pack, take=take)


def _zigzag(kind: str, bits: int) -> Codec:
    mask = (1 << bits) - 1

    def pack(value: int) -> bytes:
        return wire.varint(wire.zigzag(value))

    def take(_data: bytes, value: int, _end: int, _depth: int) -> int:
        return wire.unzigzag(value & mask)

    plain = _integer(kind, wire.VARINT, bits, signed=True)
    return Codec(kind, wire.VARINT, 0, check=plain.check, pack=pack, take=take)


def _bool() -> Codec:
    def check(value: Any) -> bool:
        if value not in (0, 1):
            raise ValueError(f"expected bool, got {quoted(value)}")
        return bool(value)

    def pack(value: bool) -> bytes:
        return b"\x01" if value else b"\x00"

    def take(_data: bytes, value: int, _end: int, _depth: int) -> bool:
        return value != 0

    return Codec("bool", wire.VARINT, False, check=check, pack=pack, take=take)


def _float(kind: str, wire_type: int, layout: str, size: int) -> Codec:
    # Few messages have such fields, so `struct` is imported when it is needed.

    def check(value: Any) -> float:
        import struct

        try:
            # A float is rounded to 32 bits: it then equals the value that is decoded later.
            (number,) = struct.unpack(layout, struct.pack(layout, value))
        except OverflowError:
            raise ValueError(f"{quoted(value)} is out of range for {kind}") from None
        except struct.error:
            raise ValueError(f"expected {kind}, got {quoted(value)}") from None
        return float(number)

    def pack(value: float) -> bytes:
        import struct

        return struct.pack(layout, value)

    def take(_data: bytes, value: int, _end: int, _depth: int) -> float:
        import struct

        (number,) = struct.unpack(layout, value.to_bytes(size, "little"))
        return float(number)

    return Codec(kind, wire_type, 0.0, check=check, pack=pack, take=take)


def _string() -> Codec:
    def check(value: Any) -> str:
        if not isinstance(value, str):
            raise ValueError(f"expected string, got {quoted(value)}")
        try:
            value.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise ValueError(
                f"expected string, {quoted(value)} can't be encoded as UTF-8"
            ) from None
        return str(value)

    def pack(value: str) -> bytes:
        return _pack_bytes(value.encode("utf-8", "surrogateescape"))

    def take(data: bytes, start: int, end: int, _depth: int) -> str:
        return data[start:end].decode("utf-8", "surrogateescape")

    return Codec("string", wire.DELIMITED, "", check=check, pack=pack, take=take)


def _bytes() -> Codec:
    def check(value: Any) -> bytes:
        if not isinstance(value, bytes | bytearray | memoryview):
            raise ValueError(f"expected bytes, got {quoted(value)}")
        return bytes(value)

    def take(data: bytes, start: int, end: int, _depth: int) -> bytes:
        return data[start:end]

    return Codec("bytes", wire.DELIMITED, b"", check=check, pack=_pack_bytes, take=take)


class EnumCodec(Codec):
    """The codec of an enum class. The enum class is created when it is first used."""

    __slots__ = ("_class", "_resolve")

    def __init__(self, resolve: Callable[[], type[Enum]]) -> None:
        plain = SCALARS["enum"]
        super().__init__(
            "enum", wire.VARINT, 0, check=plain.check, pack=plain.pack, take=plain.take
        )
        self._resolve = resolve
        self._class: type[Enum] | None = None

    @property
    def enum_class(self) -> type[Enum]:
        if self._class is None:
            self._class = self._resolve()
        return self._class


SCALARS: dict[str, Codec] = {
    codec.kind: codec
    for codec in (
        _integer("int32", wire.VARINT, 32, signed=True),
        _integer("int64", wire.VARINT, 64, signed=True),
        _integer("uint32", wire.VARINT, 32, signed=False),
        _integer("uint64", wire.VARINT, 64, signed=False),
        _integer("enum", wire.VARINT, 32, signed=True),
        _integer("fixed32", wire.FIXED32, 32, signed=False),
        _integer("fixed64", wire.FIXED64, 64, signed=False),
        _integer("sfixed32", wire.FIXED32, 32, signed=True),
        _integer("sfixed64", wire.FIXED64, 64, signed=True),
        _zigzag("sint32", 32),
        _zigzag("sint64", 64),
        _bool(),
        _float("float", wire.FIXED32, "<f", 4),
        _float("double", wire.FIXED64, "<d", 8),
        _string(),
        _bytes(),
    )
}
"""The codec of every scalar kind, by its name in .proto files."""

DECODED_FIELD_METHODS = {
    **{kind: f"as_{kind}" for kind in SCALARS},
    **dict.fromkeys(("enum", "sfixed32"), "as_int32"),
    "sfixed64": "as_int64",
    "fixed32": "as_uint32",
    "fixed64": "as_uint64",
}
"""The method of `DecodedField` that returns the value, by kind."""
