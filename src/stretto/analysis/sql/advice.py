"""What to write instead of a name that is unknown."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

from stretto.analysis.sql.absent import reason_of_absence
from stretto.analysis.sql.inspection import COLUMNS, MODULES, TABLES
from stretto.analysis.sql.library import inclusion_of
from stretto.base.nearest_name import nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from stretto.analysis.sql.tokens import Token

FUNCTIONS = frozenset(
    "abs abs_time_str acos acosh ancestor_slice asin asinh atan atan2 atanh avg base64_decode "
    "base64_encode cast ceil char coalesce cos cosh count cume_dist degrees dense_rank "
    "descendant_slice directly_connected_flow exp extract_arg first_value "
    "floor following_flow format glob group_concat hex ifnull iif instr lag last_value lead length "
    "like ln log log10 log2 lower ltrim max median min mod nth_value ntile nullif percent_rank "
    "percentile pi pow power preceding_flow printf radians rank regexp_extract replace reverse "
    "round row_number rtrim sign sin sinh slice_is_ancestor sqrt str_split substr substring sum "
    "tan tanh to_monotonic to_realtime total trace_dur trace_end trace_start trim trunc typeof "
    "unhex unicode upper value_at_max_ts".split()
)
"""The functions that both engines have, as suggestions for a mistyped name."""

_ELSEWHERE = {
    "perfetto_table_info": f" Write: {COLUMNS} TABLE",
    "perfetto_tables": f" Write: {TABLES}",
    "pragma_module_list": f" Write: {MODULES}",
}
"""What is written for some tables of the trace processor, or of SQLite."""

_COMPARING = frozenset("= == != <> is like glob regexp".split())
"""What stands before a text that lacks its quotes."""


_CONSTANTS = ("null", "true", "false")
"""Keywords that stand where a column may stand."""
_SIMILARITY = 0.8


class Names(NamedTuple):
    """What an engine knows.

    Attributes:
        known: Returns the names of all tables, columns or functions.
        is_text: Returns whether a text is the name of a slice, track, thread or argument.
        columns: Returns the names of a table's columns.
    """

    known: Callable[[str], Iterable[str]]
    is_text: Callable[[str], bool]
    columns: Callable[[str], Iterable[str]]


def advice(names: Names, kind: str, name: str, tokens: Sequence[Token], at: int) -> str:
    """Return sentences about an unknown name; empty if there is nothing to say.

    Args:
        names: What the engine knows.
        kind: `table`, `column` or `function`.
        name: The unknown name.
        tokens: The tokens of the user's text.
        at: The index of the name's token; 0 if the name isn't there.
    """
    first, text = _words_without_quotes(kind, tokens, at)
    quoted = f" Text needs single quotes: '{text}'."
    if first and ("." in text or _is_value(tokens, first)) and names.is_text(text):
        return quoted
    others = {other for other in names.known(kind) if other.lower() != name.lower()}
    if kind == "column":
        others.update(get_close_matches(name.lower(), _CONSTANTS, 1, _SIMILARITY))
    instead = _ELSEWHERE.get(name.lower()) or reason_of_absence(name) or inclusion_of(name)
    found = (kind != "column" and instead) or nearest(name, others)
    return found + quoted * _is_value(tokens, first)


def _words_without_quotes(kind: str, tokens: Sequence[Token], at: int) -> tuple[int, str]:
    """Return the index and the text of `debug.size` around a name; 0 if it can't be a text."""
    first = last = at
    while first >= 2 and tokens[first - 1].text == ".":
        first -= 2
    while last + 2 < len(tokens) and tokens[last + 1].text == ".":
        last += 2
    others = [token.text.lower() for token in (*tokens[:first], *tokens[last + 1 :])]
    is_table = first < last and tokens[first].text.lower() in others
    if is_table or kind == "function" or (kind == "table" and first == last):
        return 0, ""
    return first, "".join(token.text for token in tokens[first : last + 1])


def _is_value(tokens: Sequence[Token], first: int) -> bool:
    """Return whether a value is expected: after `name =`, or as the key of `extract_arg`."""
    before = [token.text.lower() for token in tokens[max(first - 6, 0) : first]]
    if not first or before[-1] in _COMPARING:
        return first > 0
    return before[-2:] == ["in", "("] or (before[-1] == "," and "extract_arg" in before)
