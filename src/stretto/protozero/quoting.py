"""Values in messages to people, not longer than they read."""

from __future__ import annotations

MAX_CHARS = 80


def quoted(value: object) -> str:
    """A value as Python writes it, cut if it is long; of a list or an object, its type."""
    if isinstance(value, list | tuple | dict):
        return f"a {type(value).__name__}"
    if isinstance(value, str | bytes):
        value = value[: MAX_CHARS + 1]  # of megabytes, no more is looked at
    text = repr(value)
    return text if len(text) <= MAX_CHARS else text[: MAX_CHARS - 3] + "..."


def cut(text: str) -> str:
    """A text, cut if it is long."""
    return text if len(text) <= MAX_CHARS else text[: MAX_CHARS - 3] + "..."
