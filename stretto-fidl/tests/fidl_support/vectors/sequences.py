"""Test vectors for FIDL vectors and arrays."""

from __future__ import annotations

from fidl_support.vectors.case import (
    FF8,
    ZERO8,
    decode_fails,
    each_byte,
    encode_fails,
    f32,
    f64,
    num,
    ok,
    pad,
    u16,
    u32,
    u64,
)
from fidl_support.vectors.schema import HIGHEST, INTEGERS, LOWEST, PRIMITIVES, SIZES


def _element(name: str, index: int) -> tuple[object, bytes]:
    """Return the element at an index, and its bytes."""
    if name == "bool":
        return index % 2 == 1, bytes([index % 2])
    if name.startswith("float"):
        value = index / 2
        return value, (f32 if name == "float32" else f64)(value)
    value = (HIGHEST[name], LOWEST[name], 1)[index % 3]
    return value, num(value, SIZES[name])


def _value(name: str, length: int) -> object:
    values = [_element(name, index)[0] for index in range(length)]
    return bytes(values) if name == "uint8" else values


CASES = [
    *(
        ok(
            f"vector_of_{n}_{name}",
            f"Vector_{name}",
            u64(n) + FF8 + pad(b"".join(_element(name, index)[1] for index in range(n))),
            lambda t, name=name, n=n: getattr(t, f"Vector_{name}")(v=_value(name, n)),
        )
        for name in PRIMITIVES
        for n in (0, 1, 2, 5, 8)
    ),
    *(
        encode_fails(
            f"vector_of_{name}_out_of_range",
            f"Vector_{name}",
            lambda t, name=name: getattr(t, f"Vector_{name}")(v=[0, HIGHEST[name] + 1]),
            "VALUE_OUT_OF_RANGE",
        )
        for name in INTEGERS
    ),
    *(
        encode_fails(
            f"vector_of_{name}_of_text",
            f"Vector_{name}",
            lambda t, name=name: getattr(t, f"Vector_{name}")(v=["x"]),
            "VALUE_OUT_OF_RANGE" if name == "uint8" else "WRONG_TYPE",
        )
        for name in PRIMITIVES
    ),
    *(
        decode_fails(
            f"vector_of_{name}_cut_short",
            f"Vector_{name}",
            u64(8 // SIZES[name] + 1) + FF8 + bytes(8),
            "TOO_FEW_BYTES",
        )
        for name in PRIMITIVES
    ),
    *(
        decode_fails(
            f"vector_of_{name}_with_bad_presence",
            f"Vector_{name}",
            u64(1) + u64(1) + bytes(8),
            "INVALID_PRESENCE_INDICATOR",
        )
        for name in PRIMITIVES
    ),
    *(
        decode_fails(f"vector_padding_{at}", "Vector_uint8", data, "INVALID_PADDING_BYTE")
        for at, data in each_byte(u64(3) + FF8 + pad(b"abc"), range(19, 24))
    ),
    decode_fails("vector_of_bool_2", "Vector_bool", u64(2) + FF8 + pad(b"\1\2"), "INVALID_BOOLEAN"),
    ok(
        "bytes_of_list",
        "Vector_uint8",
        u64(2) + FF8 + pad(b"\1\2"),
        lambda t: t.Vector_uint8(v=[1, 2]),
        way="encode",
    ),
    ok(
        "bytes_of_bytearray",
        "Vector_uint8",
        u64(2) + FF8 + pad(b"\1\2"),
        lambda t: t.Vector_uint8(v=bytearray(b"\1\2")),
        way="encode",
    ),
    ok(
        "numbers_of_tuple",
        "Vector_uint32",
        u64(1) + FF8 + pad(u32(5)),
        lambda t: t.Vector_uint32(v=(5,)),
        way="encode",
    ),
    encode_fails(
        "vector_of_text", "Vector_uint32", lambda t: t.Vector_uint32(v="abc"), "WRONG_TYPE"
    ),
    encode_fails("vector_of_dict", "Vector_uint32", lambda t: t.Vector_uint32(v={}), "WRONG_TYPE"),
    encode_fails(
        "vector_none",
        "Vector_uint32",
        lambda t: t.Vector_uint32(v=None),
        "NON_NULLABLE_TYPE_WITH_NULL_VALUE",
    ),
    decode_fails(
        "vector_absent", "Vector_uint32", ZERO8 + ZERO8, "NON_NULLABLE_TYPE_WITH_NULL_VALUE"
    ),
    decode_fails(
        "vector_absent_with_count",
        "Vector_uint32",
        u64(1) + ZERO8,
        "NON_EMPTY_VECTOR_WITH_NULL_BODY",
    ),
    decode_fails(
        "optional_absent_with_count", "Optional", u64(1) + ZERO8, "NON_EMPTY_VECTOR_WITH_NULL_BODY"
    ),
    ok("optional_absent", "Optional", ZERO8 + ZERO8, lambda t: t.Optional()),
    ok("optional_empty", "Optional", ZERO8 + FF8, lambda t: t.Optional(v=[])),
    ok("optional_present", "Optional", u64(1) + FF8 + pad(u32(9)), lambda t: t.Optional(v=[9])),
    *(
        ok(
            f"bounded_{n}",
            "Bounded",
            u64(n) + FF8 + pad(bytes(4 * n)),
            lambda t, n=n: t.Bounded(v=[0] * n),
        )
        for n in range(3)
    ),
    decode_fails("bound_far_exceeded", "Bounded", u64((1 << 32) - 1) + FF8, "COUNT_EXCEEDS_LIMIT"),
    decode_fails("bound_exceeded", "Bounded", u64(3) + FF8 + bytes(16), "COUNT_EXCEEDS_LIMIT"),
    encode_fails(
        "bound_exceeded", "Bounded", lambda t: t.Bounded(v=[1, 2, 3]), "COUNT_EXCEEDS_LIMIT"
    ),
    *(
        decode_fails(
            f"{count:x}_elements_of_{name}",
            f"Vector_{name}",
            u64(count) + FF8,
            "VECTOR_COUNT_EXCEEDS_32_BIT_LIMIT",
        )
        for count in (1 << 32, 1 << 61, (1 << 64) - 1)
        for name in ("uint8", "uint64")
    ),
    *(
        decode_fails(
            f"{count}_elements_of_{type_}", type_, u64(count) + FF8 + bytes(64), "TOO_FEW_BYTES"
        )
        for count in (1 << 24, 0xFFFFFFFF)
        for type_ in (
            "Vector_uint8",
            "Vector_uint64",
            "Texts",
            "Pairs",
            "Empties",
            "Boxes",
            "Chains",
        )
    ),
    ok(
        "texts",
        "Texts",
        u64(2) + FF8 + u64(1) + FF8 + u64(0) + FF8 + pad(b"a"),
        lambda t: t.Texts(v=["a", ""]),
    ),
    decode_fails(
        "texts_second_invalid",
        "Texts",
        u64(2) + FF8 + u64(1) + FF8 + u64(1) + FF8 + pad(b"a") + pad(b"\xff"),
        "STRING_NOT_UTF8",
    ),
    encode_fails(
        "texts_second_none",
        "Texts",
        lambda t: t.Texts(v=["a", None]),
        "NON_NULLABLE_TYPE_WITH_NULL_VALUE",
    ),
    ok(
        "vectors",
        "Vectors",
        u64(2) + FF8 + u64(1) + FF8 + u64(2) + FF8 + pad(b"a") + pad(b"bc"),
        lambda t: t.Vectors(v=[b"a", b"bc"]),
    ),
    ok(
        "pairs",
        "Pairs",
        u64(3) + FF8 + pad(b"".join(bytes([i, 0]) + u16(i) for i in (1, 2, 3))),
        lambda t: t.Pairs(v=[t.Pair(a=i, b=i) for i in (1, 2, 3)]),
    ),
    decode_fails(
        "pairs_padding_of_second",
        "Pairs",
        u64(2) + FF8 + b"\1\0\1\0\2\xee\2\0",
        "INVALID_PADDING_BYTE",
    ),
    encode_fails("pairs_of_another_class", "Pairs", lambda t: t.Pairs(v=[t.Empty()]), "WRONG_TYPE"),
    encode_fails(
        "pairs_out_of_range", "Pairs", lambda t: t.Pairs(v=[_pair(t, 300)]), "VALUE_OUT_OF_RANGE"
    ),
    ok("empties", "Empties", u64(3) + FF8 + bytes(8), lambda t: t.Empties(v=[t.Empty()] * 3)),
    decode_fails(
        "empties_second_not_zero", "Empties", u64(2) + FF8 + pad(b"\0\1"), "INVALID_EMPTY_STRUCT"
    ),
    ok(
        "boxes",
        "Boxes",
        u64(3) + FF8 + FF8 + ZERO8 + FF8 + bytes(16),
        lambda t: t.Boxes(v=[t.Empty(), None, t.Empty()]),
    ),
    ok("enums", "Enums", u64(2) + FF8 + pad(u16(1) + u16(100)), lambda t: t.Enums(v=[1, 100])),
    decode_fails(
        "enums_unknown", "Enums", u64(2) + FF8 + pad(u16(1) + u16(3)), "STRICT_ENUM_UNKNOWN_VALUE"
    ),
    ok("array_bytes", "Bytes3", pad(b"abc"), lambda t: t.Bytes3(a=b"abc")),
    ok(
        "array_bytes_of_list",
        "Bytes3",
        pad(b"abc"),
        lambda t: t.Bytes3(a=[97, 98, 99]),
        way="encode",
    ),
    ok(
        "array_numbers",
        "Numbers3",
        pad(u32(1) + u32(2) + u32(3)),
        lambda t: t.Numbers3(a=[1, 2, 3]),
    ),
    ok("array_bools", "Bools3", pad(b"\1\0\1"), lambda t: t.Bools3(a=[True, False, True])),
    decode_fails("array_bools_third", "Bools3", pad(b"\1\0\2"), "INVALID_BOOLEAN"),
    ok(
        "array_texts",
        "Texts2",
        u64(1) + FF8 + u64(1) + FF8 + pad(b"a") + pad(b"b"),
        lambda t: t.Texts2(a=["a", "b"]),
    ),
    ok(
        "array_pairs",
        "Pairs2",
        b"\1\0\2\0\3\0\4\0",
        lambda t: t.Pairs2(a=[t.Pair(a=1, b=2), t.Pair(a=3, b=4)]),
    ),
    decode_fails("array_pairs_padding", "Pairs2", b"\1\0\2\0\3\1\4\0", "INVALID_PADDING_BYTE"),
    ok(
        "array_of_arrays",
        "Grid",
        u16(1) + u16(2) + u16(3) + u16(4),
        lambda t: t.Grid(a=[[1, 2], [3, 4]]),
    ),
    *(
        encode_fails(
            f"array_{name}_of_{n}",
            name,
            lambda t, name=name, n=n: getattr(t, name)(a=[1] * n),
            "ARRAY_COUNT_MISMATCH",
        )
        for name in ("Bytes3", "Numbers3")
        for n in (0, 2, 4)
    ),
    encode_fails(
        "array_none", "Numbers3", lambda t: t.Numbers3(a=None), "NON_NULLABLE_TYPE_WITH_NULL_VALUE"
    ),
    encode_fails(
        "array_element", "Numbers3", lambda t: t.Numbers3(a=[1, -1, 1]), "VALUE_OUT_OF_RANGE"
    ),
    *(
        decode_fails(f"array_padding_{at}", "Bytes3", data, "INVALID_PADDING_BYTE")
        for at, data in each_byte(pad(b"abc"), range(3, 8))
    ),
]


def _pair(t: object, number: int) -> object:
    pair = t.Pair(a=1, b=1)  # type: ignore[attr-defined]
    pair.a = number
    return pair
