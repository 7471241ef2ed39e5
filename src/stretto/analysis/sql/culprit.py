"""Finds which of several equal names in a statement an engine complains about.

Engines ignore the case of names, but repeat a name as it was written. So the statement runs again
with some of the names in the other case, until one is left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.analysis.sql.errors import missing_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stretto.analysis.sql.tokens import Token


def culprit(
    tokens: Sequence[Token], places: Sequence[int], again: Callable[[str], str]
) -> int | None:
    """Return the index of the token that the engine complains about; None if it is none of them.

    Args:
        tokens: The tokens of the statement.
        places: The indexes of the tokens that have the name.
        again: Runs the statement with another text, and returns the engine's message.
    """
    left = list(places)
    while left:
        half = left[: (len(left) + 1) // 2]
        if _complains_about(tokens, half, again):
            if len(left) == 1:
                return left[0]
            left = half
        else:
            left = left[len(half) :]
    return None


def _complains_about(
    tokens: Sequence[Token], places: Sequence[int], again: Callable[[str], str]
) -> bool:
    words = [token.text for token in tokens]
    for place in places:
        words[place] = words[place].swapcase()
    missing = missing_name(again(" ".join(words)))
    return missing is not None and missing[1] in {words[place].strip('"`[]') for place in places}
