"""Compiles libraries, each in one version of its platform."""

from __future__ import annotations

from stretto_fidl.compiler import availability, zx_library
from stretto_fidl.compiler.compiler import LibraryCompiler
from stretto_fidl.compiler.consume import Consumer
from stretto_fidl.compiler.declarations import ResourceDecl
from stretto_fidl.compiler.library import GeneratedNames, Import, Library
from stretto_fidl.compiler.names import canonical

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from stretto_fidl.compiler.syntax_tree import File

ZX = "zx"


class Build:
    """Compiles libraries, each in one version of its platform.

    Args:
        files: The parsed files of each library, by the name of the library.
        versions: The version to compile for each platform; HEAD for a platform that isn't listed.

    Attributes:
        libraries: The compiled libraries, by name.
        versions: The versions by platform.
    """

    def __init__(self, files: Mapping[str, list[File]], versions: Mapping[str, int]) -> None:
        self.libraries: dict[str, Library] = {}
        self.versions = versions
        self._files = files
        self._names = GeneratedNames()

    def compile(self, name: str) -> Library:
        """Compile a library. The libraries that it uses must have been compiled before.

        Raises:
            CompileError: The library is wrong.
        """
        files = self._files[name]
        library = self._empty(name, files)
        for file in files:
            self._import(library, file)
        version = self.version_of(library)
        library.present = library.availability.at(version)
        consumer = Consumer(library, version, self._names)
        for file in files:
            consumer.consume(file)
        _check_import_names(library)
        LibraryCompiler(library, self._builtin_handle()).compile()
        self.libraries[name] = library
        return library

    def version_of(self, library: Library) -> int:
        """Return the version in which a library is compiled."""
        return self.versions.get(library.platform or "", availability.HEAD)

    def _empty(self, name: str, files: list[File]) -> Library:
        library = Library(name, files[0].span)
        library.lenient = files[0].span.source.text is zx_library.TEXT
        for file in files:
            library.syntax_attributes += file.attributes
        attribute = availability.find(library.syntax_attributes)
        library.platform = availability.platform_of(name, attribute)
        if attribute is not None:
            library.availability = availability.read(
                attribute, availability.ALWAYS, is_library=True
            )
        return library

    def _import(self, library: Library, file: File) -> None:
        for using in file.using:
            other = self.libraries[using.library]
            imported = Import(other, using.alias or using.library, using.span)
            library.import_into(file.span.source.name, imported)

    def _builtin_handle(self) -> ResourceDecl | None:
        zx = self.libraries.get(ZX)
        if zx is None:
            return None
        decl = zx.find("handle") or zx.find("Handle")
        return decl if isinstance(decl, ResourceDecl) else None


def _check_import_names(library: Library) -> None:
    names = {canonical(name): decl for name, decl in library.declarations.items()}
    for imported in library.all_imports():
        decl = names.get(canonical(imported.name))
        if decl is not None:
            raise decl.span.error(
                f"`{decl.name}` is also the name of an imported library: "
                "import it under another name by `as`"
            )
