"""Checks that only deprecated elements use deprecated elements.

The check covers only the compiled version, and only uses by name.
"""

from __future__ import annotations

from stretto_fidl.compiler.declarations import (
    AliasDecl,
    ConstDecl,
    Element,
    LayoutDecl,
    ProtocolDecl,
    ResourceDecl,
    ServiceDecl,
)
from stretto_fidl.compiler.syntax_tree import Identifier, Or, Reference, TypeConstructor
from stretto_fidl.errors import CompileError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from stretto_fidl.compiler.declarations import Decl
    from stretto_fidl.compiler.library import Library
    from stretto_fidl.compiler.scope import Scope
    from stretto_fidl.compiler.syntax_tree import Constant


def deprecated_uses(library: Library, scope: Scope) -> list[CompileError]:
    """Return an error for each use of a deprecated element by an element that isn't deprecated.

    Args:
        library: The compiled library.
        scope: Finds the declarations that the names in the library refer to.
    """
    if library.platform is None:
        return []
    return [
        reference.span.error(
            f"`{reference}` is deprecated, but `{element.name}`, which needs it, is not: "
            "deprecate it as well, or use something else"
        )
        for decl in library.declarations.values()
        for element, reference in _references(decl)
        if not element.deprecated and _is_deprecated(scope, reference)
    ]


def _is_deprecated(scope: Scope, reference: Reference) -> bool:
    try:
        decl = scope.declaration(reference)
        member = scope.member(reference) if decl is None else None
    except CompileError:
        # `VMO` and other names with a meaning in only one context have no declaration.
        return False
    if decl is not None:
        return decl.deprecated
    return member is not None and (member[0].deprecated or member[1].deprecated)


def _references(decl: Decl) -> Iterator[tuple[Element, Reference]]:
    if isinstance(decl, AliasDecl | ConstDecl):
        yield from ((decl, found) for found in _of_type(decl.type_syntax))
    if isinstance(decl, ConstDecl):
        yield from ((decl, found) for found in _of_constant(decl.value_syntax))
    members = {LayoutDecl: "members", ServiceDecl: "members", ResourceDecl: "properties"}
    if isinstance(decl, LayoutDecl) and decl.is_result:
        return  # Uses in a result union count as uses by the method.
    for member in getattr(decl, members.get(type(decl), ""), ()):
        yield from ((member, found) for found in _of_type(member.type_syntax))
        yield from ((member, found) for found in _of_constant(member.value_syntax))
    if isinstance(decl, ProtocolDecl):
        yield from _of_protocol(decl)


def _of_protocol(decl: ProtocolDecl) -> Iterator[tuple[Element, Reference]]:
    for composed in decl.composed:
        yield from ((composed, found) for found in _of_type(composed.reference))
    for method in decl.methods:
        response = method.response_syntax if method.success_syntax is None else None
        for syntax in (method.request_syntax, response, method.success_syntax, method.error_syntax):
            yield from ((method, found) for found in _of_type(syntax))


def _of_type(syntax: TypeConstructor | None) -> Iterator[Reference]:
    """Yield the names that a type mentions, except those in the members of a nested layout."""
    if syntax is None:
        return
    if isinstance(syntax.target, Reference):
        yield syntax.target
    for part in (*syntax.parameters, *syntax.constraints):
        if isinstance(part, TypeConstructor):
            yield from _of_type(part)
        else:
            yield from _of_constant(part)


def _of_constant(syntax: Constant | None) -> Iterator[Reference]:
    if isinstance(syntax, Identifier):
        yield syntax.reference
    elif isinstance(syntax, Or):
        for operand in syntax.operands:
            yield from _of_constant(operand)
