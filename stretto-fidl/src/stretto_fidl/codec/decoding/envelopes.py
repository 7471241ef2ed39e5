"""Decodes tables and unions, and the contents of their envelopes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from stretto_fidl.codec.checks import absent, check_depth, describe, is_optional
from stretto_fidl.codec.decoding.plan import Decoder, Value, check_padding, later, makes, value_of
from stretto_fidl.codec.decoding.values import is_present
from stretto_fidl.codec.layout import INLINE_SIZE, PRESENT, V2, layout
from stretto_fidl.codec.types import UNBOUNDED, Table, Type, Union
from stretto_fidl.codec.wire_error import (
    ENVELOPE_BYTES_EXCEED_MESSAGE_LENGTH,
    ENVELOPE_HANDLES_EXCEED_MESSAGE_LENGTH,
    INVALID_INLINE_BIT_IN_ENVELOPE,
    INVALID_INLINE_MARKER_IN_ENVELOPE,
    INVALID_NUM_BYTES_IN_ENVELOPE,
    INVALID_NUM_HANDLES_IN_ENVELOPE,
    INVALID_PADDING_BYTE,
    INVALID_PRESENCE_INDICATOR,
    NON_CANONICAL_TABLE,
    NON_RESOURCE_UNKNOWN_HANDLES,
    STRICT_UNION_UNKNOWN_FIELD,
    TABLE_COUNT_EXCEEDS_32_BIT_LIMIT,
    UNEXPECTED_ORDINAL,
    UNION_FIELD_NOT_SET,
    WireError,
)

Envelope = Callable[[Sequence[Any], int, Decoder, int], Any]
"""Reads the contents of an envelope that isn't empty; its items begin at an index."""


def _check_numbers(num_bytes: int, num_handles: int, decoder: Decoder) -> None:
    """Check that the message has enough bytes and handles left for an envelope."""
    if num_bytes % 8:
        problem = f"{num_bytes} bytes in an envelope: not a multiple of 8"
        raise WireError(INVALID_NUM_BYTES_IN_ENVELOPE, problem)
    remaining = len(decoder.data) - decoder.next
    if num_bytes > remaining:
        problem = f"{num_bytes} bytes in an envelope, {remaining} remain"
        raise WireError(ENVELOPE_BYTES_EXCEED_MESSAGE_LENGTH, problem)
    remaining = len(decoder.handles) - decoder.next_handle
    if num_handles > remaining:
        problem = f"{num_handles} handles in an envelope, {remaining} remain"
        raise WireError(ENVELOPE_HANDLES_EXCEED_MESSAGE_LENGTH, problem)


def _header_v1(items: Sequence[Any], index: int, decoder: Decoder) -> tuple[int, int, bool]:
    """Return the number of bytes, the number of handles, and False.

    The third value is whether the envelope holds its value inline, as envelopes of v2 may.
    """
    num_bytes, num_handles, presence = items[index : index + 3]
    if presence != PRESENT:
        if presence:
            problem = f"the presence of an envelope is {presence:#x}"
            raise WireError(INVALID_PRESENCE_INDICATOR, problem)
        if num_bytes:
            problem = f"{num_bytes} bytes in an absent envelope"
            raise WireError(INVALID_NUM_BYTES_IN_ENVELOPE, problem)
        problem = f"{num_handles} handles in an absent envelope"
        raise WireError(INVALID_NUM_HANDLES_IN_ENVELOPE, problem)
    _check_numbers(num_bytes, num_handles, decoder)
    return num_bytes, num_handles, False


def _header_v2(items: Sequence[Any], index: int, decoder: Decoder) -> tuple[int, int, bool]:
    """Return the number of bytes, the number of handles, and whether the value is inlined."""
    envelope = items[index]
    flags, num_handles, num_bytes = envelope >> 48, envelope >> 32 & 0xFFFF, envelope & 0xFFFFFFFF
    if flags > 1:
        problem = f"an envelope's flags are {flags:#x}"
        raise WireError(INVALID_INLINE_MARKER_IN_ENVELOPE, problem)
    _check_numbers(0 if flags else num_bytes, num_handles, decoder)
    return num_bytes, num_handles, flags == 1


def _envelope(type_: Type, wire: int) -> Envelope:
    shape = layout(type_, wire)
    header = _header_v2 if wire == V2 else _header_v1
    fits = wire == V2 and shape.size <= INLINE_SIZE and not is_optional(type_)
    inside, outside = value_of(type_, wire) if fits else None, later(type_, wire)
    packer = struct.Struct(f"<{shape.format}")

    def envelope(items: Sequence[Any], index: int, decoder: Decoder, depth: int) -> Any:
        num_bytes, num_handles, is_inline = header(items, index, decoder)
        if is_inline is not fits:
            where = "in" if is_inline else "out of"
            problem = f"an envelope's value of {shape.size} bytes is {where} line"
            raise WireError(INVALID_INLINE_BIT_IN_ENVELOPE, problem)
        start, before = decoder.next, decoder.next_handle
        if inside:
            raw = num_bytes.to_bytes(4, "little")
            if any(raw[shape.size :]):
                raise WireError(INVALID_PADDING_BYTE, "padding in an envelope isn't zero")
            check_padding(raw, shape)
            value = inside(packer.unpack_from(raw), 0, decoder, depth)
        else:
            value = outside(decoder, depth + 1)
            if decoder.next - start != num_bytes:
                problem = f"{num_bytes} bytes in an envelope, read {decoder.next - start}"
                raise WireError(INVALID_NUM_BYTES_IN_ENVELOPE, problem)
        if decoder.next_handle - before != num_handles:
            problem = f"{num_handles} handles in an envelope, read {decoder.next_handle - before}"
            raise WireError(INVALID_NUM_HANDLES_IN_ENVELOPE, problem)
        return value

    return envelope


