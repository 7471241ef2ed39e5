"""Writes a compiled library as the JSON IR of fidlc: the same keys, in the same order."""

from __future__ import annotations

from typing import Any

from stretto_fidl.compiler import declarations, types
from stretto_fidl.compiler.declarations import LayoutDecl, ProtocolDecl
from stretto_fidl.compiler.ir_parts import (
    Json,
    attributes,
    constant,
    place,
    shape,
    type_mention,
    type_use,
)
from stretto_fidl.compiler.library_dependencies import external_structs, library_dependencies
from stretto_fidl.compiler.sensitive import marked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stretto_fidl.compiler.declarations import (
        AliasDecl,
        Composed,
        ConstDecl,
        Decl,
        Member,
        MethodDecl,
        ResourceDecl,
        ServiceDecl,
    )
    from stretto_fidl.compiler.library import Library
    from stretto_fidl.compiler.types import TypeUse


def library_ir(
    library: Library, available: Mapping[str, Sequence[str]], experiments: Sequence[str]
) -> Json:
    """Return the IR of a library.

    Args:
        library: The compiled library.
        available: The requested versions by platform.
        experiments: The names of experiments to list as enabled.
    """
    ir: Json = {"name": library.name, "platform": library.platform or "unversioned"}
    if available:
        ir["available"] = {platform: list(available[platform]) for platform in sorted(available)}
    ir |= attributes(library.attributes)
    ir["experiments"] = list(experiments)
    ir["library_dependencies"] = [_dependency(other) for other in library_dependencies(library)]
    for kind in declarations.KINDS:
        decls = library.of_kind(kind)
        if decls or kind != declarations.OVERLAY:
            ir[f"{kind}_declarations"] = [_WRITERS[kind](decl) for decl in decls]
        if kind == declarations.STRUCT:
            ir["external_struct_declarations"] = [_layout(d) for d in external_structs(library)]
    ir["declaration_order"] = [decl.full_name for decl in library.order]
    ir["declarations"] = {
        decl.full_name: kind for kind in declarations.KINDS for decl in library.of_kind(kind)
    }
    return ir


def _dependency(library: Library) -> Json:
    decls = [decl for kind in declarations.KINDS for decl in library.of_kind(kind)]
    return {"name": library.name, "declarations": {d.full_name: _imported(d) for d in decls}}


def _imported(decl: Decl) -> Json:
    result: Json = {"kind": decl.kind}
    if isinstance(decl, LayoutDecl):
        if decl.kind not in (declarations.ENUM, declarations.BITS):
            result["resource"] = bool(decl.resource)
        assert decl.shape is not None
        result |= shape(decl.shape)
    return result


def _head(decl: Decl) -> Json:
    return {"name": decl.full_name, **place(decl), **attributes(marked(decl))}


def _layout_head(decl: LayoutDecl) -> Json:
    return {
        "name": decl.full_name,
        "naming_context": list(decl.naming_context),
        **place(decl),
        **attributes(marked(decl)),
    }


def _bits(decl: LayoutDecl) -> Json:
    return {
        **_layout_head(decl),
        **type_use(decl.subtype),
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
    value = {"value": constant(member.value)}
    return {"name": member.name, **place(member), **value, **attributes(member.attributes)}


def _const(decl: ConstDecl) -> Json:
    assert decl.value is not None
    return {**_head(decl), **type_use(decl.type), "value": constant(decl.value)}


def _resource(decl: ResourceDecl) -> Json:
    properties = [
        {
            "name": member.name,
            **place(member),
            **attributes(member.attributes),
            **type_use(member.type),
        }
        for member in decl.properties
    ]
    return {**_head(decl), **type_use(decl.subtype), "properties": properties}


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
    return result | shape(decl.shape)


def _struct_member(member: Member) -> Json:
    default = {} if member.value is None else {"maybe_default_value": constant(member.value)}
    return {
        **type_use(member.type),
        "name": member.name,
        **place(member),
        **attributes(marked(member, member.type)),
        **default,
        "field_shape_v2": {"offset": member.offset, "padding": member.padding},
    }


def _table_member(member: Member) -> Json:
    return {
        "ordinal": member.ordinal,
        **type_use(member.type),
        "name": member.name,
        **place(member),
        **attributes(marked(member, member.type)),
    }


def _union_member(member: Member) -> Json:
    return {
        "ordinal": member.ordinal,
        "name": member.name,
        **type_use(member.type),
        **place(member),
        **attributes(marked(member, member.type)),
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
    return {"name": name, **attributes(composed.attributes), **place(composed)}


def _method(method: MethodDecl, is_composed: bool) -> Json:
    result: Json = {
        "kind": method.kind,
        "ordinal": method.ordinal,
        "name": method.name,
        "strict": method.strict,
        **place(method),
        "has_request": method.has_request,
        **attributes(marked(method, method.request, method.response)),
    }
    if method.request is not None:
        result["maybe_request_payload"] = type_mention(method.request.type)
    result["has_response"] = method.has_response
    if method.response is not None:
        result["maybe_response_payload"] = type_mention(method.response.type)
    result["is_composed"] = is_composed
    result["has_error"] = method.has_error
    if method.success is not None:
        result["maybe_response_success_type"] = type_mention(method.success.type)
    if method.error is not None:
        result["maybe_response_err_type"] = type_mention(method.error.type)
    return result


def _service(decl: ServiceDecl) -> Json:
    members = [
        {
            **type_use(member.type),
            "name": member.name,
            **place(member),
            **attributes(member.attributes),
        }
        for member in decl.members
    ]
    return {**_head(decl), "members": members}


def _alias(decl: AliasDecl) -> Json:
    assert decl.type is not None
    constructor = {"partial_type_ctor": _partial(decl.type)}
    return {**_head(decl), **constructor, **type_use(decl.type)}


def _partial(use: TypeUse) -> Json:
    is_box = use.type.kind == types.BOX
    named = use.arguments[0].type if is_box else use.type
    result: Json = {
        "name": named.text,
        "args": [] if is_box else [_partial(argument) for argument in use.arguments],
        "nullable": is_box or use.nullable,
    }
    if use.bound is not None:
        result["maybe_size"] = constant(use.bound)
    if use.rights is not None:
        result["handle_rights"] = constant(use.rights)
    return result


def _new_type(decl: AliasDecl) -> Json:
    return {**_head(decl), **type_use(decl.type)}


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
