"""The names, types, constants and attributes that all checks of declarations use."""

from __future__ import annotations

from stretto_fidl.compiler.attributes import compile_attributes
from stretto_fidl.compiler.constants import Evaluator
from stretto_fidl.compiler.requirements import Requirements
from stretto_fidl.compiler.type_resolver import TypeResolver

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto_fidl.compiler.declarations import Decl, Element, LayoutDecl, ResourceDecl
    from stretto_fidl.compiler.library import Library


class Compilation(Requirements):
    """The compilation of one library.

    Args:
        builtin_handle: The declaration of `handle` in the old syntax.
        library, compile_declaration, compile_subtype: As in `Requirements`.
    """

    def __init__(
        self,
        library: Library,
        builtin_handle: ResourceDecl | None,
        compile_declaration: Callable[[Decl], None],
        compile_subtype: Callable[[LayoutDecl], None],
    ) -> None:
        super().__init__(library, compile_declaration, compile_subtype)
        self.constants = Evaluator(self)
        self.types = TypeResolver(self, self.constants, builtin_handle)

    def attributes(self, element: Element | Library, place: str) -> None:
        """Compile the attributes of an element, or of the library."""
        element.attributes = compile_attributes(element.syntax_attributes, place, self.constants)
