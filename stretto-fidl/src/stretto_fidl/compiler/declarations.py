"""Declarations of a library, after parsing and before the IR.

`consume` makes declarations from the syntax tree; a nested layout has its own declaration. The
compiler adds the types, values and shapes of the declarations.
"""

from __future__ import annotations

from dataclasses import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto_fidl.compiler.library import Library
    from stretto_fidl.compiler.source import Span
    from stretto_fidl.compiler.syntax_tree import (
        Attribute,
        Constant,
        TypeConstructor,
    )
    from stretto_fidl.compiler.type_shape import TypeShape
    from stretto_fidl.compiler.types import TypeUse
    from stretto_fidl.compiler.values import Value

BITS = "bits"
CONST = "const"
ENUM = "enum"
RESOURCE = "experimental_resource"
PROTOCOL = "protocol"
SERVICE = "service"
STRUCT = "struct"
TABLE = "table"
UNION = "union"
OVERLAY = "overlay"
ALIAS = "alias"
NEW_TYPE = "new_type"

KINDS = (
    BITS,
    CONST,
    ENUM,
    RESOURCE,
    PROTOCOL,
    SERVICE,
    STRUCT,
    TABLE,
    UNION,
    OVERLAY,
    ALIAS,
    NEW_TYPE,
)
"""The kinds of declarations by their keys in the IR, in the order of the IR."""

NEW, COMPILING, COMPILED, FAILED = range(4)


@dataclass(slots=True, eq=False)
class Argument:
    """An argument of an attribute: its name, its type as the IR names it, and its value."""

    name: str
    type: str
    value: Value
    span: Span


@dataclass(slots=True, eq=False)
class CompiledAttribute:
    """An attribute whose arguments have been evaluated."""

    name: str
    arguments: list[Argument]
    span: Span

    def text(self, name: str = "value") -> str | None:
        """Return the value of the string argument called `name`; None if there is none."""
        for argument in self.arguments:
            if argument.name == name and isinstance(argument.value.value, str):
                return argument.value.value
        return None


@dataclass(slots=True, eq=False)
class Element:
    """Base of everything that has a name, a place and attributes.

    Attributes:
        syntax_attributes: The attributes in the syntax tree.
        attributes: The compiled attributes.
        deprecated: Whether the element is deprecated in the compiled version.
    """

    name: str
    span: Span
    syntax_attributes: list[Attribute]
    attributes: list[CompiledAttribute] = field(default_factory=list, kw_only=True)
    deprecated: bool = field(default=False, kw_only=True)

    def attribute(self, name: str) -> CompiledAttribute | None:
        """Return the first attribute with a name; None if no attribute has the name."""
        return next((a for a in self.attributes if a.name == name), None)


@dataclass(slots=True, eq=False)
class Member(Element):
    """A member of a layout, service or resource.

    Attributes:
        ordinal: The ordinal of a table's or union's member.
        type_syntax: The type in the syntax tree; None for a member without a type.
        type: The compiled type.
        value_syntax: The value of an enum's or bits' member, or a struct member's default.
        value: The compiled value.
        offset: The offset of a struct member, in bytes.
        padding: The padding behind a struct member, in bytes.
    """

    ordinal: int = 0
    type_syntax: TypeConstructor | None = None
    type: TypeUse | None = None
    value_syntax: Constant | None = None
    value: Value | None = None
    offset: int = 0
    padding: int = 0


@dataclass(slots=True, eq=False)
class Decl(Element):
    """Base of all declarations.

    Attributes:
        kind: The kind of declaration, one of `KINDS`.
        library: The library of the declaration.
        state: How far the declaration is compiled.
    """

    kind: str
    library: Library
    state: int = field(default=NEW, kw_only=True)

    @property
    def full_name(self) -> str:
        """The full name, `library/Name`."""
        return f"{self.library.name}/{self.name}"


