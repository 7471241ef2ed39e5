"""The syntax tree of a file, for both syntaxes.

No names are resolved or checked here. If a construct has another meaning in the old syntax, its
node has the mark `old`, or the parser writes the construct in the new syntax. So `T?` becomes
`TypeConstructor.optional`, and a parameter list becomes a struct layout.
"""

from __future__ import annotations

from dataclasses import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto_fidl.compiler.source import Span


@dataclass(slots=True)
class Reference:
    """A reference: `Name`, `library.Name` or `Enum.MEMBER`.

    `Scope` finds out which of the three it is.
    """

    span: Span
    parts: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(self.parts)


@dataclass(slots=True)
class Literal:
    """A number, string, bool or doc comment.

    Attributes:
        kind: The kind in the IR: `numeric`, `string`, `bool`.
        text: The text in the file.
        value: A string without escapes, or a bool. None for a number, whose value depends on the
            expected type.
    """

    span: Span
    kind: str
    text: str
    value: str | bool | None = None


@dataclass(slots=True)
class Identifier:
    """A constant given by the name of another constant or of a member."""

    span: Span
    reference: Reference


@dataclass(slots=True)
class Or:
    """Values joined by `|`: `a | b | c`."""

    span: Span
    operands: list[Constant]


Constant = Literal | Identifier | Or


@dataclass(slots=True)
class AttributeArgument:
    """One argument of an attribute: `name = value`.

    The name is None if only the value is written.
    """

    span: Span
    name: str | None
    value: Constant


@dataclass(slots=True)
class Attribute:
    """An attribute: `@name(arguments)`, `[Name = "value"]`, or a doc comment.

    Attributes:
        name: The name in snake_case, in both syntaxes.
    """

    span: Span
    name: str
    arguments: list[AttributeArgument] = field(default_factory=list)
    is_doc: bool = False


@dataclass(slots=True)
class Modifier:
    """A modifier: `strict`, `flexible`, `resource`, `open`, `ajar`, `closed`.

    Attributes:
        versions: The arguments that say in which versions the modifier applies: `strict(added=2)`.
    """

    span: Span
    name: str
    versions: list[AttributeArgument] = field(default_factory=list)


@dataclass(slots=True)
class TypeConstructor:
    """A use of a type: `vector<T>:<5, optional>`.

    Attributes:
        target: The name of the type, or a layout.
        parameters: The parameters between the angle brackets. A lone name may be a constant:
            `array<T, SIZE>`.
        constraints: The constraints after the colon.
        optional: Whether `?` follows the type, as the old syntax has it.
        old: Whether the file has the old syntax, in which the name of a protocol is a type.
    """

    span: Span
    target: Reference | Layout
    parameters: list[TypeConstructor | Constant] = field(default_factory=list)
    constraints: list[Constant] = field(default_factory=list)
    optional: Span | None = None
    old: bool = False


@dataclass(slots=True)
class Member:
    """A member of a struct, table, union, enum, bits, service or resource.

    Attributes:
        name: "" for a reserved ordinal.
        span: The place of the name, or of `reserved`.
        type: The type; None for enum and bits members, and reserved ordinals.
        value: The value of an enum or bits member; the default of a struct member.
        ordinal: The ordinal of a table or union member.
        ordinal_span: The place of the ordinal.
    """

    span: Span
    name: str
    attributes: list[Attribute]
    type: TypeConstructor | None = None
    value: Constant | None = None
    ordinal: int | None = None
    ordinal_span: Span | None = None


@dataclass(slots=True)
class Layout:
    """A layout: `resource struct { … }`.

    Attributes:
        span: The place, with modifiers and without attributes.
        kind: `struct`, `table`, `union`, `overlay`, `enum`, `bits`.
        subtype: The subtype of an enum or bits: `: uint8`.
        attributes: The attributes of a layout within another declaration.
        old: Whether the layout is in the old syntax, which has no `resource`.
        declared: The LayoutDecl that `consume` made.
    """

    span: Span
    kind: str
    modifiers: list[Modifier]
    members: list[Member]
    subtype: TypeConstructor | None = None
    attributes: list[Attribute] = field(default_factory=list)
    old: bool = False
    declared: object = None


@dataclass(slots=True)
class Payload:
    """The payload between the parentheses of a request or response.

    Attributes:
        span: The place, with the parentheses.
        type: The type of the payload; None for `()`.
    """

    span: Span
    type: TypeConstructor | None


@dataclass(slots=True)
class Method:
    """A method or an event of a protocol.

    Attributes:
        request: The payload of the request; None for an event.
        response: The payload of the response or event; None for a one-way method.
    """

    span: Span
    name: str
    attributes: list[Attribute]
    modifiers: list[Modifier]
    request: Payload | None
    response: Payload | None
    error: TypeConstructor | None
    old: bool = False


@dataclass(slots=True)
class Compose:
    """A statement `compose P;`."""

    span: Span
    reference: Reference
    attributes: list[Attribute]


@dataclass(slots=True)
class Declaration:
    """Base of a file's declarations."""

    span: Span
    name: str
    attributes: list[Attribute]


@dataclass(slots=True)
class TypeDeclaration(Declaration):
    """A type declaration: `type Name = layout;`, or a new type `type Name = T;`."""

    type: TypeConstructor


@dataclass(slots=True)
class AliasDeclaration(Declaration):
    """An alias: `alias Name = T;`."""

    type: TypeConstructor


@dataclass(slots=True)
class ConstDeclaration(Declaration):
    """A constant: `const NAME T = value;`."""

    type: TypeConstructor
    value: Constant


@dataclass(slots=True)
class ProtocolDeclaration(Declaration):
    """A protocol: `protocol Name { … };`."""

    modifiers: list[Modifier]
    composed: list[Compose]
    methods: list[Method]
    old: bool = False


@dataclass(slots=True)
class ServiceDeclaration(Declaration):
    """A service: `service Name { … };`."""

    members: list[Member]


@dataclass(slots=True)
class ResourceDeclaration(Declaration):
    """A resource: `resource_definition Name : uint32 { properties { … }; };`."""

    subtype: TypeConstructor | None
    properties: list[Member]


@dataclass(slots=True)
class Using:
    """An import: `using library.name as alias;`."""

    span: Span
    library: str
    alias: str | None


@dataclass(slots=True)
class File:
    """The syntax tree of one file.

    Attributes:
        library: The name of the library.
        span: The place of the name.
        attributes: The attributes of the library.
        versions: The arguments `added`, `deprecated`, `removed` and `replaced` in the file.
    """

    span: Span
    library: str
    attributes: list[Attribute]
    using: list[Using]
    declarations: list[Declaration]
    versions: list[AttributeArgument]
