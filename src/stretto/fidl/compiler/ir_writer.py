"""A compiled library as the JSON IR of fidlc: the same keys, in the same order."""

from __future__ import annotations

from typing import Any

from stretto.fidl.compiler import declarations, types
from stretto.fidl.compiler.declarations import LayoutDecl, ProtocolDecl
from stretto.fidl.compiler.shapes import shape_of
from stretto.fidl.compiler.syntax_tree import Identifier, Literal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stretto.fidl.compiler.constants import Value
    from stretto.fidl.compiler.declarations import (
        AliasDecl,
        CompiledAttribute,
        Composed,
        ConstDecl,
        Decl,
        Element,
        Member,
        MethodDecl,
        ResourceDecl,
        ServiceDecl,
    )
    from stretto.fidl.compiler.library import Library
    from stretto.fidl.compiler.shapes import TypeShape
    from stretto.fidl.compiler.source import Span
    from stretto.fidl.compiler.types import AliasUse, Type, TypeUse

Json = dict[str, Any]


def library_ir(
    library: Library, available: Mapping[str, Sequence[str]], experiments: Sequence[str]
) -> Json:
    """The IR of a library.

    Args:
        library: Compiled.
        available: The versions that were asked for, by platform.
        experiments: What the IR should name as enabled.
    """
    ir: Json = {"name": library.name, "platform": library.platform or "unversioned"}
    if available:
        ir["available"] = {platform: list(available[platform]) for platform in sorted(available)}
    ir |= _attributes(library.attributes)
    ir["experiments"] = list(experiments)
    ir["library_dependencies"] = [_dependency(other) for other in _dependencies(library)]
    for kind in declarations.KINDS:
        decls = library.of_kind(kind)
        if decls or kind != declarations.OVERLAY:
            ir[f"{kind}_declarations"] = [_WRITERS[kind](decl) for decl in decls]
        if kind == declarations.STRUCT:
            ir["external_struct_declarations"] = [_layout(d) for d in _external_structs(library)]
    ir["declaration_order"] = [decl.full_name for decl in library.order]
    ir["declarations"] = {
        decl.full_name: kind for kind in declarations.KINDS for decl in library.of_kind(kind)
    }
    return ir


def _dependencies(library: Library) -> list[Library]:
    """What it imports, and where its composed methods come from."""
    found = {imported.library.name: imported.library for imported in library.all_imports()}
    for protocol in library.of_kind(declarations.PROTOCOL):
        assert isinstance(protocol, ProtocolDecl)
        for method, _ in protocol.all_methods:
            found.setdefault(method.protocol.library.name, method.protocol.library)
    found.pop(library.name, None)
    return [found[name] for name in sorted(found)]


def _dependency(library: Library) -> Json:
    decls = [decl for kind in declarations.KINDS for decl in library.of_kind(kind)]
    return {"name": library.name, "declarations": {d.full_name: _imported(d) for d in decls}}


def _imported(decl: Decl) -> Json:
    result: Json = {"kind": decl.kind}
    if isinstance(decl, LayoutDecl):
        if decl.kind not in (declarations.ENUM, declarations.BITS):
            result["resource"] = bool(decl.resource)
        assert decl.shape is not None
        result |= _shape(decl.shape)
    return result


def _external_structs(library: Library) -> list[LayoutDecl]:
    """Structs of other libraries that this one's methods send."""
    found: dict[str, LayoutDecl] = {}
    for protocol in library.of_kind(declarations.PROTOCOL):
        assert isinstance(protocol, ProtocolDecl)
        for method, _ in protocol.all_methods:
            for use in (method.request, method.response, method.success):
                decl = use.type.decl if use is not None else None
                if not isinstance(decl, LayoutDecl) or decl.library is library:
                    continue
                if decl.kind == declarations.STRUCT:
                    found[decl.full_name] = decl
    return [found[name] for name in sorted(found)]


# Parts of all declarations.


def _location(span: Span) -> Json:
    """Columns and lengths are in bytes."""
    return {
        "filename": span.source.name,
        "line": span.line,
        "column": span.byte_column,
        "length": len(span.text.encode()),
    }


def _attributes(attributes: list[CompiledAttribute]) -> Json:
    if not attributes:
        return {}
    return {"maybe_attributes": [_attribute(attribute) for attribute in attributes]}


