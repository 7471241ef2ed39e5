"""Test vectors for primitive types, each as the only member of a struct."""

from __future__ import annotations

import math

from fidl_support.vectors.case import (
    decode_fails,
    each_byte,
    encode_fails,
    f32,
    f64,
    num,
    ok,
    pad,
)
from fidl_support.vectors.schema import HIGHEST, INTEGERS, LOWEST, PRIMITIVES, SIZES

CASES = []

for _name in INTEGERS:
    _type, _size = f"One_{_name}", SIZES[_name]
    for _value in sorted({0, 1, HIGHEST[_name], LOWEST[_name], HIGHEST[_name] // 3}):
        CASES += [
            ok(
                f"{_name}_{_value}",
                _type,
                pad(num(_value, _size)),
                lambda t, v=_value, n=_type: getattr(t, n)(x=v),
            )
        ]
    for _value in (HIGHEST[_name] + 1, LOWEST[_name] - 1):
        CASES += [
            encode_fails(
                f"{_name}_{_value}_is_too_much",
                _type,
                lambda t, v=_value, n=_type: getattr(t, n)(x=v),
                "VALUE_OUT_OF_RANGE",
            )
        ]
    for _wrong in ("1", 1.5, True):
        CASES += [
            encode_fails(
                f"{_name}_is_no_{type(_wrong).__name__}",
                _type,
                lambda t, v=_wrong, n=_type: getattr(t, n)(x=v),
                "WRONG_TYPE",
            )
        ]
    CASES += [
        encode_fails(
            f"{_name}_is_not_None",
            _type,
            lambda t, n=_type: getattr(t, n)(x=None),
            "NON_NULLABLE_TYPE_WITH_NULL_VALUE",
        )
    ]

for _name in PRIMITIVES:
    for _at, _data in each_byte(bytes(8), range(SIZES[_name], 8)):
        CASES += [
            decode_fails(f"{_name}_padding_{_at}", f"One_{_name}", _data, "INVALID_PADDING_BYTE")
        ]
    for _length in (0, 7):
        CASES += [
            decode_fails(
                f"{_name}_of_{_length}_bytes",
                f"One_{_name}",
                bytes(_length),
                "TOO_FEW_BYTES_IN_PRIMARY_OBJECT",
            )
        ]
    CASES += [
        decode_fails(f"{_name}_and_more", f"One_{_name}", bytes(16), "TOO_MANY_BYTES_IN_MESSAGE")
    ]

CASES += [
    ok("false", "One_bool", bytes(8), lambda t: t.One_bool(x=False)),
    ok("true", "One_bool", pad(b"\1"), lambda t: t.One_bool(x=True)),
    encode_fails("bool_is_no_int", "One_bool", lambda t: t.One_bool(x=1), "WRONG_TYPE"),
    *(
        decode_fails(f"bool_{value}", "One_bool", pad(bytes([value])), "INVALID_BOOLEAN")
        for value in (2, 3, 127, 128, 254, 255)
    ),
    *(
        ok(
            f"float32_{value}",
            "One_float32",
            pad(f32(value)),
            lambda t, v=value: t.One_float32(x=v),
        )
        for value in (0.0, 1.0, -1.0, 0.5, 2.0**-149, 2.0**127, math.inf, -math.inf)
    ),
    *(
        ok(f"float64_{value}", "One_float64", f64(value), lambda t, v=value: t.One_float64(x=v))
        for value in (0.0, 1.0, -1.0, 0.1, 5e-324, 1.7976931348623157e308, math.inf, -math.inf)
    ),
    ok(
        "float32_negative_zero",
        "One_float32",
        b"\0\0\0\x80" + bytes(4),
        lambda t: t.One_float32(x=-0.0),
    ),
    ok("float64_of_int", "One_float64", f64(3.0), lambda t: t.One_float64(x=3)),
    encode_fails(
        "float32_too_large", "One_float32", lambda t: t.One_float32(x=1e39), "VALUE_OUT_OF_RANGE"
    ),
    encode_fails("float32_is_no_text", "One_float32", lambda t: t.One_float32(x="1"), "WRONG_TYPE"),
    encode_fails(
        "float64_is_not_None",
        "One_float64",
        lambda t: t.One_float64(x=None),
        "NON_NULLABLE_TYPE_WITH_NULL_VALUE",
    ),
    ok("framework_error", "Framework", pad(num(-2, 4)), lambda t: t.Framework(e=-2)),
    decode_fails(
        "framework_error_unknown", "Framework", pad(num(-3, 4)), "STRICT_ENUM_UNKNOWN_VALUE"
    ),
]
