"""Writes FIDL types as Python expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto_fidl.codec import types

if TYPE_CHECKING:
    from collections.abc import Sequence


def type_expression(type_: types.Type) -> str:
    """Return the Python expression for a use of a type."""
    match type_:
        case types.Primitive():
            return f"_t.{type_.name.upper()}"
        case types.Array():
            return f"_t.Array({type_expression(type_.element)}, {type_.count})"
        case types.StringArray():
            return f"_t.StringArray({type_.count})"
        case types.Enum():
            assert type_ is types.FRAMEWORK_ERROR, "other enums are mentioned by their names"
            return "_t.FRAMEWORK_ERROR"
    function, arguments = _maybe_optional(type_)
    arguments += ["optional=True"] if getattr(type_, "optional", False) else []
    return f"{function}({', '.join(arguments)})"


def _maybe_optional(type_: types.Type) -> tuple[str, list[str]]:
    """Return two texts: the name of the function that makes a type, and the call's arguments."""
    match type_:
        case types.String():
            return "_t.String", _bound(type_)
        case types.Vector():
            return "_t.Vector", [type_expression(type_.element), *_bound(type_)]
        case types.Endpoint():
            return "_t.Endpoint", [repr(type_.role), repr(type_.protocol)]
        case types.HandleType():
            return "_t.HandleType", [str(type_.object_type), hex(type_.rights)]
        case types.Reference():
            return "FIDL_LIBRARY.ref", [repr(type_.name)]
    raise TypeError(f"no expression for {type_!r}")


def _bound(type_: types.String | types.Vector) -> list[str]:
    return [] if type_.bound == types.UNBOUNDED else [f"bound={type_.bound}"]


def call(function: str, arguments: Sequence[str]) -> str:
    """Return the text of a call; a long call has one argument on each line.

    Args:
        function: The name of the function.
        arguments: The expressions of the arguments.
    """
    line = f"{function}({', '.join(arguments)})"
    if len(line) < 80 and "\n" not in line:
        return line
    lines = "".join(f"    {argument},\n".replace("\n", "\n    ")[:-4] for argument in arguments)
    return f"{function}(\n{lines})"
