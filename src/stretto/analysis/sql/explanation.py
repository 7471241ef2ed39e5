"""Explains an engine's errors: the position in the user's text, and similar names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.analysis.sql.errors import QueryError, located, missing_name
from stretto.analysis.sql.tokens import tokenize
from stretto.base.nearest_name import nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def explained(
    message: str, text: str, known: Callable[[str], Iterable[str]], shown: str = ""
) -> QueryError:
    """Return an engine's message as an error that shows the position in the user's text.

    Args:
        message: The message.
        text: The user's text.
        known: Returns the names of all tables, columns or functions.
        shown: The text of the token at which the message complains, if it is known.
    """
    problem, missing = message, missing_name(message)
    if missing is not None:
        kind, shown = missing
        others = {name for name in known(kind) if name.lower() != shown.lower()}
        problem = f"there is no {kind} {shown}.{nearest(shown, others)}"
    for token in tokenize(text) if shown else ():
        if token.text.strip('"`[]').lower() == shown.lower():
            return located(problem, text, token.start)
    return QueryError(problem)
