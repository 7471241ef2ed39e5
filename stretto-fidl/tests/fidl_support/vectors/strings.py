"""Test vectors for strings: lengths, bounds, absence, UTF-8."""

from __future__ import annotations

from fidl_support.vectors.case import (
    FF8,
    ZERO8,
    decode_fails,
    each_byte,
    encode_fails,
    ok,
    pad,
    u64,
)


def _text(data: bytes) -> bytes:
    return u64(len(data)) + FF8 + pad(data)


VALID = {
    "ascii": b"plain",
    "zero": b"a\0b",
    "two_bytes_first": b"\xc2\x80",
    "two_bytes_last": b"\xdf\xbf",
    "three_bytes_first": b"\xe0\xa0\x80",
    "before_surrogates": b"\xed\x9f\xbf",
    "after_surrogates": b"\xee\x80\x80",
    "three_bytes_last": b"\xef\xbf\xbf",
    "byte_order_mark": b"\xef\xbb\xbfx",
    "four_bytes_first": b"\xf0\x90\x80\x80",
    "four_bytes_last": b"\xf4\x8f\xbf\xbf",
    "mixed": "aé€😀".encode(),
}
INVALID = {
    "continuation_alone": b"\x80",
    "last_continuation_alone": b"\xbf",
    "continuation_after_ascii": b"a\x80",
    "two_continuations": b"\x80\xbf",
    "two_bytes_cut": b"\xc2",
    "two_bytes_then_ascii": b"\xc2a",
    "three_bytes_cut_1": b"\xe0",
    "three_bytes_cut_2": b"\xe0\xa0",
    "three_bytes_then_ascii": b"\xe2\x82a",
    "four_bytes_cut_1": b"\xf0",
    "four_bytes_cut_2": b"\xf0\x90",
    "four_bytes_cut_3": b"\xf0\x90\x80",
    "four_bytes_then_ascii": b"\xf0\x9f\x98a",
    "overlong_slash_2": b"\xc0\xaf",
    "overlong_slash_3": b"\xe0\x80\xaf",
    "overlong_slash_4": b"\xf0\x80\x80\xaf",
    "overlong_last_2": b"\xc1\xbf",
    "overlong_last_3": b"\xe0\x9f\xbf",
    "overlong_last_4": b"\xf0\x8f\xbf\xbf",
    "overlong_zero_2": b"\xc0\x80",
    "overlong_zero_3": b"\xe0\x80\x80",
    "overlong_zero_4": b"\xf0\x80\x80\x80",
    "surrogate_first": b"\xed\xa0\x80",
    "surrogate_high_last": b"\xed\xaf\xbf",
    "surrogate_low_first": b"\xed\xb0\x80",
    "surrogate_last": b"\xed\xbf\xbf",
    "surrogate_pair": b"\xed\xa0\xbd\xed\xb8\x80",
    "beyond_unicode": b"\xf4\x90\x80\x80",
    "five_bytes": b"\xf8\x88\x80\x80\x80",
    "six_bytes": b"\xfc\x84\x80\x80\x80\x80",
    "impossible_f5": b"\xf5\x80\x80\x80",
    "impossible_fe": b"\xfe",
    "impossible_ff": b"\xff",
    "valid_then_invalid": b"abc\xff",
}

