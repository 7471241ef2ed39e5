"""Names in generated modules: of other libraries' modules, and of classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stretto.fidl.bindings.loader import short_name
from stretto.fidl.codec.types import Reference

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stretto.fidl.bindings.ir import LibraryReader


class Names:
    """What a module calls things.

    Attributes:
        dependencies: Libraries whose types this one mentions.

    Args:
        reader: Of the module's library.
        prefix: The package of all modules; "" for none.
    """

    def __init__(self, reader: LibraryReader, prefix: str = "") -> None:
        self._library: str = reader.ir["name"]
        self._prefix = prefix
        mentioned = set(_mentioned(reader.ir, reader))
        self.dependencies = sorted(mentioned - {self._library})

    def module(self, library: str) -> str:
        """The module of a library, without its package."""
        return library.replace(".", "_")

    def alias(self, library: str) -> str:
        """What another library's module is called here."""
        return f"_{self.module(library)}"

    def imports(self) -> list[str]:
        """The import statements for the libraries that this one depends on."""
        start = f"from {self._prefix} import " if self._prefix else "import "
        return [f"{start}{self.module(name)} as {self.alias(name)}" for name in self.dependencies]

    def cls(self, name: str) -> str:
        """An expression for a definition's class, given its full name."""
        library, _, _ = name.rpartition("/")
        short = short_name(name)
        return short if library == self._library else f"{self.alias(library)}.{short}"


def _mentioned(node: Any, reader: LibraryReader) -> Iterator[str]:
    """The libraries of all named types in a part of the IR; protocols are mentioned by name."""
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
