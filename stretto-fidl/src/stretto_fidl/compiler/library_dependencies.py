"""Finds the libraries that the IR of a library refers to.

A library needs the libraries that it imports. If it composes methods of other libraries, it also
needs the libraries of these methods' payloads and of the payloads' members. Types behind an alias
or deeper in a payload add no library.
"""

from __future__ import annotations

from stretto_fidl.compiler import types
from stretto_fidl.compiler.declarations import PROTOCOL, STRUCT, LayoutDecl, ProtocolDecl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from stretto_fidl.compiler.declarations import MethodDecl
    from stretto_fidl.compiler.library import Library
    from stretto_fidl.compiler.types import TypeUse
    from stretto_fidl.compiler.values import Value


def library_dependencies(library: Library) -> list[Library]:
    """Return the libraries that `library` depends on, sorted by name."""
    found = {imported.library.name: imported.library for imported in library.all_imports()}
    for method in _methods(library):
        if method.protocol.library is not library:
            found |= {other.name: other for other in _of_method(method)}
    found.pop(library.name, None)
    return [found[name] for name in sorted(found)]


def external_structs(library: Library) -> list[LayoutDecl]:
    """Return the structs of other libraries that the methods of `library` send, sorted by name."""
    found: dict[str, LayoutDecl] = {}
    for method in _methods(library):
        for decl in _structs(method):
            if decl.library is not library:
                found[decl.full_name] = decl
    return [found[name] for name in sorted(found)]


def _methods(library: Library) -> list[MethodDecl]:
    """Return the methods of all protocols, including composed methods."""
    protocols = [p for p in library.of_kind(PROTOCOL) if isinstance(p, ProtocolDecl)]
    return [method for protocol in protocols for method, _ in protocol.all_methods]


def _structs(method: MethodDecl) -> Iterator[LayoutDecl]:
    for use in (method.request, method.response, method.success):
        decl = use.type.decl if use is not None else None
        if isinstance(decl, LayoutDecl) and decl.kind == STRUCT:
            yield decl


def _of_method(method: MethodDecl) -> Iterator[Library]:
    home = method.protocol.library
    yield home
    for use in (method.request, method.response, method.success, method.error):
        yield from _of_use(use, home)
    for struct in _structs(method):
        for member in struct.members:
            yield from _of_use(member.type, home)


def _of_use(use: TypeUse | None, home: Library) -> Iterator[Library]:
    if use is None:
        return
    yield from _of_value(use.bound, home)
    yield from _of_value(use.rights, home)
    if use.alias is not None:
        yield use.alias.decl.library
        return
    type_ = use.type
    if type_.kind == types.HANDLE and type_.resource is not None:
        yield type_.resource.library
    elif type_.protocol is not None:
        yield type_.protocol.library
    elif type_.element is not None:
        yield from _of_use(type_.element, home)
    elif type_.decl is not None:
        yield type_.decl.library


def _of_value(value: Value | None, home: Library) -> Iterator[Library]:
    """Yield the library that declares a constant, if `home` imports that library."""
    name = value.identifier.split("/")[0] if value is not None and value.identifier else ""
    yield from (i.library for i in home.all_imports() if i.library.name == name)
