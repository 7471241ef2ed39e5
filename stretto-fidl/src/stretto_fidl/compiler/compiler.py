"""Compiles one library: finds its names, evaluates its constants, checks its rules.

A declaration is compiled when another declaration first needs it, so the order in files doesn't
matter. After an error the compiler continues with the other declarations: a run reports all errors,
except errors that only follow from other errors.
"""

from __future__ import annotations

from stretto_fidl.compiler import declarations, layouts, protocols, types
from stretto_fidl.compiler.compilation import Compilation
from stretto_fidl.compiler.declarations import (
    AliasDecl,
    ConstDecl,
    LayoutDecl,
    ProtocolDecl,
    ResourceDecl,
    ServiceDecl,
)
from stretto_fidl.compiler.dependencies import Dependencies
from stretto_fidl.compiler.deprecations import deprecated_uses
from stretto_fidl.compiler.requirements import Consequence
from stretto_fidl.compiler.resourceness import check_no_resource, check_resources
from stretto_fidl.compiler.shapes import compute_shapes
from stretto_fidl.compiler.transports import check_transports
from stretto_fidl.errors import CompileError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto_fidl.compiler.declarations import Decl
    from stretto_fidl.compiler.library import Library
    from stretto_fidl.compiler.syntax_tree import TypeConstructor


class LibraryCompiler:
    """Compiles the declarations of one library.

    Args:
        library: The library, with the declarations of its files.
        builtin_handle: The declaration of `handle` in the old syntax.
    """

    def __init__(self, library: Library, builtin_handle: ResourceDecl | None) -> None:
        self.library = library
        self.errors: list[CompileError] = []
        self._compilation = Compilation(
            library, builtin_handle, self._compile, self._compile_subtype
        )

    def compile(self) -> None:
        """Compile the library.

        Raises:
            CompileError: The definitions are wrong; `errors` has all mistakes.
        """
        compilation = self._compilation
        self._attempt(lambda: compilation.attributes(self.library, "library"))
        for decl in list(self.library.declarations.values()):
            self._attempt(lambda decl=decl: compilation.require(decl, decl.span))
        self._report()
        layout_decls = [d for d in self.library.declarations.values() if isinstance(d, LayoutDecl)]
        self.library.order = Dependencies(self.library, compilation.scope).order()
        check_resources(self.library)
        check_no_resource(self.library)
        check_transports(self.library)
        compute_shapes(layout_decls)
        self.errors += deprecated_uses(self.library, compilation.scope)
        self._report()

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

    def _compile(self, decl: Decl) -> None:
        place = decl.kind
        if isinstance(decl, LayoutDecl) and decl.anonymous:
            place = "anonymous layout"
        compilation = self._compilation
        compilation.attributes(decl, place)
        if isinstance(decl, LayoutDecl):
            layouts.compile_layout(compilation, decl)
        elif isinstance(decl, ConstDecl):
            self._const(decl)
        elif isinstance(decl, AliasDecl):
            decl.type = compilation.types.resolve(decl.type_syntax)
        elif isinstance(decl, ResourceDecl):
            self._resource(decl)
        elif isinstance(decl, ServiceDecl):
            protocols.compile_service(compilation, decl)
        elif isinstance(decl, ProtocolDecl):
            protocols.compile_protocol(compilation, decl)

    def _compile_subtype(self, decl: LayoutDecl) -> None:
        layouts.compile_subtype(self._compilation, decl)

    def _const(self, decl: ConstDecl) -> None:
        decl.type = self._compilation.types.resolve(decl.type_syntax)
        if not can_be_constant(decl.type.type):
            raise decl.type.span.error(
                "a constant is a number, bool, string, enum or bits, "
                f"no `{decl.type_syntax.span.text}`"
            )
        decl.value = self._compilation.constants.evaluate(decl.value_syntax, decl.type.type)

    def _resource(self, decl: ResourceDecl) -> None:
        decl.subtype = self._uint32(decl, decl.subtype_syntax)
        layouts.check_names(decl.properties, "property")
        if not decl.properties:
            raise decl.span.error("a resource needs the property `subtype`")
        for member in decl.properties:
            self._compilation.attributes(member, "resource property")
            assert member.type_syntax is not None
            member.type = self._compilation.types.resolve(member.type_syntax)
            inner = member.type.type.decl
            if isinstance(inner, LayoutDecl):
                self._compilation.require(inner, member.span)
            self._check_property(member)
        if decl.property_named("subtype") is None:
            raise decl.span.error("a resource needs the property `subtype`")

    def _uint32(self, decl: ResourceDecl, syntax: TypeConstructor | None) -> types.TypeUse:
        if syntax is None:
            return types.TypeUse(decl.span, types.primitive("uint32"))
        use = self._compilation.types.resolve(syntax)
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
    """Return whether a constant may be of a type."""
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
