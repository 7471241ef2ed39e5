"""Conversion between Perfetto's debug annotations and FXT's arguments.

FXT's arguments are flat: a nested value gets a name like `request.headers[0]`, as in the trace
processor's tables (see `nested_names`). If an event would have more than 15 arguments, each nested
annotation becomes one argument: a JSON text. Perfetto has no ids of kernel objects and no bytes:
ids become numbers, bytes become hexadecimal text.

Source: docs/formats/track_events.md, "Fields".
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

from stretto.analysis.fxt import format as fxt
from stretto.analysis.fxt.nested_names import nest, path_of
from stretto.analysis.fxt.records import Argument
from stretto.protos.trace import DebugAnnotation
from stretto.protozero.selector import select

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stretto.analysis.fxt.nested_names import Node

MAX_DEPTH = 20
_KINDS = (fxt.INT64, fxt.UINT64, fxt.TEXT, fxt.BOOL, fxt.DOUBLE, fxt.POINTER, fxt.TEXT)
_annotation = select(
    DebugAnnotation,
    "name_iid",
    "name",
    "dict_entries",
    "array_values",
    "string_value_iid",
    "int_value",
    "uint_value",
    "string_value",
    "bool_value",
    "double_value",
    "pointer_value",
    "legacy_json_value",
)


class AnnotationReader:
    """Converts encoded annotations to arguments.

    Args:
        names: Interned names, by id.
        texts: Interned string values, by id.

    Attributes:
        too_deep: The number of values left out because they are nested deeper than MAX_DEPTH.
    """

    __slots__ = ("_names", "_texts", "too_deep")

    def __init__(self, names: Mapping[int, str], texts: Mapping[int, str]) -> None:
        self._names = names
        self._texts = texts
        self.too_deep = 0

    def arguments(self, data: bytes, prefix: str = "", depth: int = 0) -> Iterator[Argument]:
        """Yield the arguments of an encoded annotation.

        Args:
            data: The annotation.
            prefix: The path of the enclosing value, with a dot at its end; "" at the top.
            depth: The number of enclosing values.

        Raises:
            DecodeError: The annotation is malformed.
        """
        row = _annotation(data)
        iid, name = row[:2]
        yield from self._flat(
            row, prefix + path_of(self._names.get(iid, "") if iid else name or ""), depth
        )

    def _flat(self, row: tuple[object, ...], name: str, depth: int) -> Iterator[Argument]:
        entries, elements = cast("tuple[list[bytes] | None, list[bytes] | None]", row[2:4])
        if not (entries or elements):
            yield self._plain(row, name)
        elif depth < MAX_DEPTH:
            for each in entries or ():
                yield from self.arguments(each, f"{name}.", depth + 1)
            for at, each in enumerate(elements or ()):
                yield from self._flat(_annotation(each), f"{name}[{at}]", depth + 1)
        else:
            self.too_deep += 1

    def _plain(self, row: tuple[object, ...], name: str) -> Argument:
        if row[4] is not None:
            return Argument(name, fxt.TEXT, self._texts.get(cast("int", row[4]), ""))
        for kind, value in zip(_KINDS, row[5:], strict=True):
            if value is not None:
                return _argument(name, kind, cast("int | float | str", value))
        return Argument(name, fxt.NULL, None)


def _argument(name: str, kind: int, value: float | str) -> Argument:
    """Return an argument, with the 32-bit type for an integer that fits into 32 bits."""
    if kind == fxt.INT64 and -(1 << 31) <= cast("int", value) < 1 << 31:
        return Argument(name, fxt.INT32, value)
    if kind == fxt.UINT64 and cast("int", value) < 1 << 32:
        return Argument(name, fxt.UINT32, value)
    return Argument(name, kind, value)


def as_text(arguments: list[Argument]) -> list[Argument]:
    """Reduce an annotation to one argument for each name; a nested value becomes JSON text."""
    found = []
    for name, node in nest(arguments):
        if isinstance(node, tuple):
            found.append(Argument(path_of(name), *node))
        else:
            text = json.dumps(_values(node), separators=(",", ":"), ensure_ascii=False)
            found.append(Argument(path_of(name), fxt.TEXT, text))
    return found


def _values(node: Node) -> object:
    if isinstance(node, dict):
        return {name: _values(below) for name, below in node.items()}
    return list(map(_values, node)) if isinstance(node, list) else node[1]


def write_node(entry: DebugAnnotation.Writer, node: Node) -> None:
    """Write a value, plain or nested, into an annotation."""
    if isinstance(node, dict):
        for name, below in node.items():
            with entry.add_dict_entries() as inner:
                inner.set_name(name)
                write_node(inner, below)
    elif isinstance(node, list):
        for below in node:
            with entry.add_array_values() as inner:
                write_node(inner, below)
    elif node[1] is not None:
        _write_value(entry, node[0], node[1])


def _write_value(entry: DebugAnnotation.Writer, kind: int, value: float | str | bytes) -> None:
    if isinstance(value, str):
        entry.set_string_value(value)
    elif isinstance(value, bytes):
        entry.set_string_value(value.hex())
    elif kind == fxt.DOUBLE:
        entry.set_double_value(value)
    elif kind == fxt.BOOL:
        entry.set_bool_value(bool(value))
    elif kind == fxt.POINTER:
        entry.set_pointer_value(int(value))
    elif kind in (fxt.INT32, fxt.INT64):
        entry.set_int_value(int(value))
    else:
        entry.set_uint_value(int(value))
