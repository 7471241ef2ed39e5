"""Assigns source files to libraries, orders the libraries, and compiles them."""

from __future__ import annotations

from stretto_fidl.compiler import availability, zx_library
from stretto_fidl.compiler.build import ZX, Build
from stretto_fidl.compiler.graph import Cycle, post_order
from stretto_fidl.compiler.ir_writer import library_ir
from stretto_fidl.compiler.parser import parse_all
from stretto_fidl.compiler.source import SourceFile
from stretto_fidl.compiler.timeline import Timeline
from stretto_fidl.errors import CompileError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stretto_fidl.compiler.ir_parts import Json
    from stretto_fidl.compiler.library import Library
    from stretto_fidl.compiler.syntax_tree import File


class Workspace:
    """All libraries of one run.

    Args:
        versions: The version of each platform, by the platform's name: a number, `NEXT` or `HEAD`.
            A platform that isn't listed has the version `HEAD`.
    """

    def __init__(self, versions: Mapping[str, str]) -> None:
        self._asked = versions
        self._files: dict[str, list[File]] = {}
        self._build = Build(
            self._files, {platform: _version(text) for platform, text in versions.items()}
        )

    def add(self, sources: Iterable[SourceFile]) -> list[str]:
        """Parse files, and return the names of their libraries, each once.

        Raises:
            CompileError: A file can't be parsed; `errors` has the mistakes of all files.
        """
        files = parse_all(sources)
        for file in files:
            self._files.setdefault(file.library, []).append(file)
        return list(dict.fromkeys(file.library for file in files))

    def compile(self, name: str) -> Library:
        """Compile a library and its dependencies, and check it in all its versions.

        Raises:
            CompileError: A library is wrong.
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
            if each not in self._build.libraries:
                self._build.compile(each)
        Timeline(self._files, order[: order.index(name) + 1], self._build).check()
        return self._build.libraries[name]

    def ir(self, library: Library, experiments: Sequence[str]) -> Json:
        """Return the IR of a compiled library."""
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


def _version(text: str) -> int:
    version = availability.parse_version(text)
    if version is None:
        raise CompileError(f"{text!r} isn't a version: use a number, NEXT or HEAD")
    return version
