"""Chooses the names of imported modules and of classes in generated modules.

No name in FIDL starts with a `_`, so these names can't collide with definitions, nor with each
other:

    _b, _t, _py, _Final …   the imports of every module; these have only one `_`
    _lib_a_b                the module of the library a.b
    _cls_Name               in stubs, the class `Name` where a member has this name
"""

from __future__ import annotations

import sys
from keyword import iskeyword
from typing import TYPE_CHECKING, Any

from stretto_fidl.bindings.loader import short_name
from stretto_fidl.codec.types import Reference
from stretto_fidl.errors import FidlError
from stretto_fidl.python_names import module_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stretto_fidl.bindings.ir import LibraryReader


class Names:
    """The names used in a generated module.

    Attributes:
        dependencies: The names of the libraries whose types this library mentions.

    Args:
        reader: The reader of the library.
        prefix: The package of all modules; "" for none.

    Raises:
        FidlError: The package's name is invalid, or a module needs a package.
    """

    def __init__(self, reader: LibraryReader, prefix: str = "") -> None:
        if not all(_is_part(part) for part in prefix.split(".")) and prefix:
            raise FidlError(f"{prefix[:100]!r} isn't a Python package name, such as my.api")
        self._library: str = reader.ir["name"]
        self._prefix = prefix
        mentioned = set(_mentioned(reader.ir, reader))
        self.dependencies = sorted(mentioned - {self._library})
        if not prefix:
            _check_is_free([self._library, *self.dependencies])

    def alias(self, library: str) -> str:
        """Return the name under which another library's module is imported."""
        return f"_lib_{module_name(library)}"

    def imports(self) -> list[str]:
        """Return the import statements for the libraries that the generated library depends on."""
        start = f"from {self._prefix} import " if self._prefix else "import "
        return [f"{start}{module_name(name)} as {self.alias(name)}" for name in self.dependencies]

    def cls(self, name: str) -> str:
        """Return an expression for the class of a definition, from the definition's full name."""
        library, _, _ = name.rpartition("/")
        short = short_name(name)
        return short if library == self._library else f"{self.alias(library)}.{short}"


def _check_is_free(libraries: list[str]) -> None:
    for library in libraries:
        if library in sys.stdlib_module_names or library == "stretto":
            raise FidlError(
                f"library {library} would be the module {library}, which is another one already: "
                "put modules into a package, and say which by --prefix"
            )


def _is_part(word: str) -> bool:
    return word.isidentifier() and not iskeyword(word)


def _mentioned(node: Any, reader: LibraryReader) -> Iterator[str]:
    """Yield the libraries of the types and protocols that a part of the IR names."""
    if isinstance(node, list):
        for each in node:
            yield from _mentioned(each, reader)
    elif isinstance(node, dict):
        if "nullable" in node and "identifier" in node:
            type_ = reader.type(node)
            if isinstance(type_, Reference):
                yield type_.name.rpartition("/")[0]
        for each in node.values():
            yield from _mentioned(each, reader)
