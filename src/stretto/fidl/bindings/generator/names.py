"""Names in generated modules: of other libraries' modules, and of classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.fidl.bindings.loader import short_name

if TYPE_CHECKING:
    from stretto.fidl.bindings.ir import LibraryReader


class Names:
    """What a module calls things.

    Args:
        reader: Of the module's library.
        prefix: The package of all modules; "" for none.
    """

    def __init__(self, reader: LibraryReader, prefix: str = "") -> None:
        self._library: str = reader.ir["name"]
        self._prefix = prefix
        self.dependencies: list[str] = [
            library["name"] for library in reader.ir.get("library_dependencies") or []
        ]

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
        if library in ("", self._library) or library not in self.dependencies:
            return short
        return f"{self.alias(library)}.{short}"
