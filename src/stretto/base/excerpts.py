"""Excerpts of values for traces: plain data of bounded size, without sensitive members.

    Order(items=[Item(...), ...], card="4111...")
        ->  {"items": [{"name": "hat", "price": 12}, "... 97 more"], "card": "<sensitive>"}

A value may be arbitrarily large and deep: an excerpt has at most `MAX_VALUES` values, and marks
each omission. The package that defines the value's type provides its members, and hides sensitive
ones (`Parts`).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    Parts = Callable[[Any], Iterable[tuple[str, Any]] | str | None]
    """Returns the named members of a value, or a text to show instead; None for a plain value."""

SENSITIVE = "<sensitive>"
CUT = "..."

MAX_VALUES = 256
"""The largest number of values in an excerpt."""
MAX_ELEMENTS = 32
"""The largest number of elements of a list or dict."""
MAX_DEPTH = 8
MAX_TEXT = 256
"""The largest number of characters of a string, and of bytes of a bytes value."""


def excerpt(value: Any, parts: Parts) -> Any:
    """Return an excerpt of a value. It consists of dicts, lists, texts and numbers.

    Args:
        value: Any value.
        parts: Returns the members of a value that isn't plain.
    """
    return _Excerpt(parts).of(value, MAX_DEPTH)


class _Excerpt:
    """Builds one excerpt, and counts its values."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._left = MAX_VALUES

    def of(self, value: Any, depth: int) -> Any:
        if self._left <= 0 or depth <= 0:
            return CUT
        self._left -= 1
        found = self._parts(value)
        if isinstance(found, str):
            return found
        if found is not None:
            return {name: self.of(inner, depth - 1) for name, inner in found}
        if isinstance(value, dict):
            return self._of_dict(value, depth - 1)
        if isinstance(value, (list, tuple)):
            return self._of_list(value, depth - 1)
        return _plain(value)

    def _of_list(self, values: list[Any] | tuple[Any, ...], depth: int) -> list[Any]:
        room = min(MAX_ELEMENTS, max(self._left, 0))
        taken = [self.of(each, depth) for each in values[:room]]
        if len(values) > room:
            taken.append(f"{CUT} {len(values) - room} more")
        return taken

    def _of_dict(self, values: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        room = min(MAX_ELEMENTS, max(self._left, 0))
        taken: dict[str, Any] = {}
        for key, inner in values.items():
            if len(taken) == room:
                taken[CUT] = f"{len(values) - room} more"
                break
            taken[_text(str(key))] = self.of(inner, depth)
        return taken


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        data = bytes(value[:MAX_TEXT]).hex()
        return data if len(value) <= MAX_TEXT else f"{data}{CUT} {len(value) - MAX_TEXT} more"
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return _text(repr(value))


def _text(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}{CUT} {len(text) - MAX_TEXT} more"
