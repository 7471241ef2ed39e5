"""Turns a syntax tree into declarations; names nested layouts, and adds a union for each result."""

from __future__ import annotations

from stretto_fidl.compiler import availability, declarations
from stretto_fidl.compiler.declarations import (
    AliasDecl,
    Composed,
    ConstDecl,
    Decl,
    LayoutDecl,
    Member,
    MethodDecl,
    ProtocolDecl,
    ResourceDecl,
    ServiceDecl,
)
from stretto_fidl.compiler.names import NamingContext, with_article
from stretto_fidl.compiler.source import GeneratedSpan
from stretto_fidl.compiler.syntax_tree import (
    AliasDeclaration,
    Attribute,
    ConstDeclaration,
    Declaration,
    Layout,
    Literal,
    Method,
    Modifier,
    Payload,
    ProtocolDeclaration,
    Reference,
    ResourceDeclaration,
    ServiceDeclaration,
    TypeConstructor,
    TypeDeclaration,
)
from stretto_fidl.compiler.syntax_tree import Member as MemberSyntax

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto_fidl.compiler.availability import Availability
    from stretto_fidl.compiler.library import GeneratedNames, Library
    from stretto_fidl.compiler.syntax_tree import File

FRAMEWORK_ERROR = "framework_err"
_CAN_BE_STRICT = ("enum", "bits", "union")
_CAN_BE_RESOURCE = ("struct", "table", "union")


