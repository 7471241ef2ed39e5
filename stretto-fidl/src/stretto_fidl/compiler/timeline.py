"""Compiles a library in every version in which it changes, and compares neighbouring versions.

The IR is that of one version, but mistakes in other versions are errors too: a name
that is used before it is added, two members with one name in some versions, an
element that is `replaced` although no other element replaces it.

    versions mentioned by the library, or by libraries of its platform that it uses
        1 ────────── 2 ────────── 5 ────────── HEAD
        compile      compile      compile      compile
             └ compare ┘  └ compare ┘  └ compare ┘

Nothing changes between two mentioned versions, so the library is compiled once for that range.
"""

from __future__ import annotations

from bisect import bisect_right

from stretto_fidl.compiler import availability
from stretto_fidl.compiler.build import Build
from stretto_fidl.compiler.replacements import replacement_errors
from stretto_fidl.errors import CompileError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stretto_fidl.compiler.library import Library
    from stretto_fidl.compiler.syntax_tree import File

MAX_VERSIONS = 64
"""The maximum number of versions that a library and its dependencies mention."""
MAX_CHARACTERS = 64 << 20
"""The maximum number of characters to compile in all versions: about a minute of time."""


class Timeline:
    """Checks the versions of one library.

    Args:
        files: The files of all libraries.
        order: The libraries that the library needs, and the library itself at the end.
        asked: The build of the requested version.
    """

    def __init__(self, files: Mapping[str, list[File]], order: Sequence[str], asked: Build) -> None:
        self._files = files
        self._order = order
        self._asked = asked
        self._library = asked.libraries[order[-1]]
        self._mentioned = self._mentions()
        self._known: dict[tuple[str, int], Library] = {}
        self._compiled: list[Library] = []
        self._errors: dict[tuple[str, str], CompileError] = {}

    def check(self) -> None:
        """Check all versions.

        Raises:
            CompileError: Some version is wrong; `errors` has all mistakes, each once.
        """
        if self._library.platform is not None:
            self._check_versions()
        if not self._errors:
            self._check_imports()
        if self._errors:
            errors = list(self._errors.values())
            errors[0].errors = errors
            raise errors[0]

    def _check_versions(self) -> None:
        versions = self._versions()
        if len(versions) > MAX_VERSIONS:
            raise self._library.span.error(
                f"the library and what it uses mention {len(versions)} versions, "
                f"the limit is {MAX_VERSIONS}: remove what only old ones had"
            )
        if self._characters() > MAX_CHARACTERS:
            raise self._library.span.error(
                f"the library is too long to be checked in all its {len(versions)} versions: "
                "split it"
            )
        self._remember(self._asked)
        before = None
        for version in versions:
            after = self._at(version)
            if before is not None and after is not None:
                self._note(replacement_errors(before, after, version), version)
            before = after

    def _mentions(self) -> dict[str, list[int]]:
        """Return for each library the versions that the library or its dependencies mention."""
        closures: dict[str, set[int]] = {}
        for name in self._order:
            found = closures[name] = set()
            for file in self._files[name]:
                if self._asked.libraries[name].platform == self._library.platform:
                    versions = map(availability.version_maybe_in, file.versions)
                    found |= {version for version in versions if version is not None}
                for using in file.using:
                    found |= closures[using.library]
        return {name: sorted(found) for name, found in closures.items()}

    def _versions(self) -> list[int]:
        exists = self._library.availability
        mentioned = self._mentioned[self._library.name]
        return [version for version in mentioned if exists.at(version)]

    def _characters(self) -> int:
        return sum(
            len(file.span.source.text) * len(self._mentioned[name])
            for name in self._order
            for file in self._files[name]
        )

    def _at(self, version: int) -> Library | None:
        """Return the library in a version; None if the library is wrong in that version."""
        build = Build(self._files, {**self._asked.versions, str(self._library.platform): version})
        try:
            for name in self._order:
                known = self._known.get(self._key(name, version))
                build.libraries[name] = known or build.compile(name)
        except CompileError as error:
            self._note(error.errors, version)
            return None
        self._remember(build)
        return build.libraries[self._library.name]

    def _key(self, name: str, version: int) -> tuple[str, int]:
        return name, bisect_right(self._mentioned[name], version)

    def _remember(self, build: Build) -> None:
        version = build.version_of(self._library)
        for name in self._order:
            self._known.setdefault(self._key(name, version), build.libraries[name])
        self._compiled.append(build.libraries[self._library.name])

    def _note(self, errors: Iterable[CompileError], version: int) -> None:
        for error in errors:
            where = f"version {availability.version_name(version)} of `{self._library.platform}`"
            told = error.at(f"{error.reason} (in {where})")
            key = (f"{error.filename}:{error.line}:{error.column}", error.reason)
            self._errors.setdefault(key, told)

    def _check_imports(self) -> None:
        """Check that each import is used in some version."""
        compiled = self._compiled or [self._library]
        used = {str(i.span) for each in compiled for i in each.all_imports() if i.used}
        for imported in self._library.all_imports():
            place = str(imported.span)
            if place not in used:
                reason = f"`{imported.library.name}` is imported, but not used: remove the `using`"
                self._errors.setdefault((place, reason), imported.span.error(reason))
