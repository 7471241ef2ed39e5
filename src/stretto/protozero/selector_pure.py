"""Implements the native classes of `stretto.protozero.selector` in Python."""

from __future__ import annotations

from stretto.base.errors import DecodeError
from stretto.protozero.codec import DECODED_FIELD_METHODS, SCALARS
from stretto.protozero.decoder_pure import DecodedField, Decoder
from stretto.protozero.wire import DELIMITED, FIXED32, FIXED64

TYPE_CHECKING = False  # Importing `typing` takes longer than importing this module.
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    Row: TypeAlias = tuple[int, str, bool, int, list[Any]]
    """Field number, kind, whether repeated, column or -1, and the rows of the nested message."""

_EMPTY = memoryview(b"")


class Selector:
    """Extracts the selected fields of a message as a tuple: `selector(data)`."""

    __slots__ = ("_columns", "_tree")

    def __init__(self, columns: int, tree: list[Row]) -> None:
        self._columns = columns
        self._tree = tree

    def __call__(self, data: bytes | bytearray | memoryview) -> tuple[Any, ...]:
        values: list[Any] = [None] * self._columns
        _fill(self._tree, data, values)
        return tuple(values)


def _fill(tree: list[Row], data: bytes | bytearray | memoryview, values: list[Any]) -> None:
    fields = list(Decoder(data))
    for number, kind, repeated, column, inside in tree:
        found = [field for field in fields if field.number == number]
        alone = [field for field in found if field.wire_type == _wire_type(kind)]
        if column >= 0 and repeated:
            values[column] = [value for field in found for value in _elements(kind, field)]
        elif column >= 0 and alone:
            values[column] = _value(kind, alone[-1])
        if inside and alone:
            _fill(inside, alone[-1].data, values)
        elif inside:
            _fill(inside, b"", values)


def _wire_type(kind: str) -> int:
    return DELIMITED if kind == "message" else SCALARS[kind].wire_type


def _value(kind: str, field: DecodedField) -> Any:
    method = "as_bytes" if kind == "message" else DECODED_FIELD_METHODS[kind]
    return getattr(field, method)()


def _elements(kind: str, field: DecodedField) -> list[Any]:
    wire_type = _wire_type(kind)
    if field.wire_type == wire_type:
        return [_value(kind, field)]
    if field.wire_type != DELIMITED:
        return []
    packed = {FIXED32: field.packed_fixed32, FIXED64: field.packed_fixed64}
    values: list[Any] = []
    try:
        values.extend(
            _value(kind, DecodedField(field.number, wire_type, bits, _EMPTY))
            for bits in packed.get(wire_type, field.packed_varints)()
        )
    except DecodeError:
        pass  # The field is truncated; `values` has the complete elements.
    return values
