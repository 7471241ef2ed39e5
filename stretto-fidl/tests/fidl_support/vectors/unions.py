"""Test vectors for unions: each member, absence, unknown members, envelopes."""

from __future__ import annotations

from fidl_support.vectors.case import (
    FF8,
    ZERO8,
    decode_fails,
    each_byte,
    encode_fails,
    inline,
    ok,
    outside,
    pad,
    u64,
)


def _unknown(t, name: str = "Union", ordinal: int = 99):
    """Return the value that decoding makes for an unknown member."""
    return getattr(t, name)._make(ordinal, None)


ABSENT = ZERO8 + ZERO8

CASES = [
    ok("inline", "OneUnion", u64(1) + inline(b"\7"), lambda t: t.OneUnion(u=t.Union(a=7))),
    ok("zero", "OneUnion", u64(1) + inline(b"\0"), lambda t: t.OneUnion(u=t.Union(a=0))),
    ok("outside", "OneUnion", u64(2) + outside(8) + u64(7), lambda t: t.OneUnion(u=t.Union(b=7))),
    ok(
        "text",
        "OneUnion",
        u64(3) + outside(24) + u64(3) + FF8 + pad(b"abc"),
        lambda t: t.OneUnion(u=t.Union(c="abc")),
    ),
    ok(
        "struct",
        "OneUnion",
        u64(4) + inline(b"\1\0\2\0"),
        lambda t: t.OneUnion(u=t.Union(p=t.Pair(a=1, b=2))),
    ),
    ok(
        "in_itself",
        "OneUnion",
        u64(6) + outside(16) + u64(1) + inline(b"\7"),
        lambda t: t.OneUnion(u=t.Union(u=t.Union(a=7))),
    ),
    ok(
        "vector_of_itself",
        "OneUnion",
        u64(7) + outside(56) + u64(2) + FF8 + u64(1) + inline(b"\7") + u64(2) + outside(8) + u64(8),
        lambda t: t.OneUnion(u=t.Union(v=[t.Union(a=7), t.Union(b=8)])),
    ),
    ok("alone", "Union", u64(1) + inline(b"\7"), lambda t: t.Union(a=7)),
    ok(
        "strict",
        "OneStrictUnion",
        u64(2) + outside(8) + u64(7),
        lambda t: t.OneStrictUnion(u=t.StrictUnion(b=7)),
    ),
    *(
        ok(f"absent_{name}", name, ABSENT, lambda t, name=name: getattr(t, name)())
        for name in ("OptionalUnion", "OptionalStrictUnion")
    ),
    ok(
        "optional_there",
        "OptionalUnion",
        u64(1) + inline(b"\7"),
        lambda t: t.OptionalUnion(u=t.Union(a=7)),
    ),
    *(
        decode_fails(f"absent_{name}", name, ABSENT, "NON_NULLABLE_TYPE_WITH_NULL_VALUE")
        for name in ("OneUnion", "OneStrictUnion", "OneResourceUnion", "OneEmptyUnion", "Union")
    ),
    *(
        encode_fails(
            f"none_{name}",
            name,
            lambda t, name=name: getattr(t, name)(u=None),
            "NON_NULLABLE_TYPE_WITH_NULL_VALUE",
        )
        for name in ("OneUnion", "OneStrictUnion", "OneResourceUnion", "OneEmptyUnion")
    ),
    *(
        decode_fails(
            f"ordinal_0_{name}_{envelope.hex()}",
            name,
            ZERO8 + envelope + ZERO8,
            "UNION_FIELD_NOT_SET",
        )
        for name in ("OneUnion", "OptionalUnion", "OneStrictUnion", "OptionalStrictUnion")
        for envelope in (outside(8), inline(b"\1"))
    ),
    *(
        decode_fails(
            f"ordinal_{ordinal}_without_content_{name}",
            name,
            u64(ordinal) + ZERO8,
            "UNEXPECTED_ORDINAL",
        )
        for name in ("OneUnion", "OptionalUnion")
        for ordinal in (1, 2, 99)
    ),
    *(
        ok(
            f"unknown_{ordinal:x}_inline",
            "OneUnion",
            u64(ordinal) + inline(b"abcd"),
            lambda t, o=ordinal: t.OneUnion(u=_unknown(t, ordinal=o)),
            way="decode",
        )
        for ordinal in (5, 8, 99, (1 << 64) - 1)
    ),
    *(
        ok(
            f"unknown_{size}_bytes",
            "OneUnion",
            u64(99) + outside(size) + b"x" * size,
            lambda t: t.OneUnion(u=_unknown(t)),
            way="decode",
        )
        for size in (8, 16, 1024)
    ),
    ok(
        "unknown_of_empty",
        "OneEmptyUnion",
        u64(99) + inline(b"x"),
        lambda t: t.OneEmptyUnion(u=_unknown(t, "EmptyUnion")),
        way="decode",
    ),
    ok(
        "unknown_in_resource",
        "OneResourceUnion",
        u64(99) + inline(b"x"),
        lambda t: t.OneResourceUnion(u=_unknown(t, "ResourceUnion")),
        way="decode",
    ),
    ok(
        "unknown_handles_dropped",
        "OneResourceUnion",
        u64(99) + outside(8, 2) + b"x" * 8,
        lambda t, *_: t.OneResourceUnion(u=_unknown(t, "ResourceUnion")),
        way="decode",
        handles=[("event", None), ("channel", None)],
    ),
    encode_fails(
        "unknown", "OneUnion", lambda t: t.OneUnion(u=_unknown(t)), "FLEXIBLE_UNION_UNKNOWN_FIELD"
    ),
    encode_fails(
        "unknown_strict",
        "OneStrictUnion",
        lambda t: t.OneStrictUnion(u=_unknown(t, "StrictUnion")),
        "STRICT_UNION_UNKNOWN_FIELD",
    ),
    encode_fails(
        "ordinal_0",
        "OneUnion",
        lambda t: t.OneUnion(u=_unknown(t, ordinal=0)),
        "UNION_FIELD_NOT_SET",
    ),
    encode_fails("no_member", "OneUnion", lambda t: t.OneUnion(u=t.Union()), "UNION_FIELD_NOT_SET"),
    encode_fails(
        "two_members", "OneUnion", lambda t: t.OneUnion(u=t.Union(a=1, b=2)), "UNION_FIELD_NOT_SET"
    ),
    encode_fails(
        "member_none",
        "OneUnion",
        lambda t: t.OneUnion(u=t.Union(a=None)),
        "NON_NULLABLE_TYPE_WITH_NULL_VALUE",
    ),
    encode_fails(
        "member_out_of_range",
        "OneUnion",
        lambda t: t.OneUnion(u=t.Union(a=256)),
        "VALUE_OUT_OF_RANGE",
    ),
    encode_fails(
        "another_class", "OneUnion", lambda t: t.OneUnion(u=t.StrictUnion(a=1)), "WRONG_TYPE"
    ),
    *(
        decode_fails(
            f"strict_{ordinal}_{name}",
            name,
            u64(ordinal) + inline(b"\1"),
            "STRICT_UNION_UNKNOWN_FIELD",
        )
        for name in ("OneStrictUnion", "OptionalStrictUnion")
        for ordinal in (3, 99, (1 << 64) - 1)
    ),
    decode_fails(
        "strict_with_handles",
        "OneStrictUnion",
        u64(9) + outside(8, 1) + bytes(8),
        "STRICT_UNION_UNKNOWN_FIELD",
        handles=[("event", None)],
    ),
    *(
        decode_fails(f"padding_{at}", "OneUnion", u64(1) + envelope, "INVALID_PADDING_BYTE")
        for at, envelope in each_byte(inline(b"\7"), (1, 2, 3))
    ),
    decode_fails(
        "padding_in_struct", "OneUnion", u64(4) + inline(b"\1\1\2\0"), "INVALID_PADDING_BYTE"
    ),
    *(
        decode_fails(
            f"flags_{flags:x}_of_{ordinal}",
            "OneUnion",
            u64(ordinal) + outside(8, flags=flags) + bytes(8),
            "INVALID_INLINE_MARKER_IN_ENVELOPE",
        )
        for flags in (2, 3, 0xFF, 0xEE01, 0xFFFE)
        for ordinal in (1, 2, 99)
    ),
    decode_fails(
        "inline_outside", "OneUnion", u64(1) + outside(8) + u64(7), "INVALID_INLINE_BIT_IN_ENVELOPE"
    ),
    decode_fails(
        "outside_inline", "OneUnion", u64(2) + inline(b"\7"), "INVALID_INLINE_BIT_IN_ENVELOPE"
    ),
    *(
        decode_fails(
            f"{size}_bytes_of_{ordinal}",
            "OneUnion",
            u64(ordinal) + outside(size) + bytes(32),
            "INVALID_NUM_BYTES_IN_ENVELOPE",
        )
        for size in (1, 5, 9, 20)
        for ordinal in (2, 3, 99)
    ),
    decode_fails(
        "too_many_bytes_told",
        "OneUnion",
        u64(2) + outside(16) + bytes(16),
        "INVALID_NUM_BYTES_IN_ENVELOPE",
    ),
    *(
        decode_fails(
            f"more_bytes_told_than_remain_{ordinal}",
            "OneUnion",
            u64(ordinal) + outside(4096),
            "ENVELOPE_BYTES_EXCEED_MESSAGE_LENGTH",
        )
        for ordinal in (2, 3, 99)
    ),
    *(
        decode_fails(
            f"more_handles_told_than_remain_{ordinal}",
            "OneResourceUnion",
            u64(ordinal) + envelope + bytes(8),
            "ENVELOPE_HANDLES_EXCEED_MESSAGE_LENGTH",
        )
        for ordinal, envelope in (
            (1, inline(b"\1", 1)),
            (2, inline(FF8[:4], 1)),
            (99, outside(8, 3)),
        )
    ),
    decode_fails(
        "known_with_a_handle",
        "OneUnion",
        u64(1) + inline(b"\7", 1),
        "INVALID_NUM_HANDLES_IN_ENVELOPE",
        handles=[("event", None)],
    ),
    decode_fails(
        "fewer_handles_told",
        "OneResourceUnion",
        u64(2) + inline(FF8[:4]),
        "INVALID_NUM_HANDLES_IN_ENVELOPE",
        handles=[("event", None)],
    ),
    decode_fails(
        "unknown_handle_in_value",
        "OneUnion",
        u64(99) + outside(8, 1) + bytes(8),
        "NON_RESOURCE_UNKNOWN_HANDLES",
        handles=[("event", None)],
    ),
    decode_fails(
        "bytes_after", "OneUnion", u64(1) + inline(b"\7") + ZERO8, "TOO_MANY_BYTES_IN_MESSAGE"
    ),
    decode_fails("half", "OneUnion", u64(1), "TOO_FEW_BYTES_IN_PRIMARY_OBJECT"),
    ok(
        "handle",
        "OneResourceUnion",
        u64(2) + inline(FF8[:4], 1),
        lambda t, h: t.OneResourceUnion(u=t.ResourceUnion(h=h)),
        handles=[("event", None)],
    ),
    ok(
        "handles",
        "OneResourceUnion",
        u64(3) + outside(24, 2) + u64(2) + FF8 + FF8,
        lambda t, *h: t.OneResourceUnion(u=t.ResourceUnion(v=list(h))),
        handles=[("event", None), ("vmo", None)],
    ),
]
