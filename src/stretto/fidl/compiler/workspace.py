"""From sources to IR: which file belongs to which library, and which comes first."""

from __future__ import annotations

from stretto.fidl.compiler import availability, zx_library
from stretto.fidl.compiler.compiler import LibraryCompiler
from stretto.fidl.compiler.consume import Consumer
from stretto.fidl.compiler.declarations import ResourceDecl
from stretto.fidl.compiler.graph import Cycle, post_order
from stretto.fidl.compiler.ir_writer import library_ir
from stretto.fidl.compiler.library import GeneratedNames, Import, Library
from stretto.fidl.compiler.names import canonical
from stretto.fidl.compiler.parser import parse
from stretto.fidl.compiler.source import SourceFile
from stretto.fidl.errors import CompileError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stretto.fidl.compiler.ir_parts import Json
    from stretto.fidl.compiler.syntax_tree import File

ZX = "zx"


class Workspace:
    """All libraries of one run.

    Args:
        versions: By platform: a number, `NEXT` or `HEAD`; HEAD where it has none.
    """

    def __init__(self, versions: Mapping[str, str]) -> None:
        self._asked = versions
        self._versions = {platform: _version(text) for platform, text in versions.items()}
        self._files: dict[str, list[File]] = {}
        self._libraries: dict[str, Library] = {}
        self._names = GeneratedNames()

    def add(self, sources: Iterable[SourceFile]) -> list[str]:
        """Parse files, and return the names of their libraries, each once.

        Raises:
            CompileError: One can't be parsed; it has the errors of the others, too.
        """
        names: dict[str, None] = {}
        errors = []
        for source in sources:
            try:
                file = parse(source)
            except CompileError as error:
                errors.append(error)
                continue
            self._files.setdefault(file.library, []).append(file)
            names[file.library] = None
        if errors:
            errors[0].errors = errors
            raise errors[0]
        return list(names)

    def compile(self, name: str) -> Library:
        """Compile a library and all that it needs.

        Raises:
            CompileError: Something is wrong.
        """
        if ZX not in self._files:
            self.add([SourceFile(zx_library.FILENAME, zx_library.TEXT)])
        try:
            order = post_order([ZX, name], self._uses)
        except Cycle as cycle:
            file = self._files[str(cycle.path[0])][0]
            raise file.span.error(
                f"these libraries need each other: {' -> '.join(cycle.path)}"
            ) from None
        for each in order:
            if each not in self._libraries:
                self._libraries[each] = self._compile(each)
        return self._libraries[name]

    def ir(self, library: Library, experiments: Sequence[str]) -> Json:
        """The IR of a library that was compiled."""
        asked = {platform: [version] for platform, version in self._asked.items()}
        return library_ir(library, asked, experiments)

    def _uses(self, name: str) -> list[str]:
        found = []
        for file in self._files[name]:
            for using in file.using:
                if using.library not in self._files:
                    raise using.span.error(
                        f"cannot find library `{using.library}`: give its files as dependencies"
                    )
                found.append(using.library)
        return found

    def _compile(self, name: str) -> Library:
        files = self._files[name]
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
        for file in files:
            self._import(library, file)
        version = self._versions.get(library.platform or "", availability.HEAD)
        consumer = Consumer(library, version, self._names)
        for file in files:
            consumer.consume(file)
        _check_import_names(library)
        LibraryCompiler(library, self._builtin_handle()).compile()
        return library

    def _import(self, library: Library, file: File) -> None:
        for using in file.using:
            other = self._libraries[using.library]
            imported = Import(other, using.alias or using.library, using.span)
            library.import_into(file.span.source.name, imported)

    def _builtin_handle(self) -> ResourceDecl | None:
        zx = self._libraries.get(ZX)
        if zx is None:
            return None
        decl = zx.find("handle") or zx.find("Handle")
        return decl if isinstance(decl, ResourceDecl) else None


def _version(text: str) -> int:
    version = availability.parse_version(text)
    if version is None:
        raise CompileError(f"{text!r} is no version: use a number, NEXT or HEAD")
    return version


def _check_import_names(library: Library) -> None:
    names = {canonical(name): decl for name, decl in library.declarations.items()}
    for imported in library.all_imports():
        decl = names.get(canonical(imported.name))
        if decl is not None:
            raise decl.span.error(
                f"`{decl.name}` is also the name of an imported library: "
                "import it under another name by `as`"
            )
