"""Expansion of PerfettoSQL's macros: `name!(arguments)`, before the text is parsed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stretto.analysis.sql.errors import PlacedError
from stretto.analysis.sql.library import inclusion_of
from stretto.analysis.sql.list_macros import LIST_MACROS
from stretto.analysis.sql.tokens import Token, closing, source, split, tokenize
from stretto.base.nearest_name import nearest

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAX_DEPTH = 64


class Macro(NamedTuple):
    """A macro: its parameters and its text, in which `$x` stands for the argument x."""

    parameters: tuple[str, ...]
    body: str


def substitute(text: str, arguments: Mapping[str, str]) -> str:
    """Replace `$x` by the text of the argument x, where there is one."""
    parts, end = [], 0
    for token in tokenize(text):
        if token.kind == "variable" and token.text[1:].lower() in arguments:
            parts += [text[end : token.start], arguments[token.text[1:].lower()]]
            end = token.end
    return "".join([*parts, text[end:]])


def expand(text: str, macros: Mapping[str, Macro], depth: int = 0) -> str:
    """Expand the macros of a text, and those in their expansions.

    Args:
        text: The text.
        macros: The macros by name, in lower case.
        depth: The number of expansions that contain the text.

    Raises:
        PlacedError: A macro is unknown, has the wrong number of arguments, or contains itself. The
            place is that of the call in the text.
    """
    tokens = tokenize(text)
    parts, end, i = [], 0, 0
    while i < len(tokens):
        if tokens[i].kind == "macro":
            last = _end_of_call(text, tokens, i)
            try:
                called = _call(text, tokens, macros, i=i, last=last, depth=depth)
            except PlacedError as error:
                raise PlacedError(error.problem, text, tokens[i].start) from error
            parts += [text[end : tokens[i].start], called]
            end, i = tokens[last].end, last
        i += 1
    return "".join([*parts, text[end:]])


def _end_of_call(text: str, tokens: list[Token], i: int) -> int:
    if i + 1 == len(tokens) or tokens[i + 1].text != "(":
        raise PlacedError("a macro needs parentheses after its name", text, tokens[i].start)
    return closing(tokens, i + 1, text)


def _call(
    text: str, tokens: list[Token], macros: Mapping[str, Macro], *, i: int, last: int, depth: int
) -> str:
    name = tokens[i].text[:-1].lower()
    if depth == _MAX_DEPTH:
        raise PlacedError(f"the macro {name}! contains itself", text, tokens[i].start)
    if name == "__intrinsic_stringify":
        return f"'{source(text, tokens[i + 2 : last])}'"
    parts = [source(text, part) for part in split(tokens[i + 2 : last], ",")]
    arguments = [expand(part, macros, depth + 1) for part in parts]
    if name in LIST_MACROS:
        return expand(LIST_MACROS[name](arguments), macros, depth + 1)
    macro = macros.get(name)
    if macro is None:
        advice = inclusion_of(name) or nearest(name, macros)
        problem = f"there is no macro {name}!.{advice}"
        raise PlacedError(problem, text, tokens[i].start)
    if not macro.parameters and arguments == [""]:
        arguments = []
    if len(arguments) != len(macro.parameters):
        problem = f"{name}! has {len(macro.parameters)} arguments, not {len(arguments)}"
        raise PlacedError(problem, text, tokens[i].start)
    body = substitute(macro.body, dict(zip(macro.parameters, arguments, strict=True)))
    return expand(body, macros, depth + 1)
