"""Excerpts of values for traces: plain data of bounded size, without sensitive members.

    Order(items=[Item(...), ...], card="4111...")
        ->  {"items": [{"name": "hat", "price": 12}, "... 97 more"], "card": "<sensitive>"}

A message may hold sixty thousand numbers, or itself a thousand levels deep: an excerpt never takes
more than `MAX_VALUES` values, and says where it left something out. What a value's members are,
and which of them must be hidden, is defined by its package (`Parts`).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    Parts = Callable[[Any], Iterable[tuple[str, Any]] | str | None]
    """The members of a value with their names, a text that stands for it, or None: it is plain."""

SENSITIVE = "<sensitive>"
CUT = "..."

MAX_VALUES = 256
"""In all."""
MAX_ELEMENTS = 32
"""Of one list."""
MAX_DEPTH = 8
MAX_TEXT = 256
"""Characters of a string, and bytes of bytes."""


def excerpt(value: Any, parts: Parts) -> Any:
    """An excerpt of a value: dicts, lists, texts and numbers.

    Args:
        value: Anything.
        parts: Tells the members of what isn't plain.
    """
    return _Excerpt(parts).of(value, MAX_DEPTH)


class _Excerpt:
    """One excerpt on its way."""

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
