"""Translates SQLite's operators, literals and casts."""

from __future__ import annotations

import re
from functools import reduce
from typing import cast

from sqlglot import exp

from stretto.analysis.sql.errors import refused
from stretto.analysis.sql.mixed_arguments import by_type, is_mixed
from stretto.analysis.sql.trees import call, has_aggregate, in_same_select

_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "_eq",
    exp.NEQ: "_ne",
    exp.LT: "_lt",
    exp.LTE: "_le",
    exp.GT: "_gt",
    exp.GTE: "_ge",
    exp.NullSafeEQ: "_is",
    exp.NullSafeNEQ: "_is_not",
}
COMPARISONS = frozenset({*_COMPARISONS.values(), "_like"})
"""The macros that return a truth value."""

_ARITHMETIC = (
    exp.Add,
    exp.Sub,
    exp.Mul,
    exp.Div,
    exp.BitwiseAnd,
    exp.BitwiseOr,
    exp.BitwiseLeftShift,
    exp.BitwiseRightShift,
    exp.BitwiseNot,
)
_SHIFTS: dict[type[exp.Expr], str] = {
    exp.BitwiseLeftShift: "_left_shift",
    exp.BitwiseRightShift: "_right_shift",
}
_REAL = re.compile(r"\s*[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?")
"""A real at the begin of a text."""
_WIDE_PARENTS = (*_ARITHMETIC, exp.Select, exp.Alias, exp.Tuple, exp.If, exp.Case, exp.Coalesce)
_MAX_INT = 2**63 - 1
_SETS = re.compile(r"\[(?P<other>\^?)(?P<mark>!?)(?P<rest>\]?[^]]*)\]")
"""The sets of characters in a pattern of GLOB."""
_LONGEST_LIST = 50
"""For longer lists, DuckDB's own IN is used."""


def rewrite_operator(node: exp.Expr) -> exp.Expr:
    """Return what replaces an operator, literal or cast; the node itself if it isn't replaced."""
    if type(node) in _COMPARISONS:
        return _compared(node)
    if isinstance(node, exp.Literal) and not node.is_string:
        return _number(node)
    if isinstance(node, _ARITHMETIC):
        return _arithmetic(node)
    for kind, rewritten in _REWRITERS.items():
        if isinstance(node, kind):
            return rewritten(node)
    return node


def _arithmetic(node: exp.Expr) -> exp.Expr:
    """Convert operands that are certainly text to numbers."""
    for name in ("this", "expression"):
        operand = node.args.get(name)
        operand = operand.unnest() if operand is not None else None
        if isinstance(operand, exp.DPipe):
            node.set(name, call("_real", _real_text(operand)))
        elif isinstance(operand, exp.Literal) and operand.is_string:
            macro = "_real" if _REAL.match(operand.name) else "_int"
            node.set(name, call(macro, operand.copy()))
    if isinstance(node, exp.Div):
        # With these flags, sqlglot writes a division that doesn't fit the settings of DuckDB.
        node.set("typed", None)
        node.set("safe", None)
    if isinstance(node, exp.BitwiseNot):  # In DuckDB, it comes after `+`.
        return exp.Paren(this=node.copy())
    return _shift(node)


def _real_text(node: exp.Expr) -> exp.Expr:
    """Return a text that has a real.

    Raises:
        QueryError: It may have an integer: the type of the result isn't known before it is read.
    """
    if any(not part.is_string and not part.is_int for part in node.find_all(exp.Literal)):
        return node.copy()
    raise refused("arithmetic with a text made by || (without cast)")


def _shift(node: exp.Expr) -> exp.Expr:
    """Translate a shift by what isn't known to be between 0 and 63."""
    name = _SHIFTS.get(type(node))
    bits = node.args.get("expression")
    while isinstance(bits, exp.Cast | exp.Paren):
        bits = bits.this
    if name is None or (isinstance(bits, exp.Literal) and bits.is_int and int(bits.this) < 64):
        return node
    return call(name, node.this.copy(), node.expression.copy())


def _compared(node: exp.Expr) -> exp.Expr:
    left, right = node.this, node.expression
    if isinstance(left, exp.Tuple):
        return _tuples(node)
    if has_aggregate(left, right):
        return _with_typed_texts(node)
    return _comparison(_COMPARISONS[type(node)], left, right)


def _comparison(macro: str, left: exp.Expr, right: exp.Expr) -> exp.Expr:
    if is_mixed(left):
        return by_type(left, lambda value: _comparison(macro, value, right))
    if is_mixed(right):
        return by_type(right, lambda value: _comparison(macro, left, value))
    return call(macro, left.copy(), right.copy())


