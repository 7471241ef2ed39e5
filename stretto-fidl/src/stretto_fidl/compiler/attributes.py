"""Checks attributes: their names, their arguments, and the elements that have them.

An attribute with an unknown name may have strings and bools as arguments, and is copied to the IR.
Fuchsia's compiler doesn't know `@trace` and `@sensitive`, so it reports no mistake in them. This
compiler checks both, and refuses names that look like misspellings of the two (see `sensitive`).
Only `@trace` may be repeated: the first one names the category, and the IR has all of them.
"""

from __future__ import annotations

import re

from stretto_fidl.compiler.availability import parse_version
from stretto_fidl.compiler.declarations import Argument, CompiledAttribute
from stretto_fidl.compiler.names import canonical, with_article
from stretto_fidl.compiler.sensitive import SENSITIVE, intended_attribute
from stretto_fidl.compiler.syntax_tree import Attribute, AttributeArgument, Identifier, Literal
from stretto_fidl.compiler.values import Value
from stretto_fidl.ordinals import is_selector

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto_fidl.compiler.constants import Evaluator
    from stretto_fidl.errors import CompileError

TRANSPORTS = ("Banjo", "Channel", "Driver", "Syscall")
REPEATABLE = ("trace",)
_DISCOVERABLE = re.compile(r"[a-z][a-z0-9]*(\.[a-z][a-z0-9]*)*\.[A-Z][a-zA-Z0-9]*")
_STRING, _VERSION = "string", "version"


class Schema:
    """What the compiler accepts as the arguments and the place of an attribute.

    Attributes:
        arguments: The types of the arguments by name.
        required: Whether the attribute needs exactly one argument, with any name or without a name.
        places: The kinds of elements that may have the attribute; empty if all may.
    """

    __slots__ = ("arguments", "places", "required")

    def __init__(
        self, *places: str, arguments: dict[str, str] | None = None, required: bool = False
    ) -> None:
        self.places = places
        self.arguments = arguments or {}
        self.required = required


_ONE_STRING = {"value": _STRING}
_SCHEMAS = {
    "available": Schema(
        arguments={
            "platform": _STRING,
            "added": _VERSION,
            "deprecated": _VERSION,
            "removed": _VERSION,
            "replaced": _VERSION,
            "renamed": _STRING,
            "note": _STRING,
        }
    ),
    "discoverable": Schema(
        "protocol", arguments={"name": _STRING, "client": _STRING, "server": _STRING}
    ),
    "doc": Schema(arguments=_ONE_STRING, required=True),
    "generated_name": Schema("anonymous layout", arguments=_ONE_STRING, required=True),
    "no_resource": Schema("protocol"),
    "selector": Schema("method", arguments=_ONE_STRING, required=True),
    "sensitive": Schema(
        "library",
        "alias",
        "new_type",
        "bits",
        "enum",
        "struct",
        "table",
        "union",
        "anonymous layout",
        "struct member",
        "table member",
        "union member",
        "protocol",
        "method",
    ),
    "serializable": Schema(
        "struct", "table", "union", arguments={"read": _STRING, "write": _STRING}
    ),
    "trace": Schema("protocol", "method", arguments=_ONE_STRING, required=True),
    "transport": Schema("protocol", arguments=_ONE_STRING, required=True),
    "unknown": Schema("enum member"),
}


def compile_attributes(
    attributes: list[Attribute], place: str, evaluator: Evaluator
) -> list[CompiledAttribute]:
    """Check attributes and evaluate their arguments.

    Args:
        attributes: The attributes of one element.
        place: The kind of the element: a kind of declaration, `X member`, `method`…
        evaluator: Evaluates the constants of the library.

    Raises:
        CompileError: An attribute is wrong.
    """
    seen: dict[str, Attribute] = {}
    for attribute in attributes:
        other = seen.setdefault(canonical(attribute.name), attribute)
        if other is not attribute and attribute.name not in REPEATABLE:
            raise attribute.span.error(
                f"attribute `{attribute.name}` stands here twice; the first is at {other.span}"
            )
    if place == "library":
        _check_literals(attributes)
    return [_compile(attribute, place, evaluator) for attribute in attributes]


def _check_literals(attributes: list[Attribute]) -> None:
    """Check that a library's attributes have only literals as arguments, and no names."""
    for attribute in attributes:
        for argument in attribute.arguments:
            if isinstance(argument.value, Identifier) and attribute.name != "available":
                raise argument.span.error("a library's attributes take literals, no constants")