def _unknown(resource: bool, wire: int) -> Envelope:
    """Return an envelope reader that skips the contents of an unknown member."""
    header = _header_v2 if wire == V2 else _header_v1

    def envelope(items: Sequence[Any], index: int, decoder: Decoder, depth: int) -> None:
        num_bytes, num_handles, is_inline = header(items, index, decoder)
        if num_handles and not resource:
            problem = f"{num_handles} unknown handles in a type that isn't a resource"
            raise WireError(NON_RESOURCE_UNKNOWN_HANDLES, problem)
        if not is_inline:
            check_depth(depth + 1)
            decoder.next += num_bytes
        decoder.drop(num_handles)

    return envelope


class _Envelopes:
    """Reads the members of a table or union; compiles the code for a member at its first use.

    Attributes:
        items: The number of items that `struct` unpacks from an envelope.
    """

    __slots__ = ("_hidden", "_made", "_members", "_resource", "_wire", "items")

    def __init__(self, type_: Table | Union, wire: int) -> None:
        self._members = {member.ordinal: member for member in type_.members}
        self._made: dict[int, Envelope] = {}
        self._hidden, self._resource, self._wire = type_.hidden, type_.resource, wire
        self.items = 1 if wire == V2 else 3

    def read(
        self, ordinal: int, items: Sequence[Any], index: int, decoder: Decoder, depth: int
    ) -> Any:
        """Read the value in an envelope that isn't empty. Return None if the ordinal is unknown."""
        member = self._members.get(ordinal)
        envelope = self._made.get(ordinal)
        if envelope is None:
            if member is None:
                envelope = _unknown(self._resource, self._wire)
            else:
                envelope = self._made[ordinal] = _envelope(member.type, self._wire)
        try:
            return envelope(items, index, decoder, depth)
        except WireError as error:
            name = member.name if member else f"[{ordinal}]"
            error.add_step(name, hidden=name in self._hidden)
            raise


@makes(Table)
def _table(type_: Table, _optional: bool, wire: int) -> Value:
    make, what = type_.cls._make, describe(type_)
    envelopes = _Envelopes(type_, wire)
    slots = {member.ordinal: slot for slot, member in enumerate(type_.members)}
    word = struct.Struct("<Q" if wire == V2 else "<IIQ")

    def value(items: Sequence[Any], index: int, decoder: Decoder, depth: int) -> Any:
        count, presence = items[index], items[index + 1]
        is_present(presence, what, False)
        if count > UNBOUNDED:
            raise WireError(TABLE_COUNT_EXCEEDS_32_BIT_LIMIT, f"{count} members")
        check_depth(depth + 1)
        values: list[Any] = [None] * len(slots)
        start = decoder.claim(count * word.size)
        found = word.iter_unpack(decoder.data[start : start + count * word.size])
        is_last_there = True
        for ordinal, envelope in enumerate(found, 1):
            is_last_there = any(envelope)
            if not is_last_there:
                continue
            try:
                inner = envelopes.read(ordinal, envelope, 0, decoder, depth + 1)
            except WireError as error:
                error.add_base(start + (ordinal - 1) * word.size)
                raise
            if ordinal in slots:
                values[slots[ordinal]] = inner
        if not is_last_there:
            problem = f"the last of {count} envelopes is absent"
            raise WireError(NON_CANONICAL_TABLE, problem, start)
        return make(*values)

    return value


@makes(Union)
def _union(type_: Union, optional: bool, wire: int) -> Value:
    make, what, strict = type_.cls._make, describe(type_), type_.strict
    envelopes = _Envelopes(type_, wire)
    known = {member.ordinal for member in type_.members}
    end = 1 + envelopes.items

    def value(items: Sequence[Any], index: int, decoder: Decoder, depth: int) -> Any:
        ordinal = items[index]
        present = any(items[index + 1 : index + end])
        if not ordinal:
            if present:
                raise WireError(UNION_FIELD_NOT_SET, f"{what} holds something without an ordinal")
            if not optional:
                raise absent(what)
            return None
        if strict and ordinal not in known:
            raise WireError(STRICT_UNION_UNKNOWN_FIELD, f"{what} has no ordinal {ordinal}")
        if not present:
            raise WireError(UNEXPECTED_ORDINAL, f"{what} has ordinal {ordinal} and holds nothing")
        return make(ordinal, envelopes.read(ordinal, items, index + 1, decoder, depth))

    return value
