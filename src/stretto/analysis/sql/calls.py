"""Functions of SQLite and PerfettoSQL that DuckDB has under another name, or lacks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp

from stretto.analysis.sql.errors import QueryError, refused, refused_function, wrong_count
from stretto.analysis.sql.formats import Conversion, translate_format
from stretto.analysis.sql.mixed_arguments import MIXED
from stretto.analysis.sql.operators import converted, text
from stretto.analysis.sql.trees import call, call_name, has_aggregate

if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.analysis.sql.catalog import Catalog

_ABSENT = frozenset(
    "demangle hash to_ftrace cat_stacks experimental_profile stack_from_stack_profile_frame "
    "stack_from_stack_profile_callsite export_json write_file run_metric "
    "ancestor_slice_by_stack descendant_slice_by_stack experimental_slice_layout "
    "experimental_flat_slice load_extension soundex".split()
)
"""Functions that no engine has."""
_REFUSED = frozenset(
    "date time datetime julianday strftime timediff unixepoch last_insert_rowid changes random "
    "randomblob total_changes sqlite_version sqlite_source_id sqlite_compileoption_used subtype "
    "likelihood zeroblob quote".split()
)
"""Functions that only the engine sqlite has."""
_JSON = frozenset(
    "json json_array json_array_length json_error_position json_extract json_group_array "
    "json_group_object json_insert json_object json_patch json_pretty json_quote json_remove "
    "json_replace json_set json_type json_valid json_each json_tree jsonb jsonb_extract".split()
)
_COUNTS = {
    "ancestor_slice": 1,
    "descendant_slice": 1,
    "directly_connected_flow": 1,
    "extract_arg": 2,
    "following_flow": 1,
    "last_non_null": 1,
    "likely": 1,
    "percentile": 2,
    "preceding_flow": 1,
    "regexp": 2,
    "regexp_extract": 2,
    "total": 1,
    "unlikely": 1,
    "value_at_max_ts": 2,
}
"""The numbers of arguments of functions that sqlglot doesn't know, and that are rewritten."""
OWN_FUNCTIONS = _ABSENT | _REFUSED | _JSON | {"mod"}
"""Functions that sqlglot must not take for those of its own: they have another meaning."""

_RENAMED = {
    "base64_encode": "to_base64",
    "base64_decode": "from_base64",
    "str_split": "_str_split",
    "typeof": "_typeof",
    "unhex": "_unhex",
    "unicode": "_unicode",
    "mod": "_fmod",
    "pow": "_pow",
    "power": "_pow",
    "acosh": "_acosh",
    "atanh": "_atanh",
}


def rewrite_call(node: exp.Expr, catalog: Catalog) -> exp.Expr:
    """Return the expression that replaces a call; the node itself if it isn't replaced.

    Raises:
        QueryError: The function is not available, or its arguments are wrong.
    """
    if isinstance(node, exp.Column) and node.name.lower() in ("rowid", "_rowid_", "oid"):
        raise refused("the column rowid (instead of id)", node.name)
    if isinstance(node, exp.JSONExtract | exp.JSONExtractScalar):
        raise refused_function("json_extract")
    if isinstance(node, exp.CurrentDate | exp.CurrentTime | exp.CurrentTimestamp):
        raise refused_function(node.sql_name().lower())
    if isinstance(node, exp.Cast | exp.Case | exp.If) or not isinstance(node, exp.Func):
        return node
    name = call_name(node) or node.sql_name().lower()
    if name in _ABSENT:
        raise QueryError(f"the function {name} is not available", name)
    if name in _REFUSED or name in _JSON:
        raise refused_function(name)
    arguments = list(node.iter_expressions()) if not call_name(node) else node.expressions
    if len(arguments) != _COUNTS.get(name, len(arguments)):
        raise wrong_count(name, _COUNTS[name], len(arguments))
    if name == "extract_arg":
        return _extract_arg(arguments, catalog)
    if name in _RENAMED:
        return call(_RENAMED[name], *[argument.copy() for argument in arguments])
    rewritten = _REWRITERS.get(name)
    return rewritten(node, arguments) if rewritten is not None else node