def _compile(attribute: Attribute, place: str, evaluator: Evaluator) -> CompiledAttribute:
    schema = _SCHEMAS.get(attribute.name)
    if schema is not None:
        _check_place(attribute, schema, place)
    elif near := intended_attribute(attribute.name):
        raise attribute.span.error(
            f"`@{attribute.name}` would say nothing: write `@{near}`, or take another name "
            "for an attribute of your own"
        )
    arguments = [_argument(attribute, a, schema, evaluator) for a in attribute.arguments]
    if schema is not None and schema.required and not arguments:
        raise attribute.span.error(f"`@{attribute.name}` needs its argument: a string")
    names: set[str] = set()
    for argument in arguments:
        if canonical(argument.name) in names:
            raise argument.span.error(f"argument `{argument.name}` is given twice")
        names.add(canonical(argument.name))
    compiled = CompiledAttribute(attribute.name, arguments, attribute.span)
    _check_values(compiled)
    return compiled


def _check_place(attribute: Attribute, schema: Schema, place: str) -> None:
    if attribute.name == "available" and place == "anonymous layout":
        raise attribute.span.error("`@available` can't stand on a layout within another one")
    fits = place in schema.places or (place == "anonymous layout" and "struct" in schema.places)
    if schema.places and not fits:
        where = "a type, member, method or protocol"
        if attribute.name != SENSITIVE:
            where = " or ".join(schema.places)
        raise attribute.span.error(
            f"`@{attribute.name}` stands on {where}, not on {with_article(place)}"
        )


def _argument(
    attribute: Attribute,
    argument: AttributeArgument,
    schema: Schema | None,
    evaluator: Evaluator,
) -> Argument:
    if schema is None:
        value = evaluator.evaluate_untyped(argument.value)
        return Argument(argument.name or "value", value.type, value, argument.span)
    name = _name(attribute, argument, schema)
    if schema.arguments[name] == _VERSION:
        value = _version(argument)
    else:
        value = evaluator.evaluate_untyped(argument.value)
        if value.type != "string":
            raise argument.span.error(f"argument `{name}` must be a string")
    return Argument(name, value.type, value, argument.span)


def _name(attribute: Attribute, argument: AttributeArgument, schema: Schema) -> str:
    known = list(schema.arguments)
    if not known:
        raise argument.span.error(f"`@{attribute.name}` takes no arguments")
    if argument.name is None:
        if attribute.name == "available":
            raise argument.span.error("arguments of `@available` have names, such as `added=1`")
        return known[0]
    if argument.name not in known or known == ["value"]:
        raise argument.span.error(f"`@{attribute.name}` has no argument `{argument.name}`")
    return argument.name


def _version(argument: AttributeArgument) -> Value:
    """Return an attribute's argument as a version, which `availability` has already checked."""
    value = argument.value
    assert isinstance(value, Identifier | Literal)
    if isinstance(value, Literal):
        return Value(value, parse_version(value.text) or 0, "uint32")
    text = str(value.reference)
    return Value(value, parse_version(text) or 0, "uint32", f"fidl/{text}")


def _check_values(attribute: CompiledAttribute) -> None:
    check = _CHECKS.get(attribute.name)
    if check is not None:
        check(attribute)


def _check_transport(attribute: CompiledAttribute) -> None:
    if attribute.text() not in TRANSPORTS:
        raise _wrong(attribute, f"no transport: there are {', '.join(TRANSPORTS)}")


def _check_selector(attribute: CompiledAttribute) -> None:
    if not is_selector(attribute.text() or ""):
        raise _wrong(attribute, "no selector: use a method's name, or `library/Protocol.Method`")


def _check_discoverable(attribute: CompiledAttribute) -> None:
    name = attribute.text("name")
    if name is not None and not _DISCOVERABLE.fullmatch(name):
        raise _wrong(attribute, "not of the form `the.library.Protocol`")
    for role in ("client", "server"):
        places = attribute.text(role)
        if places and not {p.strip() for p in places.split(",")} <= {
            "platform",
            "external",
        }:
            raise _wrong(attribute, f"not `platform` or `external`, which is what {role} takes")


def _wrong(attribute: CompiledAttribute, reason: str) -> CompileError:
    argument = attribute.arguments[0]
    return argument.span.error(f"{argument.value.syntax.span.text} is {reason}")


_CHECKS = {
    "transport": _check_transport,
    "selector": _check_selector,
    "discoverable": _check_discoverable,
}
