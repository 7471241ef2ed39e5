"""Filters for the names of producers: lists of names and regular expressions of a config.

Expressions are compiled when the config arrives, so that an invalid expression is refused at once.
Matching a name takes bounded time.
"""

from __future__ import annotations

from stretto.base.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final

    from stretto.base.regex import Regex

MAX_TOTAL_SIZE: Final = 4000
"""The largest size of a config's expressions, in instructions: some 4000 characters."""
MAX_SHOWN: Final = 60
"""The number of characters of an expression that an error message shows."""
MAX_KNOWN_NAMES: Final = 1000
"""The largest number of cached names; a full cache is emptied."""


class RegexCompiler:
    """Compiles the regular expressions of one config, up to a total size."""

    def __init__(self) -> None:
        self._total = 0

    def compile(self, pattern: str, field: str) -> Regex:
        """Compile one expression.

        Args:
            pattern: The expression.
            field: Path of the expression in the config, for the error message.

        Raises:
            ConfigError: The expression is invalid or too large.
        """
        from stretto.base.regex import Regex  # Few configs have a regular expression.

        try:
            regex = Regex(pattern)
            self._total += regex.size
            if self._total > MAX_TOTAL_SIZE:
                raise ConfigError(f"with those before it, it has more than {MAX_TOTAL_SIZE} steps")
        except ConfigError as error:
            raise ConfigError(
                f"{field}: the regular expression {_shown(pattern)} can't be used: {error}."
            ) from error
        return regex


def _shown(pattern: str) -> str:
    cut = pattern[:MAX_SHOWN]
    return repr(cut) if cut == pattern else f"{cut!r}…"


class NameFilter:
    """Accepts listed names, and names that match an expression. An empty filter accepts all names.

    Args:
        exact: Accepted names.
        regexes: Expressions that match the whole name.
    """

    __slots__ = ("_exact", "_known", "_regexes")

    def __init__(self, exact: Sequence[str], regexes: Sequence[Regex]) -> None:
        self._exact = frozenset(exact)
        self._regexes = tuple(regexes)
        self._known: dict[str, bool] = {}

    def matches(self, name: str) -> bool:
        """Return whether the filter accepts `name`."""
        if not self._regexes:
            return not self._exact or name in self._exact
        known = self._known.get(name)
        if known is None:
            if len(self._known) >= MAX_KNOWN_NAMES:
                self._known.clear()
            known = name in self._exact or any(each.full_match(name) for each in self._regexes)
            self._known[name] = known
        return known
