"""Test vectors for tables: combinations of members, canonical form, unknown members, envelopes."""

from __future__ import annotations

from itertools import product

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
    u16,
    u64,
)

# For each member: the ordinal, the envelope, the out-of-line bytes, a function that makes its
# value.
MEMBERS = {
    "a": (1, inline(b"\7"), b"", lambda t: 7),
    "b": (2, outside(8), u64(9), lambda t: 9),
    "c": (3, outside(24), u64(3) + FF8 + pad(b"abc"), lambda t: "abc"),
    "e": (5, inline(b"\1\0\2\0"), b"", lambda t: t.Pair(a=1, b=2)),
}


def _table(names: list[str]) -> bytes:
    """Return the encoding of a table with certain members."""
    present = {MEMBERS[name][0]: MEMBERS[name] for name in names}
    last = max(present, default=0)
    envelopes = [present[o][1] if o in present else ZERO8 for o in range(1, last + 1)]
    return u64(last) + FF8 + b"".join([*envelopes, *(found[2] for found in present.values())])


def _subsets() -> list[list[str]]:
    flags = product((False, True), repeat=len(MEMBERS))
    return [[n for n, there in zip(MEMBERS, each, strict=True) if there] for each in flags]


def one(*envelopes: bytes) -> bytes:
    """Return the encoding of a table from the bytes of its envelopes."""
    return u64(len(envelopes)) + FF8 + b"".join(envelopes)