def _tuples(node: exp.Expr) -> exp.Expr:
    """Translate the comparison of two rows, value by value."""
    left, right = node.this, node.expression
    if type(node) not in _ROWS or not isinstance(right, exp.Tuple):
        return node
    pairs = zip(left.expressions, right.expressions, strict=False)
    parts = [_compared(type(node)(this=a.copy(), expression=b.copy())) for a, b in pairs]
    connected = _ROWS[type(node)]
    return exp.Paren(this=reduce(lambda a, b: connected(this=a, expression=b), parts))


_NUMBERS = (exp.Sum, exp.Avg, exp.Count)
_ROWS: dict[type[exp.Expr], type[exp.Connector]] = {exp.EQ: exp.And, exp.NEQ: exp.Or}


def _with_typed_texts(node: exp.Expr) -> exp.Expr:
    """Give texts in quotes a type, so that DuckDB doesn't make numbers of them.

    Raises:
        QueryError: A number is compared with a text.
    """
    texts = [child for child in node.iter_expressions() if child.is_string]
    if texts and any(isinstance(part, _NUMBERS) for part in in_same_select(node)):
        raise refused("a comparison of a text with a sum, mean or number of rows")
    for part in texts:
        part.replace(exp.cast(part.copy(), "varchar"))
    return node


def _nullif(node: exp.Expr) -> exp.Expr:
    value, other = node.this, node.expression
    if has_aggregate(value, other):
        return _with_typed_texts(node)
    equal = _comparison("_eq", value, other)
    return exp.If(this=equal, true=exp.null(), false=value.copy())


def _between(node: exp.Expr) -> exp.Expr:
    value, low, high = node.this, node.args["low"], node.args["high"]
    if has_aggregate(value, low, high):
        return _with_typed_texts(node)
    return exp.Paren(
        this=exp.And(
            this=_comparison("_ge", value, low),
            expression=_comparison("_le", value, high),
        )
    )


def _in(node: exp.Expr) -> exp.Expr:
    values = node.expressions
    if not values and node.args.get("query") is None and not node.args.get("field"):
        return exp.false()
    if isinstance(node.this, exp.Tuple):
        return node
    if not 0 < len(values) <= _LONGEST_LIST:
        return _with_typed_texts(node)
    if any(isinstance(value, exp.Query) for value in values) or has_aggregate(node.this, *values):
        return _with_typed_texts(node)
    equal = [_comparison("_eq", node.this, value) for value in values]
    return exp.Paren(this=reduce(lambda a, b: exp.Or(this=a, expression=b), equal[1:], equal[0]))


def text(node: exp.Expr) -> exp.Expr:
    """Return an expression that converts a value to text."""
    if isinstance(node, exp.Literal) and node.is_string:
        return node.copy()
    if has_aggregate(node):
        return call("_text_of_any", node.copy())
    return call("_text", node.copy())


def _concat(node: exp.Expr) -> exp.Expr:
    node.set("this", text(node.this))
    node.set("expression", text(node.expression))
    return node


def _like(node: exp.Expr) -> exp.Expr:
    if isinstance(node.parent, exp.Escape):
        raise refused("LIKE with ESCAPE", "escape")
    found = call("_like", text(node.this), text(node.expression))
    # From version 30.20 on, sqlglot has NOT LIKE as one node.
    return exp.Paren(this=exp.Not(this=found)) if node.args.get("negate") else found


def _glob(node: exp.Expr) -> exp.Expr:
    """Write sets of other characters as DuckDB does, `[!a-z]`: SQLite writes `[^a-z]`."""
    pattern = node.expression
    if isinstance(pattern, exp.Literal):
        escaped = pattern.name.replace("\\", "\\\\")
        node.set("expression", exp.Literal.string(_SETS.sub(_set_of_duckdb, escaped)))
    else:
        old, new = exp.Literal.string("[^"), exp.Literal.string("[!")
        backslash, two = exp.Literal.string("\\"), exp.Literal.string("\\\\")
        plain = call("replace", text(pattern), backslash, two)
        node.set("expression", call("replace", plain, old, new))
    return _matched(node)


def _set_of_duckdb(found: re.Match[str]) -> str:
    other, mark, rest = found["other"], found["mark"], found["rest"]
    if other:
        return f"[!{mark}{rest}]"
    return f"[{rest}{mark}]" if rest else mark or "[]"