class Consumer:
    """Adds the declarations of files to one library.

    Args:
        library: The library.
        version: The version to compile; it is a version of the library's platform.
        names: The names generated so far in this run, for all libraries.
    """

    def __init__(self, library: Library, version: int, names: GeneratedNames) -> None:
        self._library = library
        self._version = version
        self._names = names

    def consume(self, file: File) -> None:
        """Add the declarations of a file.

        Raises:
            CompileError: A name is taken, or a modifier is wrong.
        """
        if not self._library.present:
            return
        for declaration in file.declarations:
            present = self._available(declaration.attributes, self._library.availability)
            if present is not None:
                self._declaration(declaration, present)

    def _available(self, attributes: list[Attribute], parent: Availability) -> Availability | None:
        """Return the availability of an element; None if the compiled version lacks the element."""
        attribute = availability.find(attributes)
        if attribute is None:
            return parent
        if self._library.platform is None:
            raise attribute.span.error(
                "`@available` is here, but not on the library: put one before `library`"
            )
        found = availability.read(attribute, parent, is_library=False)
        return found if found.at(self._version) else None

    def _present(self, modifiers: list[Modifier], parent: Availability) -> list[Modifier]:
        """Return the modifiers that exist in the compiled version."""
        found = []
        for modifier in modifiers:
            if not modifier.versions:
                found.append(modifier)
                continue
            for argument in modifier.versions:
                if argument.name not in ("added", "removed"):
                    raise argument.span.error("a modifier is only `added` and `removed`")
            versions = Attribute(modifier.span, "available", modifier.versions)
            if self._available([versions], parent) is not None:
                found.append(modifier)
        _check_exclusive(found)
        return found

    def _declaration(self, syntax: Declaration, present: Availability) -> None:
        decl = self._new(syntax, present)
        decl.deprecated = present.deprecated <= self._version
        if not isinstance(decl, LayoutDecl):
            self._library.add(decl)

    def _new(self, syntax: Declaration, present: Availability) -> Decl:
        library, context = self._library, NamingContext.of_declaration(syntax.name)
        common = (syntax.name, syntax.span, syntax.attributes)
        if isinstance(syntax, TypeDeclaration):
            target = syntax.type.target
            if isinstance(target, Layout):
                return self._layout(target, context, present, syntax)
            return AliasDecl(*common, declarations.NEW_TYPE, library, syntax.type)
        if isinstance(syntax, AliasDeclaration):
            return AliasDecl(*common, declarations.ALIAS, library, syntax.type)
        if isinstance(syntax, ConstDeclaration):
            return ConstDecl(*common, declarations.CONST, library, syntax.type, syntax.value)
        if isinstance(syntax, ServiceDeclaration):
            members = self._members(syntax.members, context, present)
            return ServiceDecl(*common, declarations.SERVICE, library, members)
        if isinstance(syntax, ResourceDeclaration):
            members = self._members(syntax.properties, context, present)
            kind = declarations.RESOURCE
            return ResourceDecl(*common, kind, library, syntax.subtype, members)
        assert isinstance(syntax, ProtocolDeclaration)
        return self._protocol(syntax, present)

    def _layout(
        self,
        layout: Layout,
        context: NamingContext,
        present: Availability,
        named: Declaration | None = None,
    ) -> LayoutDecl:
        """Add the declaration of a layout.

        Args:
            layout: The layout in the syntax tree.
            context: The place of the layout.
            present: The availability of the layout.
            named: The statement `type Name = ...` that names the layout; None for an anonymous
                layout.
        """
        attributes = named.attributes if named else layout.attributes
        name = context.name if named else _generated_name(layout, context.name)
        decl = LayoutDecl(
            name, named.span if named else layout.span, attributes, layout.kind, self._library,
            context.path, [], anonymous=named is None, subtype_syntax=layout.subtype,
        )  # fmt: skip
        decl.deprecated = present.deprecated <= self._version
        decl.old = layout.old
        _apply_modifiers(decl, layout, self._present(layout.modifiers, present))
        layout.declared = decl
        self._library.add(decl)
        decl.reserved = [(m.ordinal or 0, m.span) for m in layout.members if not m.name]
        decl.members = self._members([m for m in layout.members if m.name], context, present)
        return decl

    def _members(
        self, members: list[MemberSyntax], context: NamingContext, parent: Availability
    ) -> list[Member]:
        return [
            self._member(syntax, context, present)
            for syntax in members
            if (present := self._available(syntax.attributes, parent)) is not None
        ]

    def _member(
        self, syntax: MemberSyntax, context: NamingContext, present: Availability
    ) -> Member:
        if syntax.type is not None:
            self._inline(syntax.type, context.member(syntax.name), present)
        return Member(
            syntax.name, syntax.span, syntax.attributes, syntax.ordinal or 0,
            syntax.type, None, syntax.value, deprecated=present.deprecated <= self._version,
        )  # fmt: skip

    def _inline(
        self, type_: TypeConstructor, context: NamingContext, present: Availability
    ) -> None:
        """Declare the layouts within a type."""
        if isinstance(type_.target, Layout):
            self._layout(type_.target, context, present)
        for parameter in type_.parameters:
            if isinstance(parameter, TypeConstructor):
                self._inline(parameter, context, present)

    def _protocol(self, syntax: ProtocolDeclaration, present: Availability) -> ProtocolDecl:
        decl = ProtocolDecl(
            syntax.name, syntax.span, syntax.attributes, declarations.PROTOCOL, self._library,
            _openness(syntax, self._present(syntax.modifiers, present)), [], [],
        )  # fmt: skip
        for composed in syntax.composed:
            there = self._available(composed.attributes, present)
            if there is not None:
                reference = TypeConstructor(composed.span, composed.reference)
                name, attributes = str(composed.reference), composed.attributes
                decl.composed.append(Composed(
                    name, composed.span, attributes, reference,
                    deprecated=there.deprecated <= self._version,
                ))  # fmt: skip
        for method in syntax.methods:
            there = self._available(method.attributes, present)
            if there is not None:
                decl.methods.append(self._method(decl, method, there))
        return decl

    def _method(self, protocol: ProtocolDecl, syntax: Method, present: Availability) -> MethodDecl:
        kind = "twoway" if syntax.request and syntax.response else "oneway"
        if syntax.request is None:
            kind = "event"
        modifiers = self._present(syntax.modifiers, present)
        strict = syntax.old or any(m.name == "strict" for m in modifiers)
        method = MethodDecl(
            syntax.name, syntax.span, syntax.attributes, kind, protocol, strict,
            deprecated=present.deprecated <= self._version,
        )  # fmt: skip
        names = (protocol.name, syntax.name)
        if syntax.request is not None:
            context = NamingContext.of_payload(*names, "Request")
            method.request_syntax = self._payload(syntax.request, context, present)
        if kind == "event" and syntax.error is not None:
            raise syntax.error.span.error("an event can't have an error: remove it")
        if kind == "twoway" and (syntax.error is not None or not strict):
            self._result(method, syntax, present)
        elif syntax.response is not None:
            word = "Request" if kind == "event" else "Response"
            context = NamingContext.of_payload(*names, word)
            method.response_syntax = self._payload(syntax.response, context, present)
        return method

    def _payload(
        self, payload: Payload, context: NamingContext, present: Availability
    ) -> TypeConstructor | None:
        if payload.type is not None:
            self._inline(payload.type, context, present)
        return payload.type

    def _result(self, method: MethodDecl, syntax: Method, present: Availability) -> None:
        """Turn a method's response into a union of success, error and framework error."""
        names = (method.protocol.name, method.name)
        assert syntax.response is not None
        success = syntax.response.type
        context = NamingContext.of_result(*names, "Response", "response")
        if success is None:
            success = self._empty_success(syntax.response, context, present)
        else:
            self._inline(success, context, present)
        method.success_syntax, method.error_syntax = success, syntax.error
        if syntax.error is not None:
            context = NamingContext.of_result(*names, "Error", "err")
            self._inline(syntax.error, context, present)
            method.has_error = True
        method.response_syntax = self._result_union(method, syntax.response, present)

    def _empty_success(
        self, payload: Payload, context: NamingContext, present: Availability
    ) -> TypeConstructor:
        layout = Layout(payload.span, "struct", [], [])
        decl = self._layout(layout, context, present)
        decl.is_empty_success = True
        return TypeConstructor(payload.span, layout)

    def _result_union(
        self, method: MethodDecl, response: Payload, present: Availability
    ) -> TypeConstructor:
        line = self._names.next_result()
        assert method.success_syntax is not None
        members = [_result_member(1, "response", line, method.success_syntax)]
        if method.error_syntax is not None:
            members.append(_result_member(2, "err", line + 1, method.error_syntax))
        if not method.strict:
            place = GeneratedSpan(FRAMEWORK_ERROR, line + 2)
            framework = TypeConstructor(place, Reference(place, ("fidl", FRAMEWORK_ERROR)))
            members.append(_result_member(3, FRAMEWORK_ERROR, line + 2, framework))
        context = NamingContext.of_result(method.protocol.name, method.name, "Result")
        layout = Layout(response.span, "union", [Modifier(response.span, "strict")], [])
        decl = self._layout(layout, context, present)
        decl.members, decl.is_result, decl.resource = members, True, None
        return TypeConstructor(response.span, layout)


