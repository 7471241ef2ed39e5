"""Checks `removed` and `replaced` elements from one version to the next.

    @available(replaced=5)  1: name string:8;     the old one
    @available(added=5)     1: name string:16;    its replacement

After an element was `removed`, no element may have the removed element's name, or its place on the
wire (a value, an ordinal, an offset). After an element was `replaced`, some element must have both:
the replaced element's name (or the one stated by `renamed`) and its place on the wire. Composed
methods count as methods of the protocol.
"""

from __future__ import annotations

from stretto_fidl.compiler import availability
from stretto_fidl.compiler.declarations import (
    LayoutDecl,
    ProtocolDecl,
    ResourceDecl,
    ServiceDecl,
)
from stretto_fidl.compiler.names import with_article

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from stretto_fidl.compiler.availability import Ending
    from stretto_fidl.compiler.declarations import Decl, Element, Member, MethodDecl
    from stretto_fidl.compiler.library import Library
    from stretto_fidl.errors import CompileError

    Place = tuple[str, int] | None
    """A place on the wire: its kind (value, ordinal, offset), and its number."""
    Places = dict[str, Place]


def replacement_errors(before: Library, after: Library, version: int) -> list[CompileError]:
    """Return the errors in the elements that are removed or replaced in a version.

    Args:
        before: The library in the previous version.
        after: The same library in the version.
        version: The version.
    """
    return list(_Step(before, after, version).errors())


class _Step:
    def __init__(self, before: Library, after: Library, version: int) -> None:
        self._before = before
        self._after = after
        self._version = version

    def errors(self) -> Iterator[CompileError]:
        for decl in self._before.declarations.values():
            ending = self._ending(decl)
            if ending is not None:
                if ending.renamed is not None:
                    yield ending.span.error(
                        f"{with_article(decl.kind)} can't be `renamed`, only members can"
                    )
                yield from _check(decl, ending, self._after.declarations)
                continue
            successor = self._after.declarations.get(decl.name)
            if successor is not None and successor.span is decl.span:
                yield from self._of_members(decl, successor)

    def _ending(self, element: Element) -> Ending | None:
        """Return the ending of an element in the version that is being checked.

        Return None if the element still exists, or if only its enclosing element ends.
        """
        ending = availability.ending_of(element.syntax_attributes)
        return ending if ending is not None and ending.version == self._version else None

    def _of_members(self, decl: Decl, successor: Decl) -> Iterator[CompileError]:
        if isinstance(decl, ProtocolDecl) and isinstance(successor, ProtocolDecl):
            yield from self._of_methods(decl, successor)
            return
        place = _PLACES.get(decl.kind, _nowhere)
        after = {member.name: member for member in _members(successor)}
        stays = {member.span for member in _members(decl)}
        places = {m.name: place(m) for m in after.values() if m.span not in stays}
        for member in _members(decl):
            ending = self._ending(member)
            if ending is not None:
                yield from _check(member, ending, after, places, place(member))

    def _of_methods(self, decl: ProtocolDecl, successor: ProtocolDecl) -> Iterator[CompileError]:
        after = {method.name: method for method, _ in successor.all_methods}
        places: Places = {name: ("ordinal", method.ordinal) for name, method in after.items()}
        for method in decl.methods:
            ending = self._ending(method)
            if ending is not None:
                here = ("ordinal", method.ordinal)
                yield from _check(method, ending, after, places, here)
            elif method.name in after:
                yield from _check_strictness(method, after[method.name])
        for composed in decl.composed:
            ending = self._ending(composed)
            assert composed.protocol is not None
            names = [method.name for method, _ in composed.protocol.all_methods]
            if ending is not None and ending.word == "replaced" and not after.keys() & set(names):
                yield ending.span.error(
                    f"`{composed.name}` is `replaced`, but no method of it is there again: "
                    "write `removed`, or add what replaces it"
                )
        own = {method.name for method in decl.methods}
        for method, ending in self._leaving(decl):
            if method.name in after and method.name not in own:
                yield _still_there(method.name, ending, after[method.name])

    def _leaving(self, decl: ProtocolDecl) -> Iterator[tuple[MethodDecl, Ending]]:
        """Yield the methods that a protocol loses because some `compose` statement is removed."""
        for composed in decl.composed:
            assert composed.protocol is not None
            ending = self._ending(composed)
            if ending is not None and ending.word == "removed":
                for method, _ in composed.protocol.all_methods:
                    yield method, ending
            elif ending is None:
                for method in composed.protocol.methods:
                    ending = self._ending(method)
                    if ending is not None and ending.word == "removed":
                        yield method, ending
                yield from self._leaving(composed.protocol)


