"""The texts and names of the results of a query, read from its tokens."""

from __future__ import annotations

from stretto.analysis.sql.tokens import Token, source, split, tokenize

_ENDS = "from where group having order limit union intersect except window".split()
_OPERANDS = ("word", "quoted", "number", "string", "variable")


def result_texts(text: str) -> list[str]:
    """Return the texts of the expressions of the first select outside parentheses."""
    return [source(text, part) for part in _results(text)]


def result_names(text: str) -> list[str] | None:
    """Return the names of the results of a query, in lower case; None if they are not known.

    Args:
        text: The query, with macros expanded.
    """
    results = _results(text)
    if not results or any(part and part[-1].text == "*" for part in results):
        return None
    return [_name(text, part).lower() for part in results]


def _results(text: str) -> list[list[Token]]:
    tokens, depth, start = tokenize(text), 0, None
    for i, token in enumerate(tokens):
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and start is None and token.is_word("select"):
            start = i + 1 + (i + 1 < len(tokens) and tokens[i + 1].is_word("distinct", "all"))
        elif depth == 0 and start is not None and token.is_word("from") and _compares(tokens, i):
            continue
        elif depth == 0 and start is not None and token.is_word(*_ENDS):
            return list(split(tokens[start:i], ","))
    return list(split(tokens[start:], ",")) if start else []


def _compares(tokens: list[Token], i: int) -> bool:
    """Return whether a `from` is that of `is distinct from`."""
    before = tokens[max(i - 2, 0) : i]
    return len(before) == 2 and before[0].is_word("is", "not") and before[1].is_word("distinct")


def _name(text: str, part: list[Token]) -> str:
    """Return the alias of a result, the name of a column, or else the text."""
    last, before = part[-1], part[-2] if len(part) > 1 else None
    follows = before is None or before.text in (".", ")") or before.kind in _OPERANDS
    if last.kind in ("word", "quoted") and follows:
        return last.text.strip('"`[]')
    return source(text, part)
