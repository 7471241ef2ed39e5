"""Compiles one library: finds its names, evaluates its constants, checks its rules.

A declaration is compiled at its first use, so that the order in files doesn't
matter. If a declaration is wrong, the others are still compiled: a run reports all
errors that aren't consequences of others.
"""

from __future__ import annotations

from contextlib import contextmanager

from stretto_fidl.compiler import declarations, layouts, protocols, types
from stretto_fidl.compiler.attributes import compile_attributes
from stretto_fidl.compiler.constants import Evaluator
from stretto_fidl.compiler.declarations import (
    COMPILED,
    COMPILING,
    FAILED,
    NEW,
    AliasDecl,
    ConstDecl,
    LayoutDecl,
    ProtocolDecl,
    ResourceDecl,
    ServiceDecl,
)
from stretto_fidl.compiler.dependencies import Dependencies
from stretto_fidl.compiler.deprecations import deprecated_uses
from stretto_fidl.compiler.resourceness import check_no_resource, check_resources
from stretto_fidl.compiler.scope import Scope
from stretto_fidl.compiler.shapes import compute_shapes
from stretto_fidl.compiler.transports import check_transports
from stretto_fidl.compiler.type_resolver import TypeResolver
from stretto_fidl.errors import CompileError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from stretto_fidl.compiler.declarations import Decl
    from stretto_fidl.compiler.library import Library
    from stretto_fidl.compiler.source import Span
    from stretto_fidl.compiler.syntax_tree import Reference, TypeConstructor

MAX_DEPTH = 100
"""The most steps through types in types, constants of constants and aliases of aliases."""


class Consequence(Exception):  # noqa: N818 - no error of its own
    """A required declaration is wrong itself, which was reported."""