def _members(decl: Decl) -> list[Member]:
    if isinstance(decl, LayoutDecl | ServiceDecl):
        return decl.members
    return decl.properties if isinstance(decl, ResourceDecl) else []


def _check(
    element: Element,
    ending: Ending,
    after: Mapping[str, Element],
    places: Places | None = None,
    here: Place = None,
) -> Iterator[CompileError]:
    """Check an element that is removed or replaced in the next version.

    Args:
        element: The element.
        ending: The attribute that removes or replaces the element.
        after: The elements of the same parent in the next version, by name.
        places: The places on the wire of the elements that are new in the next version.
        here: The place of the element on the wire.
    """
    name = ending.renamed or element.name
    places = places or {}
    if ending.renamed == element.name:
        yield ending.span.error(f"`{name}` has this name already: remove `renamed`")
    elif ending.word == "removed" and name in after:
        yield _still_there(name, ending, after[name])
    elif ending.word == "removed" and here is not None and here in places.values():
        other = next(after[each] for each, place in places.items() if place == here)
        yield ending.span.error(
            f"`{element.name}` is `removed`, but its {here[0]} {here[1]} is used again by "
            f"`{other.name}` at {other.span}: write `replaced` and `renamed` if this is "
            f"the same thing, or give that one another {here[0]}"
        )
    elif ending.word == "replaced" and name not in after:
        yield ending.span.error(
            f"`{element.name}` is `replaced`, but there is no `{name}` "
            f"with `added={availability.version_name(ending.version)}`: "
            "add it, or write `removed`"
        )
    elif ending.word == "replaced" and here is not None and places.get(name, here) != here:
        yield ending.span.error(
            f"`{element.name}` has the {here[0]} {here[1]}, but what replaces it at "
            f"{after[name].span} has another: make them the same, or write `removed`"
        )


def _still_there(name: str, ending: Ending, successor: Element) -> CompileError:
    if ending.renamed is not None:
        return ending.span.error(
            f"`renamed` says `{name}`, but that is at {successor.span} already: choose another name"
        )
    return ending.span.error(
        f"`{name}` is `removed`, but there again at {successor.span}: "
        "write `replaced` if that one replaces it"
    )


def _check_strictness(before: MethodDecl, after: MethodDecl) -> Iterator[CompileError]:
    """Check that a method without an error stays strict or stays flexible.

    The reply of a flexible method is a union; the reply of a strict method is not.
    """
    if before.span is not after.span or before.kind != "twoway" or before.has_error:
        return
    if before.strict != after.strict:
        yield after.span.error(
            f"`{after.name}` can't change between `strict` and `flexible`: what it answers "
            "would look otherwise on the wire, as it has no error"
        )


def _nowhere(_: Member) -> Place:
    return None


def _offset(member: Member) -> Place:
    return "offset", member.offset


def _ordinal(member: Member) -> Place:
    return "ordinal", member.ordinal


def _value(member: Member) -> Place:
    return None if member.value is None else ("value", member.value.integer)


_PLACES: dict[str, Callable[[Member], Place]] = {
    "bits": _value,
    "enum": _value,
    "struct": _offset,
    "table": _ordinal,
    "union": _ordinal,
    "overlay": _ordinal,
}
