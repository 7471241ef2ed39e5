"""Test vectors of wire format v1. This format is only decoded; its envelopes have 16 bytes."""

from __future__ import annotations

from fidl_support.vectors.case import (
    FF8,
    ZERO8,
    decode_fails,
    ok,
    pad,
    u32,
    u64,
    v1,
)

OLD = {"wire": 1}
READ = {"wire": 1, "way": "decode"}
ABSENT = bytes(16)
TEXT = u64(3) + FF8 + pad(b"abc")

CASES = [
    ok("number", "One_uint16", pad(b"\1\2"), lambda t: t.One_uint16(x=0x201), **READ),
    ok("text", "Text", TEXT, lambda t: t.Text(text="abc"), **READ),
    ok("box", "Box", FF8 + ZERO8, lambda t: t.Box(inner=t.Empty()), **READ),
    ok(
        "union_small",
        "OneUnion",
        u64(1) + v1(8) + pad(b"\7"),
        lambda t: t.OneUnion(u=t.Union(a=7)),
        **READ,
    ),
    ok(
        "union_large",
        "OneUnion",
        u64(2) + v1(8) + u64(7),
        lambda t: t.OneUnion(u=t.Union(b=7)),
        **READ,
    ),
    ok(
        "union_text",
        "OneUnion",
        u64(3) + v1(24) + TEXT,
        lambda t: t.OneUnion(u=t.Union(c="abc")),
        **READ,
    ),
    ok(
        "union_in_union",
        "OneUnion",
        u64(6) + v1(32) + u64(1) + v1(8) + pad(b"\7"),
        lambda t: t.OneUnion(u=t.Union(u=t.Union(a=7))),
        **READ,
    ),
    ok(
        "union_and_more",
        "UnionThenByte",
        u64(1) + v1(8) + pad(b"\5") + pad(b"\7"),
        lambda t: t.UnionThenByte(u=t.Union(a=7), x=5),
        **READ,
    ),
    ok("union_absent", "OptionalUnion", ZERO8 + ABSENT, lambda t: t.OptionalUnion(), **READ),
    ok(
        "union_unknown",
        "OneUnion",
        u64(99) + v1(16) + b"x" * 16,
        lambda t: t.OneUnion(u=t.Union._make(99, None)),
        **READ,
    ),
    ok(
        "union_handle",
        "OneResourceUnion",
        u64(2) + v1(8, 1) + pad(FF8[:4]),
        lambda t, h: t.OneResourceUnion(u=t.ResourceUnion(h=h)),
        handles=[("event", None)],
        **READ,
    ),
    ok("table_empty", "OneTable", u64(0) + FF8, lambda t: t.OneTable(t=t.Table()), **READ),
    ok(
        "table",
        "OneTable",
        u64(3) + FF8 + v1(8) + ABSENT + v1(24) + pad(b"\7") + TEXT,
        lambda t: t.OneTable(t=t.Table(a=7, c="abc")),
        **READ,
    ),
    ok(
        "table_unknown",
        "OneTable",
        u64(4) + FF8 + ABSENT * 3 + v1(8) + b"x" * 8,
        lambda t: t.OneTable(t=t.Table()),
        **READ,
    ),
    ok(
        "table_handles_dropped",
        "OneResourceTable",
        u64(3) + FF8 + ABSENT * 2 + v1(8, 1) + b"x" * 8,
        lambda t, *_: t.OneResourceTable(t=t.ResourceTable()),
        handles=[("vmo", None)],
        **READ,
    ),
    decode_fails(
        "union_required", "OneUnion", ZERO8 + ABSENT, "NON_NULLABLE_TYPE_WITH_NULL_VALUE", **OLD
    ),
    decode_fails("union_not_set", "OneUnion", ZERO8 + v1(8) + ZERO8, "UNION_FIELD_NOT_SET", **OLD),
    decode_fails("union_without_content", "OneUnion", u64(1) + ABSENT, "UNEXPECTED_ORDINAL", **OLD),
    decode_fails(
        "union_of_v2",
        "OneUnion",
        u64(1) + u32(7) + u32(0x10000),
        "TOO_FEW_BYTES_IN_PRIMARY_OBJECT",
        **OLD,
    ),
    decode_fails(
        "strict_union",
        "OneStrictUnion",
        u64(9) + v1(8) + ZERO8,
        "STRICT_UNION_UNKNOWN_FIELD",
        **OLD,
    ),
    *(
        decode_fails(
            f"presence_{presence}",
            "OneUnion",
            u64(1) + v1(8, presence=u64(presence)) + ZERO8,
            "INVALID_PRESENCE_INDICATOR",
            **OLD,
        )
        for presence in (1, 1 << 63)
    ),
    decode_fails(
        "bytes_in_absent",
        "OneUnion",
        u64(1) + v1(8, presence=ZERO8) + ZERO8,
        "INVALID_NUM_BYTES_IN_ENVELOPE",
        **OLD,
    ),
    decode_fails(
        "handles_in_absent",
        "OneUnion",
        u64(1) + v1(0, 1, presence=ZERO8) + ZERO8,
        "INVALID_NUM_HANDLES_IN_ENVELOPE",
        **OLD,
    ),
    *(
        decode_fails(
            f"{size}_bytes",
            "OneUnion",
            u64(1) + v1(size) + bytes(16),
            "INVALID_NUM_BYTES_IN_ENVELOPE",
            **OLD,
        )
        for size in (0, 1, 7, 9, 16)
    ),
    decode_fails(
        "more_bytes_than_remain",
        "OneUnion",
        u64(1) + v1(16) + bytes(8),
        "ENVELOPE_BYTES_EXCEED_MESSAGE_LENGTH",
        **OLD,
    ),
    decode_fails(
        "more_handles_than_remain",
        "OneUnion",
        u64(1) + v1(8, 1) + bytes(8),
        "ENVELOPE_HANDLES_EXCEED_MESSAGE_LENGTH",
        **OLD,
    ),
    decode_fails(
        "handles_in_value",
        "OneUnion",
        u64(9) + v1(8, 1) + bytes(8),
        "NON_RESOURCE_UNKNOWN_HANDLES",
        handles=[("event", None)],
        **OLD,
    ),
    decode_fails(
        "too_many_handles_told",
        "OneResourceUnion",
        u64(1) + v1(8, 1) + pad(b"\7"),
        "INVALID_NUM_HANDLES_IN_ENVELOPE",
        handles=[("event", None)],
        **OLD,
    ),
    decode_fails(
        "padding", "OneUnion", u64(1) + v1(8) + pad(b"\7\1"), "INVALID_PADDING_BYTE", **OLD
    ),
    decode_fails(
        "table_ends_with_absent", "OneTable", u64(1) + FF8 + ABSENT, "NON_CANONICAL_TABLE", **OLD
    ),
    decode_fails("table_cut", "OneTable", u64(2) + FF8 + ABSENT, "TOO_FEW_BYTES", **OLD),
    decode_fails(
        "table_count", "OneTable", u64(1 << 32) + FF8, "TABLE_COUNT_EXCEEDS_32_BIT_LIMIT", **OLD
    ),
    decode_fails("text_invalid", "Text", u64(1) + FF8 + pad(b"\xff"), "STRING_NOT_UTF8", **OLD),
]
