"""Compiles each declaration when another declaration first needs it.

Therefore the order of declarations in files doesn't matter.
"""

from __future__ import annotations

from contextlib import contextmanager

from stretto_fidl.compiler.declarations import COMPILED, COMPILING, FAILED, NEW
from stretto_fidl.compiler.scope import Scope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stretto_fidl.compiler.declarations import Decl, LayoutDecl
    from stretto_fidl.compiler.library import Library
    from stretto_fidl.compiler.source import Span
    from stretto_fidl.compiler.syntax_tree import Reference
    from stretto_fidl.errors import CompileError

MAX_DEPTH = 100
"""The maximum depth of types in types, constants of constants and aliases of aliases."""


class Consequence(Exception):  # noqa: N818 - no error of its own
    """Raised if a needed declaration is wrong. The error of that declaration has been reported."""


class Requirements:
    """Compiles declarations of one library when they are needed.

    Args:
        library: The library, with the declarations of its files.
        compile_declaration: Compiles one declaration.
        compile_subtype: Compiles only the underlying type of an enum or bits.
    """

    def __init__(
        self,
        library: Library,
        compile_declaration: Callable[[Decl], None],
        compile_subtype: Callable[[LayoutDecl], None],
    ) -> None:
        self.library = library
        self.scope = Scope(library)
        self._compile_declaration = compile_declaration
        self._compile_subtype = compile_subtype
        self._depth = 0

    @contextmanager
    def nested(self, span: Span) -> Iterator[None]:
        """Count one more level of nested types and constants.

        Raises:
            CompileError: The nesting is too deep.
        """
        if self._depth >= MAX_DEPTH:
            raise span.error(f"this needs more than {MAX_DEPTH} steps to be looked up: simplify it")
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    def unknown(self, reference: Reference) -> CompileError:
        """Return the error for an unknown name."""
        if len(reference.parts) > 1:
            library = ".".join(reference.parts[:-1])
            return reference.span.error(
                f"cannot find `{reference}`: is library `{library}` imported by `using`, "
                f"and does it have `{reference.parts[-1]}`?"
            )
        return reference.span.error(f"cannot find `{reference}` in library `{self.library.name}`")

    def require(self, decl: Decl, span: Span) -> None:
        """Compile a declaration if it isn't compiled yet.

        Args:
            decl: A declaration of this library, or of a library that is already compiled.
            span: The place that needs the declaration.

        Raises:
            CompileError: The declaration is defined by itself.
            Consequence: The declaration is wrong, and its error has been reported.
        """
        if decl.state == COMPILED:
            return
        if decl.state == FAILED:
            raise Consequence
        if decl.state == COMPILING:
            raise span.error(f"`{decl.name}` is defined by itself")
        assert decl.state == NEW
        decl.state = COMPILING
        with self.nested(span):
            try:
                self._compile_declaration(decl)
            except BaseException:
                decl.state = FAILED
                raise
        decl.state = COMPILED

    def require_if_own(self, decl: Decl, span: Span) -> None:
        """Compile a declaration unless its compilation has begun or ended.

        A caller needs only the attributes of the declaration. So it is no error if the compilation
        has begun.
        """
        if decl.state == NEW:
            self.require(decl, span)

    def underlying(self, decl: LayoutDecl) -> str:
        """Return the underlying integer type of an enum or bits."""
        if decl.subtype is None:
            self._compile_subtype(decl)
        assert decl.subtype is not None
        return decl.subtype.type.subtype