def _extract_arg(arguments: list[exp.Expr], catalog: Catalog) -> exp.Expr:
    key = arguments[1].unnest()  # The value of a function's parameter is in parentheses.
    macro = catalog.arg_macro(key.name) if key.is_string else MIXED
    return call(macro, *[argument.copy() for argument in arguments])


def _first(_: exp.Expr, arguments: list[exp.Expr]) -> exp.Expr:
    return arguments[0].copy()


def _total(node: exp.Expr, arguments: list[exp.Expr]) -> exp.Expr:
    if isinstance(node.parent, exp.Window | exp.Filter):
        raise refused("total with OVER or FILTER", "total")
    summed = exp.Cast(this=exp.Sum(this=arguments[0].copy()), to=exp.DataType.build("double"))
    # A call, so that the types of operators, which have been rewritten, stay as they are.
    return call("coalesce", summed, exp.Literal.number("0e0"))


def _percentile(_: exp.Expr, arguments: list[exp.Expr]) -> exp.Expr:
    value, percent = arguments
    if not isinstance(percent, exp.Literal) or percent.is_string or float(percent.this) > 100:
        raise QueryError("the second argument of percentile must be a number from 0 to 100")
    fraction = exp.Literal.number(repr(float(percent.this) / 100) + "e0")
    return call("quantile_cont", value.copy(), fraction)


def _round(_: exp.Expr, arguments: list[exp.Expr]) -> exp.Expr:
    digits = arguments[1].copy() if len(arguments) > 1 else exp.Literal.number(0)
    return call("_round", arguments[0].copy(), digits)


_OF_ANY = ("_length", "_hex")
"""Macros that have also a form for aggregates."""


def _of_type(
    macro: str,
) -> Callable[[exp.Expr, list[exp.Expr]], exp.Expr]:
    """Return a rewriter for a function whose macro has a form for each type."""

    def rewritten(node: exp.Expr, arguments: list[exp.Expr]) -> exp.Expr:
        if has_aggregate(arguments[0]):
            return call(f"{macro}_of_any", arguments[0].copy()) if macro in _OF_ANY else node
        return call(macro, arguments[0].copy())

    return rewritten


def _cased(node: exp.Expr, arguments: list[exp.Expr]) -> exp.Expr:
    return call("_upper" if isinstance(node, exp.Upper) else "_lower", text(arguments[0]))


def _on_text(node: exp.Expr, arguments: list[exp.Expr]) -> exp.Expr:
    value = arguments[0]
    if isinstance(value, exp.Distinct):
        value.set("expressions", [text(part) for part in value.expressions])
    else:
        node.set("this", text(value))
    return node


def _group_concat(node: exp.Expr, arguments: list[exp.Expr]) -> exp.Expr:
    if isinstance(node.args.get("separator"), exp.Null):
        node.set("separator", exp.Literal.string(""))
    return _on_text(node, arguments)


def _regexp_extract(_: exp.Expr, arguments: list[exp.Expr]) -> exp.Expr:
    value, pattern = arguments[0], arguments[1]
    if not pattern.is_string:
        raise refused("regexp_extract with a pattern that is no text in quotes", "regexp_extract")
    try:
        groups = re.compile(pattern.name).groups
    except re.error as error:
        raise QueryError(f"the pattern {pattern.name!r} is wrong: {error}") from error
    if groups > 1:
        raise QueryError("the pattern of regexp_extract must have at most one group")
    found = call("regexp_extract", value.copy(), pattern.copy(), exp.Literal.number(groups))
    if groups:  # If the group matches nothing, the result is the whole match.
        whole = call("regexp_extract", value.copy(), pattern.copy(), exp.Literal.number(0))
        found = call("coalesce", call("nullif", found, exp.Literal.string("")), whole)
    matches = call("regexp_matches", value.copy(), pattern.copy())
    return call("if", matches, found, exp.null())