def _matched(node: exp.Expr) -> exp.Expr:
    node.set("this", text(node.this))
    return node


def _mod(node: exp.Expr) -> exp.Expr:
    if has_aggregate(node):
        for name in ("this", "expression"):
            part = exp.Paren(this=node.args[name].copy())
            whole = exp.Sub(this=part.copy(), expression=exp.Mod(this=part, expression=_wide(1)))
            node.set(name, exp.Paren(this=whole))
        return node
    return call("_mod", node.this.copy(), node.expression.copy())


def _case(node: exp.Expr) -> exp.Expr:
    """Turn `case x when y` into `case when x = y`."""
    operand = node.this
    if operand is None or has_aggregate(operand):
        return node
    for branch in node.args["ifs"]:
        branch.set("this", _comparison("_eq", operand, branch.this))
    node.set("this", None)
    return node


_CASTS = (
    ("_int", "INT BIGINT SMALLINT TINYINT MEDIUMINT INT128 UINT UBIGINT BOOLEAN".split()),
    ("_real", "DOUBLE FLOAT".split()),
    ("_text", "TEXT VARCHAR CHAR NVARCHAR NCHAR".split()),
    ("_blob", "BINARY VARBINARY BLOB".split()),
)


def _cast(node: exp.Expr) -> exp.Expr:
    kind = cast("exp.DataType", node.args["to"]).this.value
    for macro, kinds in _CASTS:
        if kind in kinds:
            return converted(node.this, macro)
    raise refused(f"a cast to {kind.lower()} (instead of int, real, text or blob)")


_NAMES = {"_int": "bigint", "_real": "double", "_text": "varchar", "_blob": "blob"}


def converted(value: exp.Expr, macro: str) -> exp.Expr:
    """Return an expression that converts a value by `_int`, `_real`, `_text` or `_blob`."""
    if has_aggregate(value):
        return _native_cast(value.copy(), macro)
    return call(macro, value.copy())


def _native_cast(value: exp.Expr, macro: str) -> exp.Expr:
    if macro == "_text":
        return call("_text_of_any", value)
    if macro == "_int":
        value = call("trunc", value)
    return exp.Cast(this=value, to=exp.DataType.build(_NAMES[macro]))


def _number(node: exp.Expr) -> exp.Expr:
    """Return a number as a literal of DuckDB: a double, or an integer of 64 bits."""
    digits = str(node.this)
    if not digits.isdigit():
        return exp.Literal.number(digits if "e" in digits.lower() else f"{digits}e0")
    if int(digits) > _MAX_INT:
        if int(digits) == _MAX_INT + 1 and _is_negative(node):
            return node
        return exp.Literal.number(f"{digits}e0")
    parent = node.parent
    while isinstance(parent, exp.Neg | exp.Paren):
        parent = parent.parent
    return _wide(int(digits)) if isinstance(parent, _WIDE_PARENTS) else node


def _is_negative(node: exp.Expr) -> bool:
    """Return whether there is one minus before a number."""
    parent = node.parent
    outer = parent.parent if parent is not None else None
    while isinstance(outer, exp.Paren):
        outer = outer.parent
    return isinstance(parent, exp.Neg) and not isinstance(outer, exp.Neg)


def _wide(value: int) -> exp.Expr:
    return exp.Cast(this=exp.Literal.number(str(value)), to=exp.DataType.build("bigint"))


def without_macros(tree: exp.Expr) -> None:
    """Replace the macros by DuckDB's own operators and casts.

    Some statements need this, because DuckDB can't choose the form of a macro: in a lateral join,
    it doesn't know the types of the columns that come from the tables before it.
    """
    operators = {macro: kind for kind, macro in _COMPARISONS.items()}
    for node in reversed(list(tree.find_all(exp.Anonymous))):
        name, arguments = str(node.this), [argument.copy() for argument in node.expressions]
        if name in operators:
            node.replace(
                exp.Paren(this=operators[name](this=arguments[0], expression=arguments[1]))
            )
        elif name in _NAMES:
            node.replace(_native_cast(arguments[0], name))
        elif name == "_truth":
            node.replace(exp.Paren(this=exp.NEQ(this=arguments[0], expression=_wide(0))))


_REWRITERS = {
    exp.Between: _between,
    exp.In: _in,
    exp.Nullif: _nullif,
    exp.DPipe: _concat,
    exp.Like: _like,
    exp.Glob: _glob,
    exp.RegexpLike: _matched,
    exp.Mod: _mod,
    exp.Case: _case,
    exp.Cast: _cast,
}
