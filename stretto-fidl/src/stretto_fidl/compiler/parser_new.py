"""Parses the current syntax: `type S = struct { name string:32; };`."""

from __future__ import annotations

from stretto_fidl.compiler.names import with_article
from stretto_fidl.compiler.parser_base import ParserBase
from stretto_fidl.compiler.syntax_tree import (
    AliasDeclaration,
    Attribute,
    AttributeArgument,
    Compose,
    Constant,
    ConstDeclaration,
    Declaration,
    Layout,
    Member,
    Method,
    Modifier,
    Payload,
    ProtocolDeclaration,
    ResourceDeclaration,
    ServiceDeclaration,
    TypeConstructor,
    TypeDeclaration,
)
from stretto_fidl.compiler.tokens import DOC, NAME, NUMBER, STRING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from stretto_fidl.compiler.token_stream import TokenStream

    Parsed = TypeVar("Parsed")

LAYOUTS = ("struct", "table", "union", "overlay", "enum", "bits")
_MODIFIERS = ("strict", "flexible", "resource")


class NewParser(ParserBase):
    """Parses one file of the current syntax; see `ParserBase`."""

    def __init__(self, tokens: TokenStream) -> None:
        super().__init__(tokens)
        self._statements: dict[str, Callable[[list[Attribute]], Declaration]] = {
            "alias": self._alias,
            "const": self._const,
            "resource_definition": self._resource,
            "service": self._service,
            "type": self._type_declaration,
        }
        self._members: dict[str, Callable[[list[Attribute]], Member]] = {
            "struct": self._struct_member,
            "table": self._ordinal_member,
            "union": self._ordinal_member,
            "overlay": self._ordinal_member,
            "enum": self._value_member,
            "bits": self._value_member,
        }

    def _attributes(self) -> list[Attribute]:
        found: list[Attribute] = []
        while self._tokens.at("@", DOC):
            if self._tokens.at(DOC):
                found.insert(0, self._doc_comment())
            else:
                found.append(self._attribute())
        return found

    def _attribute(self) -> Attribute:
        at = self._tokens.take()
        name = self._name("after `@`")
        arguments: list[AttributeArgument] = []
        if self._tokens.accept("("):
            if self._tokens.at(")"):
                raise at.span.to(name.span).error("an attribute without arguments has no `()`")
            arguments = [self._argument()]
            while self._tokens.accept(","):
                arguments.append(self._argument())
            self._tokens.expect(")", "after the attribute's arguments")
        for argument in arguments:
            if len(arguments) > 1 and argument.name is None:
                raise argument.span.error("where there are several arguments, all have names")
        return Attribute(self._tokens.since(at), name.text, arguments)

    def _declaration(self, attributes: list[Attribute]) -> Declaration:
        modifiers = self._modifiers(*_MODIFIERS, "open", "ajar", "closed")
        word = self._tokens.current
        if word.kind != NAME or word.text not in (*self._statements, "protocol"):
            known = ", ".join([*self._statements, "protocol"])
            raise self._tokens.unexpected("a declaration", f"here: {known}")
        if modifiers and word.text != "protocol":
            raise modifiers[0].span.error(
                f"`{modifiers[0].name}` doesn't go with `{word.text}`: "
                "modifiers of a type stand behind the `=`"
            )
        self._tokens.take()
        if word.text == "protocol":
            return self._protocol(attributes, modifiers)
        return self._statements[word.text](attributes)

    def _type_declaration(self, attributes: list[Attribute]) -> Declaration:
        name = self._name("after `type`")
        self._tokens.expect("=", "after the type's name")
        if self._tokens.at("@", DOC):
            raise self._tokens.current.span.error(
                "attributes of a type stand before `type`, not behind the `=`"
            )
        return TypeDeclaration(name.span, name.text, attributes, self._type())

    def _alias(self, attributes: list[Attribute]) -> Declaration:
        name = self._name("after `alias`")
        self._tokens.expect("=", "after the alias")
        return AliasDeclaration(name.span, name.text, attributes, self._named_type())

    def _const(self, attributes: list[Attribute]) -> Declaration:
        name = self._name("after `const`")
        type_ = self._named_type()
        self._tokens.expect("=", "after the constant's type")
        return ConstDeclaration(name.span, name.text, attributes, type_, self._constant())

    def _service(self, attributes: list[Attribute]) -> Declaration:
        name = self._name("after `service`")
        members = self._block("service", self._typed_member)
        return ServiceDeclaration(name.span, name.text, attributes, members)

    def _resource(self, attributes: list[Attribute]) -> Declaration:
        name = self._name("after `resource_definition`")
        subtype = self._named_type() if self._tokens.accept(":") else None
        self._tokens.expect("{", "at the start of the resource")
        self._tokens.expect_word("properties", "first in a resource")
        properties = self._block("resource", self._typed_member)
        self._tokens.expect(";", "after the properties")
        self._tokens.expect("}", "at the end of the resource")
        return ResourceDeclaration(name.span, name.text, attributes, subtype, properties)

    def _block(self, what: str, parse: Callable[[list[Attribute]], Parsed]) -> list[Parsed]:
        self._tokens.expect("{", f"at the start of the {what}")
        members = []
        while not self._tokens.at("}"):
            members.append(parse(self._attributes()))
            self._tokens.expect(";", "after the member")
        self._tokens.expect("}", f"at the end of the {what}")
        return members

    def _type(self) -> TypeConstructor:
        """Parse a type, or a layout with its attributes."""
        with self._tokens.nested():
            attributes = self._attributes()
            first = self._tokens.current
            if self._at_layout():
                layout = self._layout(attributes)
                result = TypeConstructor(layout.span, layout)
            else:
                if attributes:
                    raise attributes[0].span.error(
                        "attributes go with a layout that stands here, not with the name of a type"
                    )
                result = TypeConstructor(first.span, self._reference("as a type"))
            return self._with_arguments(result)

    def _named_type(self) -> TypeConstructor:
        if self._at_layout():
            raise self._tokens.current.span.error(
                "a layout can't stand here: give it a name by `type Name = …`"
            )
        return self._type()

    def _at_layout(self) -> bool:
        """Return whether a layout begins here, such as `struct {`.

        A type may be named `struct`, too.
        """
        count = 0
        while self._tokens.ahead(count).text in _MODIFIERS:
            count += 1
        word, after = self._tokens.ahead(count), self._tokens.ahead(count + 1)
        is_layout = word.kind == NAME and word.text in LAYOUTS
        return (count > 0 and word.kind in (NAME, "(")) or (is_layout and after.kind in ("{", ":"))

    def _layout(self, attributes: list[Attribute]) -> Layout:
        first = self._tokens.current
        modifiers = self._modifiers(*_MODIFIERS)
        kind = self._name("as the layout's kind").text
        if kind not in LAYOUTS:
            raise self._tokens.previous.span.error(
                f"`{kind}` isn't a layout: there are {', '.join(LAYOUTS)}"
            )
        subtype = self._named_type() if self._tokens.accept(":") else None
        if subtype is not None and kind not in ("enum", "bits"):
            raise subtype.span.error(
                f"{with_article(kind)} has no underlying type: only enum and bits have one"
            )
        members = self._block(kind, self._members[kind])
        return Layout(self._tokens.since(first), kind, modifiers, members, subtype, attributes)

    def _with_arguments(self, result: TypeConstructor) -> TypeConstructor:
        first = self._tokens.previous
        start = result.span
        if self._tokens.at("<"):
            result.parameters = self._angled(self._parameter)
        if self._tokens.at(":"):
            self._tokens.take()
            if self._tokens.at("<"):
                result.constraints = self._angled(self._constant)
            else:
                result.constraints = [self._constant()]
        if self._tokens.previous is not first or not isinstance(result.target, Layout):
            result.span = start.to(self._tokens.previous.span)
        return result

    def _angled(self, parse: Callable[[], Parsed]) -> list[Parsed]:
        self._tokens.expect("<", "here")
        found = [parse()]
        while self._tokens.accept(","):
            found.append(parse())
        self._tokens.expect(">", "at the end of the list")
        return found

    def _parameter(self) -> TypeConstructor | Constant:
        if self._tokens.at(NUMBER, STRING, "(") or self._tokens.at_word("true", "false"):
            return self._constant()
        return self._type()

    def _typed_member(self, attributes: list[Attribute]) -> Member:
        name = self._name("of the member")
        return Member(name.span, name.text, attributes, self._type())

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
        name = self._name("of the member")
        member = Member(name.span, name.text, attributes, self._type(), None, ordinal, at.span)
        if self._tokens.at("="):
            raise self._tokens.current.span.error("only members of structs have defaults")
        return member

    def _value_member(self, attributes: list[Attribute]) -> Member:
        name = self._name("of the member")
        self._tokens.expect("=", "after the member's name, then its value")
        return Member(name.span, name.text, attributes, value=self._constant())

    def _protocol(self, attributes: list[Attribute], modifiers: list[Modifier]) -> Declaration:
        name = self._name("after `protocol`")
        result = ProtocolDeclaration(name.span, name.text, attributes, modifiers, [], [])
        for member in self._block("protocol", self._protocol_member):
            if isinstance(member, Compose):
                result.composed.append(member)
            else:
                result.methods.append(member)
        return result

    def _protocol_member(self, attributes: list[Attribute]) -> Compose | Method:
        modifiers = self._modifiers(*_MODIFIERS, "open", "ajar", "closed")
        if self._tokens.at_word("compose") and self._tokens.ahead(1).kind == NAME:
            if modifiers:
                raise modifiers[0].span.error("`compose` has no modifiers")
            self._tokens.take()
            reference = self._reference("after `compose`")
            return Compose(reference.span, reference, attributes)
        for modifier in modifiers:
            if modifier.name not in ("strict", "flexible"):
                raise modifier.span.error(f"a method can't be `{modifier.name}`")
        return self._event(attributes, modifiers) or self._method(attributes, modifiers)

    def _event(self, attributes: list[Attribute], modifiers: list[Modifier]) -> Method | None:
        if not self._tokens.accept("->"):
            return None
        name = self._name("of the event")
        response = self._payload()
        error = self._error()
        return Method(name.span, name.text, attributes, modifiers, None, response, error)

    def _method(self, attributes: list[Attribute], modifiers: list[Modifier]) -> Method:
        name = self._name("of the method")
        request = self._payload()
        response = self._payload() if self._tokens.accept("->") else None
        error = self._error()
        if error is not None and response is None:
            raise error.span.error("a method without a response can't have an error: add `-> ()`")
        return Method(name.span, name.text, attributes, modifiers, request, response, error)

    def _error(self) -> TypeConstructor | None:
        return self._type() if self._tokens.accept_word("error") else None

    def _payload(self) -> Payload:
        first = self._tokens.expect("(", "around what is sent")
        if self._tokens.at(DOC):
            raise self._tokens.current.span.error("doc comments can't stand before parameters")
        payload = None if self._tokens.at(")") else self._type()
        if payload is not None and self._tokens.at(NAME):
            raise self._tokens.current.span.error(
                "a method has one payload: write `(struct { name type; })`"
            )
        self._tokens.expect(")", "after what is sent")
        return Payload(self._tokens.since(first), payload)
