"""A library: the declarations and imports of its files."""

from __future__ import annotations

from itertools import count

from stretto_fidl.compiler import availability
from stretto_fidl.compiler.names import canonical

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from stretto_fidl.compiler.declarations import CompiledAttribute, Decl
    from stretto_fidl.compiler.source import Span
    from stretto_fidl.compiler.syntax_tree import Attribute


class Import:
    """An import of a library by one file."""

    __slots__ = ("library", "name", "span", "used")

    def __init__(self, library: Library, name: str, span: Span) -> None:
        self.library = library
        self.name = name
        self.span = span
        self.used = False


class Library:
    """A library, made of one or more files.

    Args:
        name: The full name, such as `fuchsia.io`.
        span: The place of the name in the first file.

    Attributes:
        availability: The availability that its attribute `@available` states.
        present: Whether the library exists in the compiled version.
        platform: The platform of the library's versions; None if it has no versions.
        lenient: Whether `find` ignores differences of spelling.
    """

    def __init__(self, name: str, span: Span) -> None:
        self.name = name
        self.span = span
        self.syntax_attributes: list[Attribute] = []
        self.attributes: list[CompiledAttribute] = []
        self.availability = availability.ALWAYS
        self.platform: str | None = None
        self.lenient = False
        self.present = True
        self.declarations: dict[str, Decl] = {}
        self.order: list[Decl] = []
        self._canonical: dict[str, Decl] = {}
        self._imports: dict[str, dict[str, Import]] = {}

    def add(self, decl: Decl) -> None:
        """Add a declaration.

        Raises:
            CompileError: The library already has a declaration with the same name.
        """
        other = self._canonical.setdefault(canonical(decl.name), decl)
        if other is not decl:
            same = "the same name as" if other.name == decl.name else "too similar a name to"
            raise decl.span.error(
                f"`{decl.name}` has {same} `{other.name}` at {other.span}: rename one of them"
            )
        self.declarations[decl.name] = decl

    def find(self, name: str) -> Decl | None:
        """Return the declaration with a name; None if there is none.

        If the library is `lenient`, the name may have another spelling.
        """
        found = self.declarations.get(name)
        if found is None and self.lenient:
            found = self._canonical.get(canonical(name))
        return found

    def of_kind(self, kind: str) -> list[Decl]:
        """Return the declarations of one kind, sorted by name."""
        found = [decl for decl in self.declarations.values() if decl.kind == kind]
        return sorted(found, key=lambda decl: decl.name)

    def import_into(self, file: str, imported: Import) -> None:
        """Add an import of one file.

        Raises:
            CompileError: The file already imports this library, or another library under this name.
        """
        imports = self._imports.setdefault(file, {})
        for other in imports.values():
            if other.library is imported.library:
                raise imported.span.error(f"library `{other.library.name}` is imported twice")
        if imported.name in imports:
            raise imported.span.error(f"another library is already imported as `{imported.name}`")
        imports[imported.name] = imported

    def imported(self, file: str, name: str) -> Import | None:
        """Return the import that `file` calls `name`; None if the file has no such import."""
        return self._imports.get(file, {}).get(name)

    def all_imports(self) -> Iterator[Import]:
        """Yield the imports of all files."""
        for imports in self._imports.values():
            yield from imports.values()


class GeneratedNames:
    """Assigns lines of the file `generated`, which does not exist, to generated members."""

    def __init__(self) -> None:
        self._lines = count(1, 4)

    def next_result(self) -> int:
        """Return the number of the first of four lines for a result union in the file `generated`.

        The lines are those of `response`, `err` and `framework_err`; the fourth line is unused.
        """
        return next(self._lines)
