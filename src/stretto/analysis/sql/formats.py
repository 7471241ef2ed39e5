"""Translates formats of SQLite's `printf` into DuckDB's. Only literals can be translated."""

from __future__ import annotations

import re
from typing import NamedTuple

_DIRECTIVE = re.compile(r"%([-+ 0#,!]*)(\d*)(\.\d+)?(?:ll|l)?([a-zA-Z%])")
_MAX_DIGITS = 15
"""SQLite writes zeros after the first sixteen digits, DuckDB the digits of the binary number."""
_CASTS = {
    **dict.fromkeys("di", "_int"),
    **dict.fromkeys("xXo", "_int"),
    **dict.fromkeys("feEgG", "_real"),
    **dict.fromkeys("sz", "_text"),
}


class Conversion(NamedTuple):
    """How an argument is converted: by which macro, and for %f the number of digits."""

    macro: str
    digits: int | None


def translate_format(template: str) -> tuple[str, list[Conversion]] | str:
    """Return the format for DuckDB and the conversion of each argument.

    If a directive can't be translated, returns only this directive.
    """
    casts: list[Conversion] = []
    parts, end = [], 0
    for found in _DIRECTIVE.finditer(template):
        flags, width, digits, kind = found.groups()
        parts.append(template[end : found.start()])
        end = found.end()
        if kind == "%":
            parts.append("%%")
            continue
        if kind not in _CASTS or "," in flags or "!" in flags or "#" in flags:
            return found[0]
        if kind in "fF" and int((digits or ".6")[1:] or 0) > _MAX_DIGITS:
            return found[0]
        if kind in "fF":
            casts.append(Conversion("_real", int((digits or ".6")[1:] or 0)))
        else:
            casts.append(Conversion(_CASTS[kind], None))
        letter = {"i": "d", "z": "s"}.get(kind, kind)
        parts.append(f"%{flags}{width}{digits or ''}{letter}")
    return "".join([*parts, template[end:]]), casts
