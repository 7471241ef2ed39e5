"""Explains an engine's errors: the position in the user's text, and similar names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stretto.analysis.sql.advice import advice
from stretto.analysis.sql.errors import SQLITE, located, missing_name
from stretto.analysis.sql.syntax import meant_keyword
from stretto.analysis.sql.tokens import tokenize

if TYPE_CHECKING:
    from stretto.analysis.sql.advice import Names
    from stretto.analysis.sql.errors import QueryError
    from stretto.analysis.sql.tokens import Token

_QUOTES = "\"'`[]"
_NEAR = re.compile(r'near "([^"]+)"')
_CLASS = re.compile(r"^(?:[A-Z][\w-]* )+Error: ")
"""What DuckDB puts first: `Binder Error: `."""
_MARKED = re.compile(r"^(LINE \d+: .*)\n( *)\^", re.MULTILINE)
"""DuckDB's line of the statement, and the mark below it. The statement is the rewritten one."""
_TYPES = re.compile(
    r"^No function matches the given name and argument types '(.+?)\((.*)\)'.*", re.DOTALL
)
_TYPES_DIFFER = re.compile(
    r"^(?:Parser|Conversion|Out of Range|Binder|Invalid Input|Not implemented|INTERNAL) Error: "
)
"""Classes of DuckDB's errors at statements that SQLite accepts, as it converts the values."""
_MACRO = re.compile(r"^Macro _?(\w+)\(\) .*", re.DOTALL)
_FILES = re.compile(r"file system operations are disabled|disabled (?:by|through) configuration")


def explained(message: str, text: str, names: Names, start: int) -> QueryError:
    """Return an engine's message as an error that shows the position in the user's text.

    Args:
        message: The message.
        text: The user's text.
        names: What the engine knows.
        start: The position of the statement, as an index of the text.
    """
    missing = missing_name(message)
    kind, shown = missing or ("", _complained_word(message))
    tokens = tokenize(text)
    at = _place(tokens, shown.strip(_QUOTES).lower(), start)
    problem = _plain(message)
    if missing is not None:
        keyword = _keyword(tokens, at, start) if kind == "column" else ""
        meant = f" Did you mean {keyword}?" if keyword else advice(names, kind, shown, tokens, at)
        problem = f"there is no {kind} {shown}.{meant}"
    return located(problem, text, tokens[at].start if at else start)


def _place(tokens: list[Token], name: str, start: int) -> int:
    """Return the index of the name's first token in the statement; 0 if there is none."""
    found = (
        at
        for at, token in enumerate(tokens)
        if name and token.start >= start and token.text.strip(_QUOTES).lower() == name
    )
    return next(found, 0)


def _keyword(tokens: list[Token], at: int, start: int) -> str:
    """Return the keyword that the user meant by a name; empty if it can't be one."""
    if not at:
        return ""
    first = next(i for i, token in enumerate(tokens) if token.start >= start)
    ends = (i for i, token in enumerate(tokens) if i > at and token.text == ";")
    return meant_keyword(tokens[first : next(ends, len(tokens))], at - first)


def _plain(message: str) -> str:
    """Return what the message says, without candidates and without the rewritten statement."""
    if _FILES.search(message):
        return "a query can't read or write files; its result can be written by .parquet(path)"
    said = _CLASS.sub("", message.partition("\n\nLINE ")[0])
    if found := _TYPES.match(said):
        said = f"{found[1]} has no form for arguments of the types {found[2]}: use cast(x as type)"
    elif found := _MACRO.match(said):
        name = _OPERATORS.get(found[1], found[1])
        said = f"the types of the arguments of {name} are not known: use cast(x as type)"
    said = said.partition("\n")[0].strip()
    return f"{said}; or {SQLITE}" if _TYPES_DIFFER.match(message) else said


_OPERATORS = {
    "eq": "=",
    "ne": "<>",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "mod": "%",
    "is": "is",
    "is_not": "is not",
    "truth": "a condition",
    "int": "cast",
    "real": "cast",
    "text": "||",
    "blob": "cast",
}
"""What the user wrote for a macro."""


def _complained_word(message: str) -> str:
    """Return the word at which the message complains, or an empty text."""
    if near := _NEAR.search(message):
        return near[1]
    marked = _MARKED.search(message)
    word = re.match(r"\w+|'[^']*'|[-+*/%<>=|&~]+", marked[1][len(marked[2]) :]) if marked else None
    return word[0] if word else ""
