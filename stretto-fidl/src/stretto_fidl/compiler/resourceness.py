"""Checks that types that may hold handles are marked `resource`."""

from __future__ import annotations

from collections import defaultdict

from stretto_fidl.compiler import types
from stretto_fidl.compiler.declarations import LayoutDecl, ProtocolDecl
from stretto_fidl.compiler.shapes import layouts_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto_fidl.compiler.library import Library
    from stretto_fidl.compiler.types import Type


def check_resources(library: Library) -> None:
    """Check that types which may hold handles are marked `resource`.

    Types of the old syntax and the unions of results are marked here.

    Raises:
        CompileError: A type that isn't a `resource` may hold handles.
    """
    layouts = [d for d in library.declarations.values() if isinstance(d, LayoutDecl)]
    _infer(layouts)
    for decl in layouts:
        if decl.resource or decl.kind not in ("struct", "table", "union", "overlay"):
            continue
        for member in decl.members:
            if member.type is not None and is_resource(member.type.type):
                raise decl.span.error(
                    f"`{decl.name}` may hold handles, by its member `{member.name}` at "
                    f"{member.span}: write `resource {decl.kind}`"
                )


def check_no_resource(library: Library) -> None:
    """Check that protocols with `@no_resource` send no resource.

    They may compose only protocols with `@no_resource`.

    Raises:
        CompileError: A protocol breaks this rule.
    """
    for decl in library.declarations.values():
        if not isinstance(decl, ProtocolDecl) or decl.attribute("no_resource") is None:
            continue
        for composed in decl.composed:
            if composed.protocol is None or composed.protocol.attribute("no_resource") is None:
                raise composed.span.error(
                    f"`{decl.name}` is `@no_resource`, but `{composed.name}` is not: mark it, too"
                )
        for method in decl.methods:
            for use in (method.request, method.response):
                if use is not None and is_resource(use.type):
                    raise method.span.error(
                        f"`{method.name}` may send handles, but `{decl.name}` is `@no_resource`"
                    )


def is_resource(type_: Type) -> bool:
    """Return whether values of a type may hold handles."""
    while type_.element is not None:
        type_ = type_.element.type
    if type_.kind in (types.HANDLE, types.ENDPOINT):
        return True
    if type_.decl is not None and not isinstance(type_.decl, LayoutDecl):
        inner = getattr(type_.decl, "type", None)
        return inner is not None and is_resource(inner.type)
    return bool(isinstance(type_.decl, LayoutDecl) and type_.decl.resource)


def _infer(layouts: list[LayoutDecl]) -> None:
    """Mark each type that contains a handle, directly or at any depth, as a resource."""
    users: dict[int, list[LayoutDecl]] = defaultdict(list)
    undecided = [decl for decl in layouts if decl.resource is None]
    found = []
    for decl in undecided:
        for member in decl.members:
            if member.type is None:
                continue
            if is_resource(member.type.type):
                found.append(decl)
            for inner in layouts_in(member.type.type):
                users[id(inner)].append(decl)
    while found:
        decl = found.pop()
        if decl.resource is None:
            decl.resource = True
            found += users[id(decl)]
    for decl in undecided:
        decl.resource = bool(decl.resource)