CASES = [
    *(
        ok(
            f"with_{''.join(names)}",
            "OneTable",
            _table(names),
            lambda t, names=names: t.OneTable(
                t=t.Table(**{name: MEMBERS[name][3](t) for name in names})
            ),
        )
        for names in _subsets()
    ),
    ok("no_members", "OneEmptyTable", u64(0) + FF8, lambda t: t.OneEmptyTable(t=t.EmptyTable())),
    ok(
        "unknown_inline",
        "OneTable",
        one(inline(b"\7"), ZERO8, ZERO8, inline(b"abcd")),
        lambda t: t.OneTable(t=t.Table(a=7)),
        way="decode",
    ),
    ok(
        "unknown_outside",
        "OneTable",
        one(inline(b"\7"), ZERO8, ZERO8, outside(16)) + b"x" * 16,
        lambda t: t.OneTable(t=t.Table(a=7)),
        way="decode",
    ),
    ok(
        "unknown_in_between",
        "OneTable",
        one(ZERO8, outside(8), ZERO8, outside(8), inline(b"\1\0\2\0")) + u64(9) + b"x" * 8,
        lambda t: t.OneTable(t=t.Table(b=9, e=t.Pair(a=1, b=2))),
        way="decode",
    ),
    ok(
        "unknown_at_the_end",
        "OneTable",
        one(*[ZERO8] * 6, outside(8)) + b"x" * 8,
        lambda t: t.OneTable(t=t.Table()),
        way="decode",
    ),
    ok(
        "unknown_of_empty",
        "OneEmptyTable",
        one(inline(b"x"), outside(8)) + b"x" * 8,
        lambda t: t.OneEmptyTable(t=t.EmptyTable()),
        way="decode",
    ),
    ok(
        "unknown_in_resource",
        "OneResourceTable",
        one(inline(b"\1"), ZERO8, outside(8)) + b"x" * 8,
        lambda t: t.OneResourceTable(t=t.ResourceTable(a=1)),
        way="decode",
    ),
    ok(
        "padded",
        "TablePadded",
        one(inline(b"\1\0\2\0"), inline(b"\1"), inline(u16(100))),
        lambda t: t.TablePadded(t=t.PaddedTable(p=t.Pair(a=1, b=2), b=True, e=100)),
    ),
    *(
        decode_fails(f"padding_of_uint8_{at}", "OneTable", one(envelope), "INVALID_PADDING_BYTE")
        for at, envelope in each_byte(inline(b"\7"), (1, 2, 3))
    ),
    decode_fails(
        "padding_in_struct", "TablePadded", one(inline(b"\1\1\2\0")), "INVALID_PADDING_BYTE"
    ),
    decode_fails(
        "padding_of_enum",
        "TablePadded",
        one(ZERO8, ZERO8, inline(b"\1\0\1")),
        "INVALID_PADDING_BYTE",
    ),
    decode_fails("bad_bool", "TablePadded", one(ZERO8, inline(b"\2")), "INVALID_BOOLEAN"),
    decode_fails(
        "bad_enum", "TablePadded", one(ZERO8, ZERO8, inline(b"\3")), "STRICT_ENUM_UNKNOWN_VALUE"
    ),
    *(
        decode_fails(
            f"ends_with_{n}_absent",
            "OneTable",
            one(inline(b"\7"), *[ZERO8] * n),
            "NON_CANONICAL_TABLE",
        )
        for n in (1, 2, 9)
    ),
    decode_fails("only_absent", "OneTable", one(ZERO8), "NON_CANONICAL_TABLE"),
    decode_fails("empty_only_absent", "OneEmptyTable", one(ZERO8, ZERO8), "NON_CANONICAL_TABLE"),
    decode_fails("absent", "OneTable", ZERO8 + ZERO8, "NON_NULLABLE_TYPE_WITH_NULL_VALUE"),
    decode_fails(
        "absent_with_count", "OneTable", u64(1) + ZERO8, "NON_NULLABLE_TYPE_WITH_NULL_VALUE"
    ),
    *(
        decode_fails(
            f"presence_{presence:x}",
            "OneTable",
            u64(0) + u64(presence),
            "INVALID_PRESENCE_INDICATOR",
        )
        for presence in (1, 1 << 63, (1 << 64) - 2)
    ),
    *(
        decode_fails(
            f"{count:x}_members", "OneTable", u64(count) + FF8, "TABLE_COUNT_EXCEEDS_32_BIT_LIMIT"
        )
        for count in (1 << 32, 1 << 63, (1 << 64) - 1)
    ),
    *(
        decode_fails(
            f"{count}_members", "OneTable", u64(count) + FF8 + inline(b"\7"), "TOO_FEW_BYTES"
        )
        for count in (2, 1 << 20, 0xFFFFFFFF)
    ),
    *(
        decode_fails(
            f"flags_{flags:x}_of_{ordinal}",
            "OneTable",
            one(*[ZERO8] * (ordinal - 1), outside(8, flags=flags)) + bytes(8),
            "INVALID_INLINE_MARKER_IN_ENVELOPE",
        )
        for flags in (2, 3, 0x100, 0xFFFF)
        for ordinal in (1, 2, 4, 9)
    ),
    decode_fails(
        "inline_outside", "OneTable", one(outside(8)) + u64(7), "INVALID_INLINE_BIT_IN_ENVELOPE"
    ),
    decode_fails(
        "outside_inline", "OneTable", one(ZERO8, inline(b"\7")), "INVALID_INLINE_BIT_IN_ENVELOPE"
    ),
    *(
        decode_fails(
            f"{size}_bytes_of_{ordinal}",
            "OneTable",
            one(*[ZERO8] * (ordinal - 1), outside(size)) + bytes(32),
            "INVALID_NUM_BYTES_IN_ENVELOPE",
        )
        for size in (1, 4, 7, 9, 23)
        for ordinal in (2, 3, 4)
    ),
    decode_fails(
        "too_many_bytes_told",
        "OneTable",
        one(ZERO8, outside(16)) + bytes(16),
        "INVALID_NUM_BYTES_IN_ENVELOPE",
    ),
    decode_fails(
        "too_few_bytes_told",
        "OneTable",
        one(ZERO8, ZERO8, outside(16)) + u64(3) + FF8 + pad(b"abc"),
        "INVALID_NUM_BYTES_IN_ENVELOPE",
    ),
    *(
        decode_fails(
            f"more_bytes_told_than_remain_{ordinal}",
            "OneTable",
            one(*[ZERO8] * (ordinal - 1), outside(800)) + bytes(8),
            "ENVELOPE_BYTES_EXCEED_MESSAGE_LENGTH",
        )
        for ordinal in (2, 3, 4)
    ),
    decode_fails(
        "more_handles_told_than_remain",
        "OneTable",
        one(ZERO8, outside(8, 1)) + bytes(8),
        "ENVELOPE_HANDLES_EXCEED_MESSAGE_LENGTH",
    ),
    decode_fails(
        "unknown_handle_missing",
        "OneResourceTable",
        one(ZERO8, ZERO8, inline(FF8[:4], 1)),
        "ENVELOPE_HANDLES_EXCEED_MESSAGE_LENGTH",
    ),
    decode_fails(
        "known_with_a_handle",
        "OneTable",
        one(inline(b"\7", 1)),
        "INVALID_NUM_HANDLES_IN_ENVELOPE",
        handles=[("event", None)],
    ),
    decode_fails(
        "unknown_handle_in_value",
        "OneTable",
        one(ZERO8, ZERO8, ZERO8, inline(FF8[:4], 1)),
        "NON_RESOURCE_UNKNOWN_HANDLES",
        handles=[("event", None)],
    ),
    decode_fails(
        "string_too_short",
        "OneTable",
        one(ZERO8, ZERO8, outside(16)) + u64(9) + FF8,
        "TOO_FEW_BYTES",
    ),
    ok(
        "handle",
        "OneResourceTable",
        one(ZERO8, inline(FF8[:4], 1)),
        lambda t, h: t.OneResourceTable(t=t.ResourceTable(h=h)),
        handles=[("event", None)],
    ),
    ok(
        "unknown_handles_dropped",
        "OneResourceTable",
        one(inline(b"\1"), ZERO8, outside(8, 2)) + b"x" * 8,
        lambda t, *_: t.OneResourceTable(t=t.ResourceTable(a=1)),
        way="decode",
        handles=[("event", None), ("channel", None)],
    ),
    encode_fails(
        "none", "OneTable", lambda t: t.OneTable(t=None), "NON_NULLABLE_TYPE_WITH_NULL_VALUE"
    ),
    encode_fails("another_class", "OneTable", lambda t: t.OneTable(t=t.EmptyTable()), "WRONG_TYPE"),
    encode_fails(
        "member_out_of_range",
        "OneTable",
        lambda t: t.OneTable(t=t.Table(a=256)),
        "VALUE_OUT_OF_RANGE",
    ),
    encode_fails(
        "member_outside_out_of_range",
        "OneTable",
        lambda t: t.OneTable(t=t.Table(b=-1)),
        "VALUE_OUT_OF_RANGE",
    ),
    encode_fails(
        "member_of_wrong_type", "OneTable", lambda t: t.OneTable(t=t.Table(c=5)), "WRONG_TYPE"
    ),
]
