"""The order of declarations in the IR: each after the declarations that it needs.

A declaration doesn't need the types of its optional members, so a type may contain itself as an
optional member. Nor does a declaration need the protocols of its endpoints: messages contain only
the ends of channels.
"""

from __future__ import annotations

from itertools import pairwise

from stretto_fidl.compiler import types
from stretto_fidl.compiler.declarations import (
    ALIAS,
    STRUCT,
    TABLE,
    UNION,
    AliasDecl,
    ConstDecl,
    LayoutDecl,
    ProtocolDecl,
    ResourceDecl,
    ServiceDecl,
)
from stretto_fidl.compiler.graph import Cycle, post_order
from stretto_fidl.compiler.syntax_tree import Identifier, Or

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from stretto_fidl.compiler.declarations import Decl
    from stretto_fidl.compiler.library import Library
    from stretto_fidl.compiler.scope import Scope
    from stretto_fidl.compiler.syntax_tree import Constant
    from stretto_fidl.compiler.types import Type, TypeUse
    from stretto_fidl.compiler.values import Value


class Dependencies:
    """Finds the declarations on which the declarations of one library depend.

    Args:
        library: The compiled library.
        scope: Finds the declarations that the names in the library refer to.
    """

    def __init__(self, library: Library, scope: Scope) -> None:
        self._library = library
        self._scope = scope

    def order(self) -> list[Decl]:
        """Return all declarations, each after those that it needs.

        Raises:
            CompileError: Two declarations need each other.
        """
        by_name = sorted(self._library.declarations.values(), key=lambda decl: decl.name)
        try:
            return post_order(by_name, self._needs)
        except Cycle as cycle:
            path = " -> ".join(decl.name for decl in cycle.path)
            raise cycle.path[0].span.error(
                f"these declarations contain each other: {path}; {_cycle_advice(cycle.path)}"
            ) from None

    def _needs(self, decl: Decl) -> list[Decl]:
        return [need for need in self._of(decl) if need.library is self._library]

    def _of(self, decl: Decl) -> Iterator[Decl]:
        for attribute in decl.attributes:
            for argument in attribute.arguments:
                yield from self._of_value(argument.value)
        if isinstance(decl, LayoutDecl):
            yield from self._of_use(decl.subtype)
            for member in decl.members:
                yield from self._of_use(member.type)
                yield from self._of_value(member.value)
        elif isinstance(decl, ConstDecl):
            yield from self._of_use(decl.type)
            yield from self._of_value(decl.value)
        elif isinstance(decl, AliasDecl):
            yield from self._of_use(decl.type)
        elif isinstance(decl, ResourceDecl):
            yield from self._of_use(decl.subtype)
            for property_ in decl.properties:
                yield from self._of_use(property_.type)
        elif isinstance(decl, ServiceDecl):
            for member in decl.members:
                yield from self._of_use(member.type)
        elif isinstance(decl, ProtocolDecl):
            yield from self._of_protocol(decl)

    def _of_protocol(self, decl: ProtocolDecl) -> Iterator[Decl]:
        for composed in decl.composed:
            if composed.protocol is not None:
                yield composed.protocol
        for method in decl.methods:
            yield from self._of_use(method.request)
            if method.success is None:
                yield from self._of_use(method.response)
            yield from self._of_use(method.success)
            yield from self._of_use(method.error)
            yield from self._of_use(method.response)

    def _of_use(self, use: TypeUse | None) -> Iterator[Decl]:
        if use is None or use.type.nullable:
            return
        if use.alias is not None:
            yield use.alias.decl
            return
        yield from self._of_value(use.bound)
        yield from self._of_value(use.rights)
        yield from self._of_type(use.type)

    def _of_type(self, type_: Type) -> Iterator[Decl]:
        if type_.kind == types.HANDLE and type_.resource is not None:
            yield type_.resource
        elif type_.element is not None:
            yield from self._of_use(type_.element)
        elif type_.decl is not None:
            yield type_.decl

    def _of_value(self, value: Value | None) -> Iterator[Decl]:
        if value is not None:
            yield from self._of_constant(value.syntax)

    def _of_constant(self, constant: Constant) -> Iterator[Decl]:
        if isinstance(constant, Or):
            for operand in constant.operands:
                yield from self._of_constant(operand)
        elif isinstance(constant, Identifier):
            decl = self._scope.declaration(constant.reference)
            if decl is not None:
                yield decl
                return
            member = self._scope.member(constant.reference)
            if member is not None:
                yield member[0]


def _cycle_advice(path: list[Decl]) -> str:
    """Return advice for declarations that contain each other: make a struct's member optional."""
    old = any(isinstance(decl, LayoutDecl) and decl.old for decl in path)
    for index, (owner, used) in enumerate(pairwise(path)):
        if owner.kind == STRUCT:
            onwards = (*path[index + 1 :], *path[1:])
            kind = next(decl.kind for decl in onwards if decl.kind != ALIAS)
            name = f"vector<{used.name}>" if kind == TABLE else used.name
            plain = f"box<{name}>" if kind == STRUCT else f"{name}:optional"
            aside = ", as a table by itself can't be optional" if kind == TABLE else ""
            return f"in struct `{owner.name}` make it `{f'{name}?' if old else plain}`{aside}"
    if any(decl.kind in (TABLE, UNION) for decl in path):
        gap = "has a `?`" if old else "is `box<…>` or `optional`"
        return (
            "members of tables and unions can't be optional: put a struct between, with a member "
            f"whose type {gap}"
        )
    return "a type can't be made of itself"