@dataclass(slots=True, eq=False)
class LayoutDecl(Decl):
    """A struct, table, union, overlay, enum or bits.

    Attributes:
        naming_context: The place that gives the layout its default name (`names`).
        anonymous: Whether the layout is written inside another declaration; no name can refer to
            it.
        strict: Whether unknown members are errors.
        resource: Whether values may hold handles; None until this is inferred from the members.
        is_result: Whether the layout is the generated union of a method's success and errors.
        is_empty_success: Whether the layout is the generated struct for a success without values.
        subtype_syntax: The underlying type of an enum or bits in the syntax tree.
        subtype: The compiled underlying type.
        mask: The bitwise OR of all members of bits.
        unknown_value: The value of a flexible enum for unknown members.
        reserved: The reserved ordinals of a table or union.
        old: Whether the layout is written in the old syntax.
        marked: Whether the layout is written with `strict` or `flexible`.
        shape: The sizes on the wire; None before they are computed.
    """

    naming_context: tuple[str, ...]
    members: list[Member]
    anonymous: bool = False
    strict: bool = True
    resource: bool | None = False
    is_result: bool = False
    is_empty_success: bool = False
    subtype_syntax: TypeConstructor | None = None
    subtype: TypeUse | None = None
    mask: int = 0
    unknown_value: int = 0
    reserved: list[tuple[int, Span]] = field(default_factory=list)
    old: bool = False
    marked: bool = False
    shape: TypeShape | None = None


@dataclass(slots=True, eq=False)
class ConstDecl(Decl):
    """The declaration of a constant."""

    type_syntax: TypeConstructor
    value_syntax: Constant
    type: TypeUse | None = None
    value: Value | None = None


@dataclass(slots=True, eq=False)
class AliasDecl(Decl):
    """The declaration of an alias or, depending on its `kind`, of a new type."""

    type_syntax: TypeConstructor
    type: TypeUse | None = None


@dataclass(slots=True, eq=False)
class ResourceDecl(Decl):
    """A resource definition: the type of handles, and their properties."""

    subtype_syntax: TypeConstructor | None
    properties: list[Member]
    subtype: TypeUse | None = None

    def property_named(self, name: str) -> Member | None:
        """Return the property `subtype` or `rights`; None if the resource lacks the property."""
        return next((p for p in self.properties if p.name == name), None)


@dataclass(slots=True, eq=False)
class ServiceDecl(Decl):
    """A service: a group of protocols with one name."""

    members: list[Member]


@dataclass(slots=True, eq=False)
class Composed(Element):
    """A statement `compose P`; `name` is the name of the protocol as the file has it."""

    reference: TypeConstructor
    protocol: ProtocolDecl | None = None


@dataclass(slots=True, eq=False)
class MethodDecl(Element):
    """A method or an event.

    Attributes:
        kind: The kind in the IR: `oneway`, `twoway`, `event`.
        protocol: The protocol that defines the method.
        request_syntax: The payload of the request; None without a payload.
        response_syntax: The payload of the response, or the result union; None without a payload.
        success_syntax: The payload of a result's success.
        error_syntax: The type of a result's error.
    """

    kind: str
    protocol: ProtocolDecl
    strict: bool
    ordinal: int = 0
    selector: str = ""
    request_syntax: TypeConstructor | None = None
    response_syntax: TypeConstructor | None = None
    success_syntax: TypeConstructor | None = None
    error_syntax: TypeConstructor | None = None
    request: TypeUse | None = None
    response: TypeUse | None = None
    success: TypeUse | None = None
    error: TypeUse | None = None
    has_error: bool = False

    @property
    def has_request(self) -> bool:
        """Whether the client sends a request of the method."""
        return self.kind != "event"

    @property
    def has_response(self) -> bool:
        """Whether the server sends a response or an event of the method."""
        return self.kind != "oneway"


@dataclass(slots=True, eq=False)
class ProtocolDecl(Decl):
    """A protocol.

    Attributes:
        openness: `open`, `ajar` or `closed`.
        composed: The `compose` statements of the protocol.
        methods: The methods that the protocol itself defines.
        all_methods: All methods, as pairs: the method, and whether it comes from a composed
            protocol.
    """

    openness: str
    composed: list[Composed]
    methods: list[MethodDecl]
    all_methods: list[tuple[MethodDecl, bool]] = field(default_factory=list)

    @property
    def transport(self) -> str:
        """The value of `@transport`; `Channel` by default."""
        attribute = self.attribute("transport")
        return (attribute.text() if attribute else None) or "Channel"
