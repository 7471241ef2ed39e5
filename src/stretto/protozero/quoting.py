"""Shortens values for error messages."""

from __future__ import annotations

MAX_CHARS = 80


def quoted(value: object) -> str:
    """Return the truncated repr of a value; for a list, tuple or dict, only the type."""
    if isinstance(value, list | tuple | dict):
        return f"a {type(value).__name__}"
    if isinstance(value, str | bytes):
        # Without this, repr() would format megabytes.
        value = value[: MAX_CHARS + 1]
    text = repr(value)
    return text if len(text) <= MAX_CHARS else text[: MAX_CHARS - 3] + "..."


def cut(text: str) -> str:
    """Truncate a long text."""
    return text if len(text) <= MAX_CHARS else text[: MAX_CHARS - 3] + "..."
