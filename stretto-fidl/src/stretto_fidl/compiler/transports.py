"""Checks that protocols send only endpoints and handles that their transport can carry.

Handles of the library `fdf` belong to drivers. Every transport carries the handles of other
libraries.
"""

from __future__ import annotations

from stretto_fidl.compiler.declarations import PROTOCOL, LayoutDecl, ProtocolDecl
from stretto_fidl.compiler.graph import components
from stretto_fidl.compiler.shapes import layouts_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stretto_fidl.compiler.declarations import MethodDecl
    from stretto_fidl.compiler.library import Library

_DRIVERS = "fdf"
_CARRIES = {
    "Banjo": ("Banjo", "Channel"),
    "Channel": ("Channel",),
    "Driver": ("Channel", "Driver"),
    "Syscall": ("Channel",),
}


def check_transports(library: Library) -> None:
    """Check that no method sends types that its protocol's transport can't carry.

    Raises:
        CompileError: A method sends such a type.
    """
    protocols = [p for p in library.of_kind(PROTOCOL) if isinstance(p, ProtocolDecl)]
    methods = [method for protocol in protocols for method in protocol.methods]
    sent = _transports(layout for method in methods for layout in _payloads(method))
    for method in methods:
        carries = method.protocol.transport
        for layout in _payloads(method):
            wrong = sent[layout].difference(_CARRIES[carries])
            if wrong:
                raise method.span.error(
                    f"`{method.name}` sends an endpoint or handle of transport {min(wrong)}, "
                    f"which {carries}, the transport of its protocol, can't carry"
                )


def _payloads(method: MethodDecl) -> Iterator[LayoutDecl]:
    for use in (method.request, method.response):
        if use is not None:
            yield from layouts_in(use.type)


def _transports(roots: Iterable[LayoutDecl]) -> dict[LayoutDecl, set[str]]:
    """Return the transports that endpoints and handles in each layout need, at any depth."""
    found: dict[LayoutDecl, set[str]] = {}
    for component in components(roots, _inner):
        # Layouts that contain each other need the same transports.
        transports: set[str] = set()
        for decl in component:
            transports.update(_endpoints(decl))
            transports.update(*(found[inner] for inner in _inner(decl) if inner in found))
        found |= dict.fromkeys(component, transports)
    return found


def _inner(decl: LayoutDecl) -> list[LayoutDecl]:
    types_ = [member.type.type for member in decl.members if member.type is not None]
    return [inner for type_ in types_ for inner in layouts_in(type_)]


def _endpoints(decl: LayoutDecl) -> Iterator[str]:
    for member in decl.members:
        type_ = member.type.type if member.type is not None else None
        while type_ is not None and type_.element is not None:
            type_ = type_.element.type
        if type_ is not None and type_.protocol is not None:
            yield type_.protocol.transport
        elif type_ is not None and type_.resource is not None:
            yield from ("Driver",) if type_.resource.library.name == _DRIVERS else ()
