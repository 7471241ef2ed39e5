"""Finds the declarations that names refer to."""

from __future__ import annotations

from stretto_fidl.compiler.declarations import Decl, LayoutDecl, Member

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto_fidl.compiler.library import Library
    from stretto_fidl.compiler.syntax_tree import Reference


class Scope:
    """Finds the declarations that the names in one library refer to.

    Args:
        library: The library in which the names are written.
    """

    def __init__(self, library: Library) -> None:
        self._library = library
        self._members: dict[LayoutDecl, dict[str, Member]] = {}

    def declaration(self, reference: Reference) -> Decl | None:
        """Return the declaration that a name refers to; None if the name is unknown or built in.

        Raises:
            CompileError: The name's library isn't imported, or the name was generated for an
                anonymous layout.
        """
        *path, name = reference.parts
        decl = self._in_library(reference, tuple(path), name)
        if isinstance(decl, LayoutDecl) and decl.anonymous:
            raise reference.span.error(
                f"`{name}` is the generated name of a layout at {decl.span}: "
                "to refer to it, give it a name by `type`"
            )
        return decl

    def member(self, reference: Reference) -> tuple[LayoutDecl, Member] | None:
        """Return the member of an enum or bits that a name refers to; None for other names.

        Raises:
            CompileError: The enum or bits has no such member.
        """
        if len(reference.parts) < 2:
            return None
        *path, owner, name = reference.parts
        decl = self._in_library(reference, tuple(path), owner)
        if decl is None:
            return None
        if not isinstance(decl, LayoutDecl) or decl.kind not in ("enum", "bits"):
            raise reference.span.error(f"`{owner}` isn't an enum or bits: it has no constants")
        member = self.member_of(decl, name)
        if member is None:
            raise reference.span.error(f"`{owner}` has no member `{name}`")
        return decl, member

    def member_of(self, decl: LayoutDecl, name: str) -> Member | None:
        """Return a declaration's member by name; None if no member has the name."""
        members = self._members.get(decl)
        if members is None:
            members = self._members[decl] = {member.name: member for member in decl.members}
        return members.get(name)

    def _in_library(self, reference: Reference, path: tuple[str, ...], name: str) -> Decl | None:
        library = self._library_named(reference, path)
        return library.find(name) if library is not None else None

    def _library_named(self, reference: Reference, path: tuple[str, ...]) -> Library | None:
        text = ".".join(path)
        if not path or text == self._library.name:
            return self._library
        imported = self._library.imported(reference.span.source.name, text)
        if imported is None:
            return None
        imported.used = True
        return imported.library
