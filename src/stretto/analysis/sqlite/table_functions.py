"""Calls of table functions become subqueries, or joins.

    from ancestor_slice(5) a              from (select * from _slice_rows where …) a
    join ancestor_slice(s.id) a on x      join _slice_rows a on … and (x)

SQLite has no functions of tables that depend on other tables of the same `from`; so the ids come
from a function that returns a JSON list.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from stretto.analysis.sql.errors import QueryError, wrong_count
from stretto.analysis.sql.macros import substitute
from stretto.analysis.sql.tokens import Token, closing, source, split, tokenize

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stretto.analysis.sql.statements import Statement

ID_FUNCTIONS = {
    "ancestor_slice": "_slice_rows",
    "descendant_slice": "_slice_rows",
    "following_flow": "flow",
    "preceding_flow": "flow",
    "directly_connected_flow": "flow",
}
"""The tables of the functions whose rows are rows of a table."""

_FLOWS = (
    "select list.key as id, slice_out, slice_in, trace_id, arg_set_id "
    "from json_each({}) list join flow on flow.id = list.value order by list.key"
)
"""The rows of a function that gives flows: the column id numbers them."""

_MAX_CALLS = 500
_AFTER_TABLE = frozenset(
    "on using where join left inner cross natural full right group order having limit union except "
    "intersect window".split()
)
_ENDS = _AFTER_TABLE - {"on", "using"}


class _Call(NamedTuple):
    """A call: its tokens are those from `start` to `end`; the alias is included."""

    name: str
    start: int
    end: int
    arguments: list[str]
    alias: str


def replace_table_functions(text: str, functions: Mapping[str, Statement]) -> str:
    """Return a statement without calls of table functions.

    Args:
        text: The statement.
        functions: The table functions that statements have created, by name.

    Raises:
        QueryError: A call has the wrong number of arguments, or can't be replaced.
    """
    for _ in range(_MAX_CALLS):
        tokens = tokenize(text)
        call = _find(text, tokens, functions)
        if call is None:
            return text
        text = _replaced(text, tokens, call, functions)
    raise QueryError(f"the statement has more than {_MAX_CALLS} calls of table functions")


def check_recursion(function: Statement, functions: Mapping[str, Statement]) -> None:
    """Check that a new table function doesn't call itself: its calls could not be replaced.

    Args:
        function: The statement that creates it.
        functions: The other table functions, by name.

    Raises:
        QueryError: It calls itself, or a function that calls it.
    """
    name = function.name.lower()
    reached, left = set[str](), [function]
    while left:
        called = _called(left.pop().text)
        if name in called:
            raise QueryError(f"the function {name} calls itself: one that returns a table can't")
        left += [functions[each] for each in called - reached if each in functions]
        reached |= called


def _called(text: str) -> set[str]:
    """Return the names before a parenthesis, in lower case."""
    return {token.text.lower() for token, after in pairwise(tokenize(text)) if after.text == "("}


def _find(text: str, tokens: Sequence[Token], functions: Mapping[str, Statement]) -> _Call | None:
    for at, token in enumerate(tokens[:-1]):
        name = token.text.lower()
        if tokens[at + 1].text == "(" and (name in ID_FUNCTIONS or name in functions):
            end = closing(tokens, at + 1, text)
            parts = split(tokens[at + 2 : end], ",")
            arguments = [source(text, part) for part in parts if part]
            alias, after = name, end + 1
            if after < len(tokens) and tokens[after].is_word("as"):
                after += 1
            if after < len(tokens) and _is_alias(tokens[after]):
                alias, after = tokens[after].text, after + 1
            return _Call(name, at, after, arguments, alias)
    return None


def _is_alias(token: Token) -> bool:
    return _is_name(token) and token.text.lower() not in _AFTER_TABLE


def _is_name(token: Token) -> bool:
    return token.kind in ("word", "quoted")


def _replaced(
    text: str, tokens: Sequence[Token], call: _Call, functions: Mapping[str, Statement]
) -> str:
    before = tokens[call.start - 1] if call.start else None
    is_joined = before is not None and (before.is_word("join") or before.text == ",")
    end = tokens[call.end - 1].end
    if call.name in functions:
        if is_joined and any(
            _is_name(token) for each in call.arguments for token in tokenize(each)
        ):
            raise QueryError(
                f"{call.name}: with SQLite, the arguments of a table function can't be columns of "
                "other tables"
            )
        query = _body(functions[call.name], call.arguments)
        return f"{text[: tokens[call.start].start]}({query}) as {call.alias}{text[end:]}"
    if len(call.arguments) != 1:
        raise wrong_count(call.name, 1, len(call.arguments))
    table = ID_FUNCTIONS[call.name]
    condition = f"id in (select value from json_each(_{call.name}({call.arguments[0]})))"
    if not is_joined or before is None:
        rows = f"select * from {table} where {condition}"
        if table == "flow":
            rows = _FLOWS.format(f"_{call.name}({call.arguments[0]})")
        query = f"({rows}) as {call.alias}"
        return f"{text[: tokens[call.start].start]}{query}{text[end:]}"
    head = text[: tokens[call.start].start]
    if before.text == ",":
        head = f"{text[: before.start]} join "
    joined = f"{table} as {call.alias} on {call.alias}.{condition}"
    if call.end < len(tokens) and tokens[call.end].is_word("on"):
        stop = _end_of_condition(text, tokens, call.end + 1)
        given = source(text, tokens[call.end + 1 : stop])
        rest = text[tokens[stop].start :] if stop < len(tokens) else ""
        return f"{head}{joined} and ({given}) {rest}"
    return f"{head}{joined}{text[end:]}"


def _end_of_condition(text: str, tokens: Sequence[Token], start: int) -> int:
    at = start
    while at < len(tokens):
        token = tokens[at]
        if token.text in (")", ",", ";") or token.text.lower() in _ENDS:
            return at
        at = closing(tokens, at, text) + 1 if token.text == "(" else at + 1
    return at


def _body(function: Statement, arguments: list[str]) -> str:
    if len(arguments) != len(function.parameters):
        raise wrong_count(function.name, len(function.parameters), len(arguments))
    given = {
        name: f"({argument})" for name, argument in zip(function.parameters, arguments, strict=True)
    }
    return substitute(function.text, given)
