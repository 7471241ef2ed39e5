"""Test vectors for enums and bits of all underlying types, strict and flexible."""

from __future__ import annotations

from fidl_support.vectors.case import (
    decode_fails,
    each_byte,
    encode_fails,
    num,
    ok,
    pad,
)
from fidl_support.vectors.schema import ENUM, HIGHEST, INTEGERS, LOWEST, SIZES


def _of(name: str, value: int):
    """Return a function that makes a struct with a certain value as its only member."""
    return lambda t: getattr(t, name)(x=value)


def _set(name: str, value: object):
    """Return a function that sets a value which the struct's constructor may refuse."""

    def make(t):
        made = getattr(t, name)(x=1)
        made.x = value
        return made

    return make


CASES = []
for _name in INTEGERS:
    _size = SIZES[_name]
    for _kind in ("SEnum", "FEnum"):
        for _value in ENUM.values():
            CASES += [
                ok(
                    f"{_kind}_{_name}_{_value}",
                    f"{_kind}_{_name}",
                    pad(num(_value, _size)),
                    _of(f"{_kind}_{_name}", _value),
                )
            ]
        for _value in (HIGHEST[_name] + 1, LOWEST[_name] - 1):
            CASES += [
                encode_fails(
                    f"{_kind}_{_name}_{_value}_is_too_much",
                    f"{_kind}_{_name}",
                    _set(f"{_kind}_{_name}", _value),
                    "VALUE_OUT_OF_RANGE",
                )
            ]
    for _value in (0, 3, HIGHEST[_name]):
        CASES += [
            decode_fails(
                f"strict_enum_{_name}_{_value}",
                f"SEnum_{_name}",
                pad(num(_value, _size)),
                "STRICT_ENUM_UNKNOWN_VALUE",
            ),
            encode_fails(
                f"strict_enum_{_name}_{_value}",
                f"SEnum_{_name}",
                _set(f"SEnum_{_name}", _value),
                "STRICT_ENUM_UNKNOWN_VALUE",
            ),
            ok(
                f"flexible_enum_{_name}_{_value}",
                f"FEnum_{_name}",
                pad(num(_value, _size)),
                _of(f"FEnum_{_name}", _value),
            ),
        ]

for _name in INTEGERS[4:]:
    _size, _top = SIZES[_name], 1 << (8 * SIZES[_name] - 1)
    for _kind in ("SBits", "FBits"):
        for _value in (0, 1, 2, 3, _top, _top | 3):
            CASES += [
                ok(
                    f"{_kind}_{_name}_{_value}",
                    f"{_kind}_{_name}",
                    pad(num(_value, _size)),
                    _of(f"{_kind}_{_name}", _value),
                )
            ]
    for _value in (4, 5, HIGHEST[_name]):
        CASES += [
            decode_fails(
                f"strict_bits_{_name}_{_value}",
                f"SBits_{_name}",
                pad(num(_value, _size)),
                "STRICT_BITS_UNKNOWN_BIT",
            ),
            encode_fails(
                f"strict_bits_{_name}_{_value}",
                f"SBits_{_name}",
                _set(f"SBits_{_name}", _value),
                "STRICT_BITS_UNKNOWN_BIT",
            ),
            ok(
                f"flexible_bits_{_name}_{_value}",
                f"FBits_{_name}",
                pad(num(_value, _size)),
                _of(f"FBits_{_name}", _value),
            ),
        ]

CASES += [
    encode_fails("enum_is_no_text", "SEnum_uint8", _set("SEnum_uint8", "ONE"), "WRONG_TYPE"),
    encode_fails(
        "enum_is_not_none",
        "SEnum_uint8",
        _set("SEnum_uint8", None),
        "NON_NULLABLE_TYPE_WITH_NULL_VALUE",
    ),
    encode_fails("bits_are_no_text", "SBits_uint8", _set("SBits_uint8", "A"), "WRONG_TYPE"),
    *(
        decode_fails(f"enum_padding_{at}", "SEnum_uint16", data, "INVALID_PADDING_BYTE")
        for at, data in each_byte(pad(num(1, 2)), range(2, 8))
    ),
]