def _attribute(attribute: CompiledAttribute) -> Json:
    arguments = [
        {
            "name": argument.name,
            "type": argument.type,
            "value": _constant(argument.value),
            "location": _location(argument.span),
        }
        for argument in attribute.arguments
    ]
    return {
        "name": attribute.name,
        "arguments": arguments,
        "location": _location(attribute.span),
    }


def _place(element: Element) -> Json:
    return {"location": _location(element.span), "deprecated": element.deprecated}


def _constant(value: Value) -> Json:
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


def _shape(shape: TypeShape) -> Json:
    return {
        "type_shape_v2": {
            "inline_size": shape.inline_size,
            "alignment": shape.alignment,
            "depth": shape.depth,
            "max_handles": shape.max_handles,
            "max_out_of_line": shape.max_out_of_line,
            "has_padding": shape.has_padding,
            "has_flexible_envelope": shape.has_flexible_envelope,
        }
    }


# Types.


def _use(use: TypeUse | None) -> Json:
    """`type`, and the alias by which it was written."""
    assert use is not None
    with_aliases = use.alias is None
    return {"type": _type(use.type, with_aliases), **_alias_use(use.alias)}


def _alias_use(alias: AliasUse | None) -> Json:
    if alias is None:
        return {}
    result: Json = {"name": alias.decl.full_name, "args": [], "nullable": alias.nullable}
    if alias.size is not None:
        result["maybe_size"] = _constant(alias.size)
    if alias.rights is not None:
        result["handle_rights"] = _constant(alias.rights)
    return {"experimental_maybe_from_alias": result}


def _type(type_: Type, with_aliases: bool = False) -> Json:
    """Args:
    with_aliases: Name the aliases of elements.
    """
    kind = types.IDENTIFIER if type_.kind == types.BOX else type_.kind
    result: Json = {"kind_v2": kind}
    result |= _TYPES[type_.kind](type_, with_aliases)
    return result | _shape(shape_of(type_))


def _element(type_: Type, with_aliases: bool) -> Json:
    assert type_.element is not None
    element = type_.element
    deeper = with_aliases and element.alias is None
    result: Json = {"element_type": _type(element.type, deeper)}
    return result | (_alias_use(element.alias) if with_aliases else {})


def _vector(type_: Type, with_aliases: bool) -> Json:
    return _element(type_, with_aliases) | _string(type_, with_aliases)


def _string(type_: Type, _: bool) -> Json:
    bound = {} if type_.size is None else {"maybe_element_count": type_.size}
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


# Declarations.


def _head(decl: Decl) -> Json:
    return {"name": decl.full_name, **_place(decl), **_attributes(decl.attributes)}


def _layout_head(decl: LayoutDecl) -> Json:
    return {
        "name": decl.full_name,
        "naming_context": list(decl.naming_context),
        **_place(decl),
        **_attributes(decl.attributes),
    }


def _bits(decl: LayoutDecl) -> Json:
    return {
        **_layout_head(decl),
        **_use(decl.subtype),
        "mask": str(decl.mask),
        "members": [_value_member(member) for member in decl.members],
        "strict": decl.strict,
    }


def _enum(decl: LayoutDecl) -> Json:
    assert decl.subtype is not None
    result = {
        **_layout_head(decl),
        "type": decl.subtype.type.subtype,
        "members": [_value_member(member) for member in decl.members],
        "strict": decl.strict,
    }
    if not decl.strict:
        result["maybe_unknown_value"] = decl.unknown_value
    return result


def _value_member(member: Member) -> Json:
    assert member.value is not None
    value = {"value": _constant(member.value)}
    return {"name": member.name, **_place(member), **value, **_attributes(member.attributes)}


def _const(decl: ConstDecl) -> Json:
    assert decl.value is not None
    return {**_head(decl), **_use(decl.type), "value": _constant(decl.value)}


def _resource(decl: ResourceDecl) -> Json:
    properties = [
        {
            "name": member.name,
            **_place(member),
            **_attributes(member.attributes),
            **_use(member.type),
        }
        for member in decl.properties
    ]
    return {**_head(decl), **_use(decl.subtype), "properties": properties}


