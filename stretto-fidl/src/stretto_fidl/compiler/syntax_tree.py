"""What a file says, as the parsers of both syntaxes hand it on.

Nothing is looked up or checked here. Where the old syntax has another meaning
than the new one, a node has a mark (`old`), or the parser has rewritten it:
`T?` is `TypeConstructor.optional`, a parameter list is a struct layout.
"""

from __future__ import annotations

from dataclasses import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto_fidl.compiler.declarations import LayoutDecl
    from stretto_fidl.compiler.source import Span


@dataclass(slots=True)
class Reference:
    """`Name`, `library.Name`, `Enum.MEMBER`: which one is the resolver's business."""

    span: Span
    parts: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(self.parts)


@dataclass(slots=True)
class Literal:
    """A number, string, bool or doc comment.

    Attributes:
        kind: As the IR names it: `numeric`, `string`, `bool`.
        text: As written.
        value: The string, unescaped; the bool; None for a number, whose value
            depends on its type.
    """

    span: Span
    kind: str
    text: str
    value: str | bool | None = None


@dataclass(slots=True)
class Identifier:
    """A constant by its name."""

    span: Span
    reference: Reference


@dataclass(slots=True)
class Or:
    """`a | b | c`."""

    span: Span
    operands: list[Constant]


Constant = Literal | Identifier | Or


@dataclass(slots=True)
class AttributeArgument:
    """`name = value`, or a lone value, which has no name yet."""

    span: Span
    name: str | None
    value: Constant


@dataclass(slots=True)
class Attribute:
    """`@name(arguments)`, `[Name = "value"]`, or a doc comment.

    Attributes:
        name: In snake_case, in both syntaxes.
    """

    span: Span
    name: str
    arguments: list[AttributeArgument] = field(default_factory=list)
    is_doc: bool = False


@dataclass(slots=True)
class Modifier:
    """`strict`, `flexible`, `resource`, `open`, `ajar`, `closed`.

    Attributes:
        versions: `strict(added=2)`: from when to when it stands there.
    """

    span: Span
    name: str
    versions: list[AttributeArgument] = field(default_factory=list)


@dataclass(slots=True)
class TypeConstructor:
    """A use of a type: `vector<T>:<5, optional>`.

    Attributes:
        target: A name, or a layout that stands right here.
        parameters: Between the angle brackets. A lone name may turn out to be
            a constant: `array<T, SIZE>`.
        constraints: After the colon.
        optional: Old syntax: `?` follows.
        old: Written in the old syntax, where a protocol is a type.
    """

    span: Span
    target: Reference | Layout
    parameters: list[TypeConstructor | Constant] = field(default_factory=list)
    constraints: list[Constant] = field(default_factory=list)
    optional: Span | None = None
    old: bool = False


@dataclass(slots=True)
class Member:
    """Of a struct, table, union, enum, bits, service or resource.

    Attributes:
        name: "" for a reserved ordinal.
        span: Of the name, or of `reserved`.
        type: None for enum and bits members, and reserved ordinals.
        value: Of an enum or bits member; the default of a struct member.
        ordinal: Of a table or union member.
        ordinal_span: Where that one stands.
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
    """`resource struct { … }`.

    Attributes:
        span: With its modifiers, without its attributes.
        kind: `struct`, `table`, `union`, `overlay`, `enum`, `bits`.
        subtype: Of an enum or bits: `: uint8`.
        attributes: Of a layout within another declaration.
        old: Written in the old syntax, which has no `resource`.
        declared: What the consumer made of it.
    """

    span: Span
    kind: str
    modifiers: list[Modifier]
    members: list[Member]
    subtype: TypeConstructor | None = None
    attributes: list[Attribute] = field(default_factory=list)
    old: bool = False
    declared: LayoutDecl | None = None


@dataclass(slots=True)
class Payload:
    """What stands between the parentheses of a request or response.

    Attributes:
        span: With the parentheses.
        type: None for `()`.
    """

    span: Span
    type: TypeConstructor | None


@dataclass(slots=True)
class Method:
    """A method or an event of a protocol.

    Attributes:
        request: None for an event.
        response: None for a one-way method.
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
    """`compose P;`."""

    span: Span
    reference: Reference
    attributes: list[Attribute]


@dataclass(slots=True)
class Declaration:
    """Anything at the top of a file that has a name."""

    span: Span
    name: str
    attributes: list[Attribute]


@dataclass(slots=True)
class TypeDeclaration(Declaration):
    """`type Name = layout;`, or of another type: a new type."""

    type: TypeConstructor


@dataclass(slots=True)
class AliasDeclaration(Declaration):
    """`alias Name = T;`."""

    type: TypeConstructor


@dataclass(slots=True)
class ConstDeclaration(Declaration):
    """`const NAME T = value;`."""

    type: TypeConstructor
    value: Constant


@dataclass(slots=True)
class ProtocolDeclaration(Declaration):
    """`protocol Name { … };`."""

    modifiers: list[Modifier]
    composed: list[Compose]
    methods: list[Method]
    old: bool = False


@dataclass(slots=True)
class ServiceDeclaration(Declaration):
    """`service Name { … };`."""

    members: list[Member]


@dataclass(slots=True)
class ResourceDeclaration(Declaration):
    """`resource_definition Name : uint32 { properties { … }; };`."""

    subtype: TypeConstructor | None
    properties: list[Member]


@dataclass(slots=True)
class Using:
    """`using library.name as alias;`."""

    span: Span
    library: str
    alias: str | None


@dataclass(slots=True)
class File:
    """One file.

    Attributes:
        library: The name.
        span: Of the name.
        attributes: Of the library.
        versions: Arguments `added`, `deprecated`, `removed`, `replaced`, wherever they stand.
    """

    span: Span
    library: str
    attributes: list[Attribute]
    using: list[Using]
    declarations: list[Declaration]
    versions: list[AttributeArgument]