CASES = [
    decode_fails("far_too_long", "Text4", u64((1 << 32) - 1) + FF8, "STRING_TOO_LONG"),
    *(
        ok(f"length_{n}", "Text", _text(b"x" * n), lambda t, n=n: t.Text(text="x" * n))
        for n in range(18)
    ),
    *(
        ok(f"valid_{name}", "Text", _text(data), lambda t, d=data: t.Text(text=d.decode()))
        for name, data in VALID.items()
    ),
    *(
        decode_fails(f"invalid_{name}", "Text", _text(data), "STRING_NOT_UTF8")
        for name, data in INVALID.items()
    ),
    *(
        ok(f"bounded_{n}", "Text4", _text(b"x" * n), lambda t, n=n: t.Text4(text="x" * n))
        for n in range(5)
    ),
    ok("bound_counts_bytes", "Text4", _text("€a".encode()), lambda t: t.Text4(text="€a")),
    *(
        decode_fails(f"too_long_{n}", "Text4", _text(b"x" * n), "STRING_TOO_LONG")
        for n in (5, 8, 100)
    ),
    *(
        encode_fails(
            f"too_long_{text}", "Text4", lambda t, s=text: t.Text4(text=s), "STRING_TOO_LONG"
        )
        for text in ("abcde", "€€")
    ),
    encode_fails("surrogate", "Text", lambda t: t.Text(text="\ud800"), "STRING_NOT_UTF8"),
    encode_fails("bytes", "Text", lambda t: t.Text(text=b"abc"), "WRONG_TYPE"),
    encode_fails("number", "Text", lambda t: t.Text(text=1), "WRONG_TYPE"),
    encode_fails("none", "Text", lambda t: t.Text(text=None), "NON_NULLABLE_TYPE_WITH_NULL_VALUE"),
    ok("absent", "OptionalText", ZERO8 + ZERO8, lambda t: t.OptionalText()),
    ok("optional_empty", "OptionalText", ZERO8 + FF8, lambda t: t.OptionalText(text="")),
    ok("optional", "OptionalText", _text(b"here"), lambda t: t.OptionalText(text="here")),
    ok("optional_bounded", "OptionalText4", _text(b"here"), lambda t: t.OptionalText4(text="here")),
    decode_fails("optional_too_long", "OptionalText4", _text(b"there"), "STRING_TOO_LONG"),
    encode_fails(
        "optional_too_long",
        "OptionalText4",
        lambda t: t.OptionalText4(text="there"),
        "STRING_TOO_LONG",
    ),
    decode_fails("required_absent", "Text", ZERO8 + ZERO8, "NON_NULLABLE_TYPE_WITH_NULL_VALUE"),
    decode_fails("absent_with_size", "Text", u64(3) + ZERO8, "NON_EMPTY_STRING_WITH_NULL_BODY"),
    decode_fails(
        "optional_absent_with_size",
        "OptionalText",
        u64(1) + ZERO8,
        "NON_EMPTY_STRING_WITH_NULL_BODY",
    ),
    *(
        decode_fails(
            f"presence_{presence.hex()}_{type_}",
            type_,
            u64(1) + presence + pad(b"x"),
            "INVALID_PRESENCE_INDICATOR",
        )
        for type_ in ("Text", "OptionalText")
        for presence in (
            b"\1" + bytes(7),
            bytes(7) + b"\xff",
            b"\xff" * 7 + b"\xfe",
            b"\xff" * 4 + bytes(4),
        )
    ),
    *(
        decode_fails(
            f"{size}_bytes_claimed", "Text", u64(size) + FF8 + pad(b"abc"), "TOO_FEW_BYTES"
        )
        for size in (9, 16, 1 << 20, 0xFFFFFFFF)
    ),
    *(
        decode_fails(
            f"{size:x}_is_more_than_32_bits",
            "Text",
            u64(size) + FF8,
            "STRING_COUNT_EXCEEDS_32_BIT_LIMIT",
        )
        for size in (1 << 32, 1 << 63, (1 << 64) - 1)
    ),
    *(
        decode_fails(f"padding_{at}", "Text", data, "INVALID_PADDING_BYTE")
        for at, data in each_byte(_text(b"abc"), range(19, 24))
    ),
    decode_fails("unpadded", "Text", u64(3) + FF8 + b"abc", "TOO_FEW_BYTES"),
    decode_fails("no_presence", "Text", u64(3), "TOO_FEW_BYTES_IN_PRIMARY_OBJECT"),
    ok(
        "two",
        "TwoTexts",
        u64(1) + FF8 + u64(9) + FF8 + pad(b"a") + pad(b"bbbbbbbbb"),
        lambda t: t.TwoTexts(one="a", two="bbbbbbbbb"),
    ),
    decode_fails(
        "in_wrong_order",
        "TwoTexts",
        u64(1) + FF8 + u64(9) + FF8 + pad(b"b" * 9) + pad(b"a"),
        "INVALID_PADDING_BYTE",
    ),
    ok("array_full", "TextArray", b"exactly8", lambda t: t.TextArray(text="exactly8")),
    ok("array_filled", "TextArray", pad(b"abc"), lambda t: t.TextArray(text="abc")),
    ok("array_empty", "TextArray", ZERO8, lambda t: t.TextArray(text="")),
    encode_fails(
        "array_too_long", "TextArray", lambda t: t.TextArray(text="morethan8"), "STRING_TOO_LONG"
    ),
    encode_fails(
        "array_none",
        "TextArray",
        lambda t: t.TextArray(text=None),
        "NON_NULLABLE_TYPE_WITH_NULL_VALUE",
    ),
    decode_fails("array_goes_on", "TextArray", b"ab\0cdef\0", "INVALID_PADDING_BYTE"),
    decode_fails("array_invalid", "TextArray", b"\xff" + bytes(7), "STRING_NOT_UTF8"),
]
