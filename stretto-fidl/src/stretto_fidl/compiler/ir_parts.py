"""Writes parts of the IR's declarations: places, attributes, constants, types."""

from __future__ import annotations

from typing import Any

from stretto_fidl.compiler import types
from stretto_fidl.compiler.shapes import shape_of
from stretto_fidl.compiler.syntax_tree import Identifier, Literal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto_fidl.compiler.declarations import CompiledAttribute, Element
    from stretto_fidl.compiler.source import Span
    from stretto_fidl.compiler.type_shape import TypeShape
    from stretto_fidl.compiler.types import AliasUse, Type, TypeUse
    from stretto_fidl.compiler.values import Value

Json = dict[str, Any]


def location(span: Span) -> Json:
    """Return the IR of a place in a file; columns and lengths are in bytes."""
    return {
        "filename": span.source.name,
        "line": span.line,
        "column": span.byte_column,
        "length": len(span.text.encode()),
    }


def attributes(compiled: list[CompiledAttribute]) -> Json:
    """Return the IR of attributes as an object with one key; empty if there are no attributes."""
    if not compiled:
        return {}
    return {"maybe_attributes": [_attribute(attribute) for attribute in compiled]}


def _attribute(attribute: CompiledAttribute) -> Json:
    arguments = [
        {
            "name": argument.name,
            "type": argument.type,
            "value": constant(argument.value),
            "location": location(argument.span),
        }
        for argument in attribute.arguments
    ]
    return {
        "name": attribute.name,
        "arguments": arguments,
        "location": location(attribute.span),
    }


def place(element: Element) -> Json:
    """Return the keys `location` and `deprecated` of an element."""
    return {"location": location(element.span), "deprecated": element.deprecated}


def constant(value: Value) -> Json:
    """Return the IR of a constant, with its value and its text."""
    syntax = value.syntax
    result: Json = {"kind": "binary_operator", "value": value.text, "expression": syntax.span.text}
    if isinstance(syntax, Identifier):
        result["kind"] = "identifier"
        result["identifier"] = value.identifier
    elif isinstance(syntax, Literal):
        result["kind"] = "literal"
        result["literal"] = {
            "kind": syntax.kind,
            "value": value.text,
            "expression": syntax.span.text,
        }
    return result


def shape(sizes: TypeShape) -> Json:
    """Return one key of the IR, with its value: the sizes of a type."""
    return {
        "type_shape_v2": {
            "inline_size": sizes.inline_size,
            "alignment": sizes.alignment,
            "depth": sizes.depth,
            "max_handles": sizes.max_handles,
            "max_out_of_line": sizes.max_out_of_line,
            "has_padding": sizes.has_padding,
            "has_flexible_envelope": sizes.has_flexible_envelope,
        }
    }


def type_use(use: TypeUse | None) -> Json:
    """Return the keys that the IR has for the type of a member, constant or alias.

    A type written by an alias has keys for the alias, too.
    """
    assert use is not None
    with_aliases = use.alias is None
    return {"type": type_mention(use.type, with_aliases), **_alias_use(use.alias)}


def _alias_use(alias: AliasUse | None) -> Json:
    if alias is None:
        return {}
    result: Json = {"name": alias.decl.full_name, "args": [], "nullable": alias.nullable}
    if alias.size is not None:
        result["maybe_size"] = constant(alias.size)
    if alias.rights is not None:
        result["handle_rights"] = constant(alias.rights)
    return {"experimental_maybe_from_alias": result}


def type_mention(type_: Type, with_aliases: bool = False) -> Json:
    """Return the IR of a use of a type.

    Args:
        type_: The type that is used.
        with_aliases: Whether to name the aliases of the type's elements.
    """
    kind = types.IDENTIFIER if type_.kind == types.BOX else type_.kind
    result: Json = {"kind_v2": kind}
    result |= _TYPES[type_.kind](type_, with_aliases)
    return result | shape(shape_of(type_))


def _element(type_: Type, with_aliases: bool) -> Json:
    assert type_.element is not None
    element = type_.element
    deeper = with_aliases and element.alias is None
    result: Json = {"element_type": type_mention(element.type, deeper)}
    return result | (_alias_use(element.alias) if with_aliases else {})


def _vector(type_: Type, with_aliases: bool) -> Json:
    return _element(type_, with_aliases) | _string(type_, with_aliases)


def _string(type_: Type, _: bool) -> Json:
    unbounded = type_.size in (None, types.UNBOUNDED)
    bound = {} if unbounded else {"maybe_element_count": type_.size}
    return {**bound, "nullable": type_.nullable}


def _array(type_: Type, with_aliases: bool) -> Json:
    return _element(type_, with_aliases) | {"element_count": type_.size}


def _handle(type_: Type, _: bool) -> Json:
    name = types.HANDLE_SUBTYPES.get(type_.object_type, type_.object_type_name)
    assert type_.resource is not None
    return {
        "obj_type": type_.object_type,
        "subtype": name,
        "rights": type_.rights,
        "nullable": type_.nullable,
        "resource_identifier": type_.resource.full_name,
    }


def _endpoint(type_: Type, _: bool) -> Json:
    assert type_.protocol is not None
    return {
        "role": type_.role,
        "protocol": type_.protocol.full_name,
        "nullable": type_.nullable,
        "protocol_transport": type_.protocol.transport,
    }


def _identifier(type_: Type, _: bool) -> Json:
    assert type_.decl is not None
    return {"identifier": type_.decl.full_name, "nullable": type_.nullable}


_TYPES = {
    types.PRIMITIVE: lambda type_, _: {"subtype": type_.subtype},
    types.INTERNAL: lambda type_, _: {"subtype": type_.subtype},
    types.STRING: _string,
    types.STRING_ARRAY: lambda type_, _: {"element_count": type_.size},
    types.VECTOR: _vector,
    types.ARRAY: _array,
    types.HANDLE: _handle,
    types.ENDPOINT: _endpoint,
    types.IDENTIFIER: _identifier,
    types.BOX: _identifier,
}
