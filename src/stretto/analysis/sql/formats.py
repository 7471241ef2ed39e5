"""Translates formats of SQLite's `printf` into DuckDB's. Only literals can be translated."""

from __future__ import annotations

import re

_DIRECTIVE = re.compile(r"%([-+ 0#,!]*)(\d*)(\.\d+)?(?:ll|l)?([a-zA-Z%])")
_CASTS = {
    **dict.fromkeys("di", "_int"),
    **dict.fromkeys("xXo", "_int"),
    **dict.fromkeys("feEgG", "_real"),
    **dict.fromkeys("sz", "_text"),
}


def translate_format(template: str) -> tuple[str, list[str]] | str:
    """Return the format for DuckDB and the macro that converts each argument.

    If a directive can't be translated, returns only this directive.
    """
    casts: list[str] = []
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
        casts.append(_CASTS[kind])
        letter = {"i": "d", "z": "s"}.get(kind, kind)
        parts.append(f"%{flags}{width}{digits or ''}{letter}")
    return "".join([*parts, template[end:]]), casts
