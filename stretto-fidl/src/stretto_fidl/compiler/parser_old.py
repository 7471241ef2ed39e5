"""Parses the syntax before RFC-0050: `struct S { string:32 name; };`.

The parser makes the nodes of the new syntax: a parameter list becomes a struct, `[Doc = "x"]`
becomes `@doc("x")`, and `using X = Y` becomes `alias X = Y`. Three defaults differ from the new
syntax: a type that holds handles is a resource, methods are strict, and protocols are closed.
"""

from __future__ import annotations

import re

from stretto_fidl.compiler.parser_new import LAYOUTS, NewParser
from stretto_fidl.compiler.syntax_tree import (
    AliasDeclaration,
    Attribute,
    AttributeArgument,
    Compose,
    Constant,
    ConstDeclaration,
    Declaration,
    Identifier,
    Layout,
    Member,
    Method,
    Modifier,
    Or,
    Payload,
    ProtocolDeclaration,
    Reference,
    TypeConstructor,
    TypeDeclaration,
)
from stretto_fidl.compiler.tokens import DOC, NAME, NUMBER, STRING

_MODIFIERS = ("strict", "flexible", "resource")


def snake_case(name: str) -> str:
    """Return a name as the new syntax spells it: `max_bytes` for `MaxBytes`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


class OldParser(NewParser):
    """Parses one file of the old syntax; see `ParserBase`."""

    def _attributes(self) -> list[Attribute]:
        found = [self._doc_comment()] if self._tokens.at(DOC) else []
        if self._tokens.accept("["):
            found.append(self._attribute())
            while self._tokens.accept(","):
                found.append(self._attribute())
            self._tokens.expect("]", "after the attributes")
        if self._tokens.at(DOC):
            found.insert(0, self._doc_comment())
        return found

    def _attribute(self) -> Attribute:
        name = self._name("of the attribute")
        arguments = []
        if self._tokens.accept("="):
            if not self._tokens.at(STRING):
                raise self._tokens.unexpected("a string", "as the attribute's value")
            value = self._literal()
            arguments = [AttributeArgument(value.span, None, value)]
        return Attribute(self._tokens.since(name), snake_case(name.text), arguments)

    def _declaration(self, attributes: list[Attribute]) -> Declaration:
        first = self._tokens.current
        if first.text == "resource" and self._tokens.ahead(2).kind in (":", "{"):
            # The old syntax has `resource` where the new syntax has `resource_definition`.
            self._tokens.take()
            return self._resource(attributes)
        modifiers = self._modifiers(*_MODIFIERS)
        word = self._tokens.current
        if word.text in (*LAYOUTS, "xunion"):
            self._tokens.take()
            name = self._name(f"after `{word.text}`")
            layout = self._old_layout(word.text, modifiers)
            layout.span = self._tokens.since(first)
            target = TypeConstructor(layout.span, layout, old=True)
            return TypeDeclaration(name.span, name.text, attributes, target)
        if modifiers:
            raise modifiers[0].span.error(f"`{modifiers[0].name}` doesn't go with {word}")
        if word.text == "using":
            self._tokens.take()
            return self._alias(attributes)
        return super()._declaration(attributes)

    def _old_layout(self, kind: str, modifiers: list[Modifier]) -> Layout:
        if kind == "xunion":
            kind = "union"
        subtype = None
        if self._tokens.accept(":"):
            subtype = self._type()
        members = self._block(kind, self._members[kind])
        return Layout(self._tokens.current.span, kind, modifiers, members, subtype, old=True)

    def _const(self, attributes: list[Attribute]) -> Declaration:
        type_ = self._type()
        name = self._name("after the constant's type")
        self._tokens.expect("=", "after the constant's name")
        return ConstDeclaration(name.span, name.text, attributes, type_, self._constant())

    def _alias(self, attributes: list[Attribute]) -> Declaration:
        name = self._name("of the alias")
        self._tokens.expect("=", "after the alias")
        return AliasDeclaration(name.span, name.text, attributes, self._type())

    def _named_type(self) -> TypeConstructor:
        return self._type()

    def _type(self) -> TypeConstructor:
        with self._tokens.nested():
            first = self._tokens.current
            result = TypeConstructor(first.span, self._reference("as a type"), old=True)
            if self._tokens.at("<"):
                result.parameters = self._angled(self._parameter)
            if self._tokens.accept(":"):
                self._bounds(result)
            if self._tokens.at("?"):
                result.optional = self._tokens.take().span
            result.span = self._tokens.since(first)
            return result

    def _bounds(self, result: TypeConstructor) -> None:
        if self._tokens.at("<"):
            result.constraints = self._angled(self._constant)
        elif self._is_array(result):
            result.parameters.append(self._operand())
        else:
            result.constraints = [self._operand()]

    def _parameter(self) -> TypeConstructor | Constant:
        """Parse a parameter. Rights of a handle may be combined: `handle<vmo, A | B>`."""
        parameter = super()._parameter()
        target = parameter.target if isinstance(parameter, TypeConstructor) else None
        if not isinstance(target, Reference) or not self._tokens.at("|"):
            return parameter
        operands: list[Constant] = [Identifier(parameter.span, target)]
        while self._tokens.accept("|"):
            operands.append(self._operand())
        return Or(parameter.span.to(self._tokens.previous.span), operands)

    def _is_array(self, result: TypeConstructor) -> bool:
        """Return whether a type is an array: in `array<T>:N`, N is a size, not a bound."""
        return str(result.target) == "array" and len(result.parameters) == 1

    def _typed_member(self, attributes: list[Attribute]) -> Member:
        type_ = self._type()
        name = self._name("after the member's type")
        return Member(name.span, name.text, attributes, type_)

    def _struct_member(self, attributes: list[Attribute]) -> Member:
        member = self._typed_member(attributes)
        if self._tokens.accept("="):
            member.value = self._constant()
        return member

    def _ordinal_member(self, attributes: list[Attribute]) -> Member:
        ordinal, at = self._ordinal()
        if self._tokens.at_word("reserved") and self._tokens.ahead(1).kind == ";":
            word = self._tokens.take()
            return Member(at.span.to(word.span), "", attributes, None, None, ordinal, at.span)
        member = self._typed_member(attributes)
        member.ordinal, member.ordinal_span = ordinal, at.span
        return member

    def _protocol(self, attributes: list[Attribute], modifiers: list[Modifier]) -> Declaration:
        result = super()._protocol(attributes, modifiers)
        assert isinstance(result, ProtocolDeclaration)
        result.old = True
        return result

    def _protocol_member(self, attributes: list[Attribute]) -> Compose | Method:
        if self._tokens.at(NUMBER):
            raise self._tokens.current.span.error(
                "methods have no ordinals since 2019: they follow from the name; remove it"
            )
        if self._tokens.at_word("compose") and self._tokens.ahead(1).kind == NAME:
            self._tokens.take()
            reference = self._reference("after `compose`")
            return Compose(reference.span, reference, attributes)
        method = self._event(attributes, []) or self._method(attributes, [])
        method.old = True
        return method

    def _payload(self) -> Payload:
        first = self._tokens.expect("(", "around the parameters")
        members = []
        while not self._tokens.at(")"):
            members.append(self._typed_member(self._attributes()))
            if not self._tokens.at(")"):
                self._tokens.expect(",", "between parameters")
        self._tokens.expect(")", "after the parameters")
        span = self._tokens.since(first)
        if not members:
            return Payload(span, None)
        layout = Layout(span, "struct", [], members, old=True)
        return Payload(span, TypeConstructor(span, layout, old=True))