class LibraryCompiler:
    """Args:
    library: As the consumer filled it.
    builtin_handle: The declaration of `handle` in the old syntax.
    """

    def __init__(self, library: Library, builtin_handle: ResourceDecl | None) -> None:
        self.library = library
        self.builtin_handle = builtin_handle
        self.scope = Scope(library)
        self.constants = Evaluator(self)
        self.types = TypeResolver(self)
        self.errors: list[CompileError] = []
        self._depth = 0

    def compile(self) -> None:
        """Compile the library.

        Raises:
            CompileError: The library is wrong; the error has all errors.
        """
        self._attempt(self._library_attributes)
        for decl in list(self.library.declarations.values()):
            self._attempt(lambda decl=decl: self.require(decl, decl.span))
        self._report()
        layout_decls = [d for d in self.library.declarations.values() if isinstance(d, LayoutDecl)]
        self.library.order = Dependencies(self.library, self.scope).order()
        check_resources(self.library)
        check_no_resource(self.library)
        check_transports(self.library)
        compute_shapes(layout_decls)
        self.errors += deprecated_uses(self.library, self.scope)
        self._report()

    def _library_attributes(self) -> None:
        library = self.library
        library.attributes = compile_attributes(
            library.syntax_attributes, "library", self.constants
        )

    def _attempt(self, action) -> None:  # type: ignore[no-untyped-def]
        try:
            action()
        except CompileError as error:
            self.errors.append(error)
        except Consequence:
            pass

    def _report(self) -> None:
        if self.errors:
            first = self.errors[0]
            first.errors = self.errors
            raise first

    # For the parts.

    @contextmanager
    def deeper(self, span: Span) -> Iterator[None]:
        """One step further into types and constants.

        Raises:
            CompileError: There are too many steps.
        """
        if self._depth >= MAX_DEPTH:
            raise span.error(f"this needs more than {MAX_DEPTH} steps to be looked up: simplify it")
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    def unknown(self, reference: Reference) -> CompileError:
        """The error for an unknown name."""
        if len(reference.parts) > 1:
            library = ".".join(reference.parts[:-1])
            return reference.span.error(
                f"cannot find `{reference}`: is library `{library}` imported by `using`, "
                f"and does it have `{reference.parts[-1]}`?"
            )
        return reference.span.error(f"cannot find `{reference}` in library `{self.library.name}`")

    def require(self, decl: Decl, span: Span) -> None:
        """Compile a declaration if it isn't yet.

        Args:
            decl: A declaration of this library, or of a compiled one.
            span: The place that needs it.

        Raises:
            CompileError: It needs itself.
            Consequence: It is wrong.
        """
        if decl.state == COMPILED:
            return
        if decl.state == FAILED:
            raise Consequence
        if decl.state == COMPILING:
            raise span.error(f"`{decl.name}` is defined by itself")
        assert decl.state == NEW
        decl.state = COMPILING
        with self.deeper(span):
            try:
                self._compile(decl)
            except BaseException:
                decl.state = FAILED
                raise
        decl.state = COMPILED

    def require_if_own(self, decl: Decl, span: Span) -> None:
        """As `require`, for uses that may be circular because they need attributes only."""
        if decl.state == NEW:
            self.require(decl, span)

    def underlying(self, decl: LayoutDecl) -> str:
        """The integer type behind an enum or bits."""
        if decl.subtype is None:
            layouts.compile_subtype(self, decl)
        assert decl.subtype is not None
        return decl.subtype.type.subtype

    def attributes(self, element: declarations.Element, place: str) -> None:
        """Compile an element's attributes."""
        element.attributes = compile_attributes(element.syntax_attributes, place, self.constants)

    # Declarations.

    def _compile(self, decl: Decl) -> None:
        place = decl.kind
        if isinstance(decl, LayoutDecl) and decl.anonymous:
            place = "anonymous layout"
        self.attributes(decl, place)
        if isinstance(decl, LayoutDecl):
            layouts.compile_layout(self, decl)
        elif isinstance(decl, ConstDecl):
            self._const(decl)
        elif isinstance(decl, AliasDecl):
            decl.type = self.types.resolve(decl.type_syntax)
        elif isinstance(decl, ResourceDecl):
            self._resource(decl)
        elif isinstance(decl, ServiceDecl):
            protocols.compile_service(self, decl)
        elif isinstance(decl, ProtocolDecl):
            protocols.compile_protocol(self, decl)

    def _const(self, decl: ConstDecl) -> None:
        decl.type = self.types.resolve(decl.type_syntax)
        if not can_be_constant(decl.type.type):
            raise decl.type.span.error(
                "a constant is a number, bool, string, enum or bits, "
                f"no `{decl.type_syntax.span.text}`"
            )
        decl.value = self.constants.evaluate(decl.value_syntax, decl.type.type)

    def _resource(self, decl: ResourceDecl) -> None:
        decl.subtype = self._uint32(decl, decl.subtype_syntax)
        layouts.check_names(decl.properties, "property")
        if not decl.properties:
            raise decl.span.error("a resource needs the property `subtype`")
        for member in decl.properties:
            self.attributes(member, "resource property")
            assert member.type_syntax is not None
            member.type = self.types.resolve(member.type_syntax)
            inner = member.type.type.decl
            if isinstance(inner, LayoutDecl):
                self.require(inner, member.span)
            self._check_property(member)
        if decl.property_named("subtype") is None:
            raise decl.span.error("a resource needs the property `subtype`")

    def _uint32(self, decl: ResourceDecl, syntax: TypeConstructor | None) -> types.TypeUse:
        if syntax is None:
            return types.TypeUse(decl.span, types.primitive("uint32"))
        use = self.types.resolve(syntax)
        if use.type.subtype != "uint32":
            raise use.span.error("the type of a resource must be uint32")
        return use

    def _check_property(self, member: declarations.Member) -> None:
        assert member.type is not None
        inner = member.type.type
        kind = inner.decl.kind if inner.decl is not None else inner.subtype
        allowed = {"subtype": ("enum",), "rights": ("bits", "uint32")}.get(member.name)
        if allowed is not None and kind not in allowed:
            raise member.type.span.error(f"property `{member.name}` must be {' or '.join(allowed)}")


def can_be_constant(type_: types.Type) -> bool:
    """Whether constants may have a type."""
    if type_.nullable:
        return False
    if type_.kind in (types.PRIMITIVE, types.STRING):
        return True
    return (
        type_.decl is not None
        and type_.kind == types.IDENTIFIER
        and type_.decl.kind
        in (
            "enum",
            "bits",
        )
    )
