"""Reads attributes from the JSON IR of current and older compilers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stretto_fidl.errors import FidlError

if TYPE_CHECKING:
    from stretto_fidl.bindings.ir_checks import IR


def attributes(ir: IR) -> dict[str, Any]:
    """Return the values of attributes by name, in snake_case.

    The value of an attribute is its argument, if the only argument is called `value`. Otherwise it
    is a dictionary of the arguments, or True if there are none. If an attribute is repeated, as
    `@trace` may be, the first one counts.
    """
    found: dict[str, Any] = {}
    for attribute in ir.get("maybe_attributes") or []:
        arguments = {
            str(argument["name"]): _literal(argument) for argument in attribute.get("arguments", [])
        }
        value: Any = arguments or str(attribute.get("value") or "") or True
        if list(arguments) == ["value"]:
            value = arguments["value"]
        name = re.sub(r"(?<!^)(?<![_A-Z])(?=[A-Z])", "_", attribute["name"]).lower()
        if name == "trace" and attribute.get("value") == "":
            # `@trace("")` switches tracing off. Other attributes have "" if they have no argument.
            value = ""
        found.setdefault(name, value)
    return found


def rpc_attributes(ir: IR) -> dict[str, Any]:
    """Return the attributes of a protocol or method, without its doc comment.

    Raises:
        FidlError: `@trace` has no category, so that nothing would be traced.
    """
    found = attributes(ir)
    found.pop("doc", None)
    if not isinstance(found.get("trace", ""), str):
        raise FidlError(f'`@trace` of {ir["name"]} takes one string: the category, or "" for none')
    return found


def _literal(argument: IR) -> str | bool:
    value = str(argument["value"]["value"])
    return value == "true" if argument.get("type") == "bool" else value
