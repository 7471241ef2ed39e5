"""Suggests known names for a name that is unknown."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MISTYPED = 0.75
"""The least similarity of mistyped words on a command line, which are short."""


def nearest(name: str, known: Iterable[str], similarity: float = 0.6) -> str:
    """Return a sentence with the known names most similar to a name; empty if there are none.

    Args:
        name: The unknown name.
        known: The known names.
        similarity: The least similarity, from 0 to 1.
    """
    from difflib import get_close_matches  # its import takes milliseconds

    close = get_close_matches(name.lower(), sorted(set(known)), 3, similarity)
    return f" Did you mean {' or '.join(close)}?" if close else ""