def _result_member(ordinal: int, name: str, line: int, type_: TypeConstructor) -> Member:
    return Member(name, GeneratedSpan(name, line), [], ordinal, type_)


def _generated_name(layout: Layout, default: str) -> str:
    """Return the name from `@generated_name`, for a layout within another declaration."""
    for attribute in layout.attributes:
        if attribute.name == "generated_name" and len(attribute.arguments) == 1:
            value = attribute.arguments[0].value
            if isinstance(value, Literal) and isinstance(value.value, str):
                if not value.value.isidentifier() or not value.value.isascii():
                    raise value.span.error(f"{value.text} isn't the name of a type")
                return value.value
            raise value.span.error("`@generated_name` needs a string literal")
    return default


def _check_exclusive(modifiers: list[Modifier]) -> None:
    for pair in (("strict", "flexible"), ("open", "ajar", "closed")):
        found = [modifier for modifier in modifiers if modifier.name in pair]
        if len(found) > 1:
            raise found[1].span.error(
                f"`{found[1].name}` and `{found[0].name}` exclude each other: remove one"
            )


def _apply_modifiers(decl: LayoutDecl, layout: Layout, modifiers: list[Modifier]) -> None:
    names = {modifier.name for modifier in modifiers}
    kind = layout.kind
    for modifier in modifiers:
        allowed = _CAN_BE_RESOURCE if modifier.name == "resource" else _CAN_BE_STRICT
        if kind == "overlay" and modifier.name == "strict":
            continue
        if kind not in allowed:
            raise modifier.span.error(
                f"{with_article(kind)} can't be `{modifier.name}`: remove the modifier"
            )
    if kind == "overlay" and "strict" not in names:
        raise layout.span.error("an overlay must be `strict`")
    decl.marked = bool(names & {"strict", "flexible"})
    decl.strict = "strict" in names if kind in _CAN_BE_STRICT else kind in ("struct", "overlay")
    if kind in _CAN_BE_RESOURCE:
        decl.resource = True if "resource" in names else None if layout.old else False


def _openness(syntax: ProtocolDeclaration, modifiers: list[Modifier]) -> str:
    for modifier in modifiers:
        if modifier.name not in ("open", "ajar", "closed"):
            raise modifier.span.error(
                f"a protocol can't be `{modifier.name}`: it is open, ajar or closed"
            )
        return modifier.name
    return "closed" if syntax.old else "open"
