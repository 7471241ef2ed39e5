"""Test vectors for structs: alignment, boxes, and padding inside and after structs."""

from __future__ import annotations

from fidl_support.vectors.case import (
    FF8,
    ZERO8,
    decode_fails,
    each_byte,
    encode_fails,
    num,
    ok,
    pad,
    u16,
    u32,
    u64,
)
from fidl_support.vectors.schema import INTEGERS, SIZES

UNSIGNED = INTEGERS[4:]


def _two(one: str, other: str) -> tuple[bytes, list[int]]:
    """Return a struct with the members 1 and 2 as bytes, and the positions of its padding bytes.

    `one` and `other` are the types of the members.
    """
    first, second = SIZES[one], SIZES[other]
    start = (first + second - 1) // second * second
    data = num(1, first) + bytes(start - first) + num(2, second)
    gaps = [*range(first, start), *range(len(data), len(pad(data)))]
    return pad(data), gaps


CASES = [
    *(
        ok(
            f"{one}_{other}",
            f"Two_{one}_{other}",
            _two(one, other)[0],
            lambda t, n=f"Two_{one}_{other}": getattr(t, n)(a=1, b=2),
        )
        for one in UNSIGNED
        for other in UNSIGNED
    ),
    *(
        decode_fails(
            f"{one}_{other}_padding_{at}", f"Two_{one}_{other}", data, "INVALID_PADDING_BYTE"
        )
        for one in UNSIGNED
        for other in UNSIGNED
        for at, data in each_byte(*_two(one, other), to=1)
    ),
    ok("empty", "Empty", ZERO8, lambda t: t.Empty()),
    decode_fails("empty_not_zero", "Empty", pad(b"\1"), "INVALID_EMPTY_STRUCT"),
    *(
        decode_fails(f"empty_padding_{at}", "Empty", data, "INVALID_PADDING_BYTE")
        for at, data in each_byte(ZERO8, range(1, 8))
    ),
    decode_fails("empty_and_more", "Empty", ZERO8 + ZERO8, "TOO_MANY_BYTES_IN_MESSAGE"),
    decode_fails("empty_of_one_byte", "Empty", b"\0", "TOO_FEW_BYTES_IN_PRIMARY_OBJECT"),
    ok(
        "empty_inside",
        "EmptyInside",
        pad(u32(1) + bytes(4) + u32(2)),
        lambda t: t.EmptyInside(before=1, empty=t.Empty(), after=2),
    ),
    decode_fails(
        "empty_inside_not_zero",
        "EmptyInside",
        pad(u32(1) + b"\1\0\0\0" + u32(2)),
        "INVALID_EMPTY_STRUCT",
    ),
    *(
        decode_fails(f"empty_inside_padding_{at}", "EmptyInside", data, "INVALID_PADDING_BYTE")
        for at, data in each_byte(bytes(16), (5, 6, 7, 12, 15))
    ),
    ok(
        "nested",
        "Nested",
        b"\7\0\1\0\2\0\0\0" + u64(9),
        lambda t: t.Nested(head=7, inner=t.Pair(a=1, b=2), tail=9),
    ),
    *(
        decode_fails(f"nested_padding_{at}", "Nested", data, "INVALID_PADDING_BYTE")
        for at, data in each_byte(bytes(16), (1, 3, 6, 7))
    ),
    encode_fails(
        "nested_none",
        "Nested",
        lambda t: t.Nested(head=7, inner=None, tail=9),
        "NON_NULLABLE_TYPE_WITH_NULL_VALUE",
    ),
    encode_fails(
        "nested_of_another_class",
        "Nested",
        lambda t: t.Nested(head=7, inner=t.Empty(), tail=9),
        "WRONG_TYPE",
    ),
    ok("names", "Names", pad(b"\1\2"), lambda t: t.Names(class_=1, self=2)),
    ok("box_absent", "Box", ZERO8, lambda t: t.Box()),
    ok("box_present", "Box", FF8 + ZERO8, lambda t: t.Box(inner=t.Empty())),
    encode_fails("box_of_another_class", "Box", lambda t: t.Box(inner=t.Box()), "WRONG_TYPE"),
    *(
        decode_fails(
            f"box_presence_{presence.hex()}", "Box", presence + ZERO8, "INVALID_PRESENCE_INDICATOR"
        )
        for presence in (u64(1), b"\xff" * 7 + b"\0", b"\0" + b"\xff" * 7, b"\xff" * 4 + bytes(4))
    ),
    decode_fails("box_without_content", "Box", FF8, "TOO_FEW_BYTES"),
    decode_fails("box_absent_with_content", "Box", ZERO8 + ZERO8, "TOO_MANY_BYTES_IN_MESSAGE"),
    decode_fails("box_padding", "Box", FF8 + pad(b"\0\1"), "INVALID_PADDING_BYTE"),
    *(ok(f"chain_{n}", "Chain", FF8 * n + ZERO8, lambda t, n=n: chain(t, n)) for n in (0, 1, 2, 7)),
    ok(
        "chain_with_texts",
        "ChainText",
        FF8 + u64(1) + FF8 + ZERO8 + u64(2) + FF8 + pad(b"in") + pad(b"o"),
        lambda t: t.ChainText(next=t.ChainText(text="in"), text="o"),
    ),
    decode_fails(
        "pair_padding_in_between", "Pair", b"\1\1" + u16(1) + bytes(4), "INVALID_PADDING_BYTE"
    ),
]


def chain(t, length: int):
    """Return a chain of nested boxes."""
    made = None
    for _ in range(length + 1):
        made = t.Chain(next=made)
    return made