def _layout(decl: LayoutDecl) -> Json:
    assert decl.shape is not None
    result = {
        **_layout_head(decl),
        "members": [_MEMBERS[decl.kind](member) for member in decl.members],
    }
    if decl.kind != declarations.STRUCT:
        result["strict"] = decl.strict
    result["resource"] = bool(decl.resource)
    if decl.kind == declarations.STRUCT:
        result["is_empty_success_struct"] = decl.is_empty_success
    elif decl.kind == declarations.UNION:
        result["is_result"] = decl.is_result
    return result | _shape(decl.shape)


def _struct_member(member: Member) -> Json:
    default = {} if member.value is None else {"maybe_default_value": _constant(member.value)}
    return {
        **_use(member.type),
        "name": member.name,
        **_place(member),
        **_attributes(member.attributes),
        **default,
        "field_shape_v2": {"offset": member.offset, "padding": member.padding},
    }


def _table_member(member: Member) -> Json:
    return {
        "ordinal": member.ordinal,
        **_use(member.type),
        "name": member.name,
        **_place(member),
        **_attributes(member.attributes),
    }


def _union_member(member: Member) -> Json:
    return {
        "ordinal": member.ordinal,
        "name": member.name,
        **_use(member.type),
        **_place(member),
        **_attributes(member.attributes),
    }


_MEMBERS = {
    declarations.STRUCT: _struct_member,
    declarations.TABLE: _table_member,
    declarations.UNION: _union_member,
    declarations.OVERLAY: _union_member,
}


def _protocol(decl: ProtocolDecl) -> Json:
    return {
        **_head(decl),
        "openness": decl.openness,
        "composed_protocols": [_composed(composed) for composed in decl.composed],
        "methods": [_method(method, composed) for method, composed in decl.all_methods],
    }


def _composed(composed: Composed) -> Json:
    assert composed.protocol is not None
    name = composed.protocol.full_name
    return {"name": name, **_attributes(composed.attributes), **_place(composed)}


def _method(method: MethodDecl, is_composed: bool) -> Json:
    result: Json = {
        "kind": method.kind,
        "ordinal": method.ordinal,
        "name": method.name,
        "strict": method.strict,
        **_place(method),
        "has_request": method.has_request,
        **_attributes(method.attributes),
    }
    if method.request is not None:
        result["maybe_request_payload"] = _type(method.request.type)
    result["has_response"] = method.has_response
    if method.response is not None:
        result["maybe_response_payload"] = _type(method.response.type)
    result["is_composed"] = is_composed
    result["has_error"] = method.has_error
    if method.success is not None:
        result["maybe_response_success_type"] = _type(method.success.type)
    if method.error is not None:
        result["maybe_response_err_type"] = _type(method.error.type)
    return result


def _service(decl: ServiceDecl) -> Json:
    members = [
        {
            **_use(member.type),
            "name": member.name,
            **_place(member),
            **_attributes(member.attributes),
        }
        for member in decl.members
    ]
    return {**_head(decl), "members": members}


def _alias(decl: AliasDecl) -> Json:
    assert decl.type is not None
    constructor = {"partial_type_ctor": _partial(decl.type)}
    return {**_head(decl), **constructor, **_use(decl.type)}


def _partial(use: TypeUse) -> Json:
    is_box = use.type.kind == types.BOX
    named = use.arguments[0].type if is_box else use.type
    result: Json = {
        "name": named.text,
        "args": [] if is_box else [_partial(argument) for argument in use.arguments],
        "nullable": is_box or use.nullable,
    }
    if use.bound is not None:
        result["maybe_size"] = _constant(use.bound)
    if use.rights is not None:
        result["handle_rights"] = _constant(use.rights)
    return result


def _new_type(decl: AliasDecl) -> Json:
    return {**_head(decl), **_use(decl.type)}


_WRITERS: dict[str, Any] = {
    declarations.BITS: _bits,
    declarations.CONST: _const,
    declarations.ENUM: _enum,
    declarations.RESOURCE: _resource,
    declarations.PROTOCOL: _protocol,
    declarations.SERVICE: _service,
    declarations.STRUCT: _layout,
    declarations.TABLE: _layout,
    declarations.UNION: _layout,
    declarations.OVERLAY: _layout,
    declarations.ALIAS: _alias,
    declarations.NEW_TYPE: _new_type,
}
