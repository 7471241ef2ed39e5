"""Encodes tables and unions, and the contents of their envelopes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

from stretto_fidl.codec.checks import check_depth, describe, is_optional, wrong_type
from stretto_fidl.codec.encoding.plan import (
    Encoder,
    Items,
    items_of,
    later,
    makes,
    refused,
)
from stretto_fidl.codec.layout import INLINE_SIZE, PRESENT, layout
from stretto_fidl.codec.types import Member, Table, Type, Union
from stretto_fidl.codec.wire_error import (
    FLEXIBLE_UNION_UNKNOWN_FIELD,
    STRICT_UNION_UNKNOWN_FIELD,
    UNION_FIELD_NOT_SET,
    WireError,
)

_WORD: Final = struct.Struct("<Q")

Envelope = Callable[[Any, Encoder, int], int]
"""Writes the contents of an envelope, unless they are inlined, and returns the envelope."""


def _envelope(type_: Type) -> Envelope:
    shape = layout(type_)
    if shape.size > INLINE_SIZE or is_optional(type_):
        return _outside(type_)
    packer = struct.Struct(f"<{shape.format}{INLINE_SIZE - shape.size}x")
    inner = items_of(type_)

    def envelope(value: Any, encoder: Encoder, depth: int) -> int:
        before = len(encoder.handles)
        try:
            data = packer.pack(*inner(value, encoder, depth))
        except (struct.error, OverflowError, TypeError):
            raise refused(type_, value) from None
        handles = len(encoder.handles) - before
        return int.from_bytes(data, "little") | handles << 32 | 1 << 48

    return envelope


def _outside(type_: Type) -> Envelope:
    write = later(type_)

    def envelope(value: Any, encoder: Encoder, depth: int) -> int:
        start, before = len(encoder.out), len(encoder.handles)
        write(value, encoder, depth + 1)
        return len(encoder.out) - start | len(encoder.handles) - before << 32

    return envelope


class _Envelopes:
    """Writes the members of a table or union; compiles the code for a member at its first use."""

    __slots__ = ("_hidden", "_made")

    def __init__(self, type_: Table | Union) -> None:
        self._made: dict[int, Envelope] = {}
        self._hidden = type_.hidden

    def write(self, member: Member, value: Any, encoder: Encoder, depth: int) -> int:
        envelope = self._made.get(member.ordinal)
        if envelope is None:
            envelope = self._made[member.ordinal] = _envelope(member.type)
        try:
            return envelope(value, encoder, depth)
        except WireError as error:
            error.add_step(member.name, hidden=member.name in self._hidden)
            raise


@makes(Table)
def _table(type_: Table, _optional: bool) -> Items:
    cls, expected = type_.cls, describe(type_)
    members = sorted(type_.members, key=lambda member: member.ordinal)
    envelopes = _Envelopes(type_)

    def items(value: Any, encoder: Encoder, depth: int) -> Sequence[Any]:
        if value.__class__ is not cls:
            raise wrong_type(value, expected)
        check_depth(depth + 1)
        present = [(m, v) for m in members if (v := getattr(value, m.python_name)) is not None]
        if not present:
            return (0, PRESENT)
        count = present[-1][0].ordinal
        out = encoder.out
        start = len(out) - 8
        out.extend(bytes(8 * count))
        for member, inner in present:
            envelope = envelopes.write(member, inner, encoder, depth + 1)
            _WORD.pack_into(out, start + 8 * member.ordinal, envelope)
        return (count, PRESENT)

    return items


@makes(Union)
def _union(type_: Union, optional: bool) -> Items:
    cls, expected = type_.cls, describe(type_)
    by_ordinal = {member.ordinal: member for member in type_.members}
    unknown = STRICT_UNION_UNKNOWN_FIELD if type_.strict else FLEXIBLE_UNION_UNKNOWN_FIELD
    envelopes = _Envelopes(type_)

    def items(value: Any, encoder: Encoder, depth: int) -> Sequence[Any]:
        if value.__class__ is not cls:
            if value is None and optional:
                return (0, 0)
            raise wrong_type(value, expected)
        ordinal = value.ordinal
        member = by_ordinal.get(ordinal)
        if member is None:
            code = unknown if ordinal else UNION_FIELD_NOT_SET
            raise WireError(code, f"{expected} with the unknown ordinal {ordinal} can't be encoded")
        return (ordinal, envelopes.write(member, value.value, encoder, depth))

    return items