def _printf(_: exp.Expr, arguments: list[exp.Expr]) -> exp.Expr:
    if not arguments:
        return exp.null()
    template, *values = arguments
    if not template.is_string:
        raise refused("printf with a format that is no text in quotes", "printf")
    translated = translate_format(template.name)
    if isinstance(translated, str):
        raise refused(f"printf with {translated}", "printf")
    form, casts = translated
    if len(casts) != len(values):
        raise refused(
            f"printf with {len(values)} values where its format has {len(casts)}", "printf"
        )
    converted = [_formatted(*part) for part in zip(values, casts, strict=True)]
    return call("printf", exp.Literal.string(form), *converted)


def _formatted(value: exp.Expr, kind: Conversion) -> exp.Expr:
    """Return a value of printf; NULL is 0 or an empty text."""
    result = converted(value, kind.macro)
    nothing = exp.Literal.string("") if kind.macro == "_text" else exp.Literal.number(0)
    result = call("coalesce", result, nothing)
    if kind.digits is None:
        return result
    return call("_half_up", result, exp.Literal.number(kind.digits))


def _char(_: exp.Expr, arguments: list[exp.Expr]) -> exp.Expr:
    """Make a text of the numbers of its characters."""
    integer = exp.DataType.build("int")
    numbers = [converted(part, "_int") for part in arguments]
    characters = [call("chr", exp.Cast(this=part, to=integer)) for part in numbers]
    return call("concat", *characters)


def _joined(node: exp.Expr, arguments: list[exp.Expr]) -> exp.Expr:
    """Convert the arguments of `concat` and `concat_ws` to text."""
    for part in list(arguments):
        if not part.is_string:
            part.replace(text(part))
    return node


def _regexp(_: exp.Expr, arguments: list[exp.Expr]) -> exp.Expr:
    pattern, value = arguments
    return exp.Cast(
        this=call("regexp_matches", text(value), text(pattern)), to=exp.DataType.build("bigint")
    )


def _flame_graph(node: exp.Expr, arguments: list[exp.Expr]) -> exp.Expr:
    if arguments and arguments[0].is_string and arguments[0].name == "graph":
        return node
    raise QueryError("experimental_flamegraph: only 'graph' is available")


def _last_non_null(node: exp.Expr, arguments: list[exp.Expr]) -> exp.Expr:
    if not isinstance(node.parent, exp.Window | exp.Filter):
        raise refused("last_non_null without OVER", "last_non_null")
    return exp.IgnoreNulls(this=exp.LastValue(this=arguments[0].copy()))


def _value_at_max_ts(_: exp.Expr, arguments: list[exp.Expr]) -> exp.Expr:
    return call("arg_max", arguments[1].copy(), arguments[0].copy())


def _slices_of_one(node: exp.Expr, arguments: list[exp.Expr]) -> exp.Expr:
    """Return the macro for one known slice: it is faster, but not for each row of a join."""
    table = node.parent
    if not arguments[0].is_int or not isinstance(table, exp.Table):
        return node
    name = call_name(node)
    if not table.alias:
        table.set("alias", exp.TableAlias(this=exp.to_identifier(name)))
    return call(f"_{name}", arguments[0].copy())


_REWRITERS: dict[str, Callable[[exp.Expr, list[exp.Expr]], exp.Expr]] = {
    "likely": _first,
    "unlikely": _first,
    "total": _total,
    "percentile": _percentile,
    "round": _round,
    **{name: _of_type(f"_{name}") for name in ("exp", "ln", "sqrt", "ceil", "floor")},
    "length": _of_type("_length"),
    "hex": _of_type("_hex"),
    "lower": _cased,
    "upper": _cased,
    "substring": _on_text,
    "group_concat": _group_concat,
    "regexp_extract": _regexp_extract,
    "concat": _joined,
    "concat_ws": _joined,
    "regexp": _regexp,
    "chr": _char,
    "char": _char,
    "printf": _printf,
    "format": _printf,
    "experimental_flamegraph": _flame_graph,
    "last_non_null": _last_non_null,
    "value_at_max_ts": _value_at_max_ts,
    "ancestor_slice": _slices_of_one,
    "descendant_slice": _slices_of_one,
}
