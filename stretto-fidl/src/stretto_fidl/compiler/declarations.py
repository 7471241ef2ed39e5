"""Declarations of a library, after parsing and before the IR.

The consumer makes them from the syntax tree, every layout in a layout being a
declaration of its own; the compiler fills in what it finds out: types, values,
shapes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto_fidl.compiler.constants import Value
    from stretto_fidl.compiler.library import Library
    from stretto_fidl.compiler.shapes import TypeShape
    from stretto_fidl.compiler.source import Span
    from stretto_fidl.compiler.syntax_tree import (
        Attribute,
        Constant,
        TypeConstructor,
    )
    from stretto_fidl.compiler.types import TypeUse

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
"""As the IR names them, in its order."""

NEW, COMPILING, COMPILED, FAILED = range(4)


@dataclass(slots=True, eq=False)
class Argument:
    """Of an attribute: its name, the IR's name of its type, its value."""

    name: str
    type: str
    value: Value
    span: Span


@dataclass(slots=True, eq=False)
class CompiledAttribute:
    """An attribute whose arguments have values."""

    name: str
    arguments: list[Argument]
    span: Span

    def text(self, name: str = "value") -> str | None:
        """The value of a string argument, if there is one of this name."""
        for argument in self.arguments:
            if argument.name == name and isinstance(argument.value.value, str):
                return argument.value.value
        return None


@dataclass(slots=True, eq=False)
class Element:
    """Anything with a name, a place and attributes.

    Attributes:
        syntax_attributes: As written.
        attributes: Compiled.
        deprecated: At the version that is compiled.
    """

    name: str
    span: Span
    syntax_attributes: list[Attribute]
    attributes: list[CompiledAttribute] = field(default_factory=list, kw_only=True)
    deprecated: bool = field(default=False, kw_only=True)

    def attribute(self, name: str) -> CompiledAttribute | None:
        """The first attribute of this name."""
        return next((a for a in self.attributes if a.name == name), None)


@dataclass(slots=True, eq=False)
class Member(Element):
    """A member of a layout, service or resource.

    Attributes:
        ordinal: Of a table or union.
        type_syntax: As written; None where there is no type.
        type: What it is.
        value_syntax: Of enum and bits members, and defaults of struct members.
        value: What that is.
        offset: Of a struct member, in bytes.
        padding: Behind it, in bytes.
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
    """A declaration.

    Attributes:
        kind: See `KINDS`.
        library: Where it belongs.
        state: How far the compiler is.
    """

    kind: str
    library: Library
    state: int = field(default=NEW, kw_only=True)

    @property
    def full_name(self) -> str:
        """`library/Name`."""
        return f"{self.library.name}/{self.name}"


@dataclass(slots=True, eq=False)
class LayoutDecl(Decl):
    """Struct, table, union, overlay, enum or bits.

    Attributes:
        naming_context: See `names`.
        anonymous: It stands inside of another declaration: nobody can refer to it.
        strict: Unknown members are errors.
        resource: May hold handles; None: find out by its members.
        is_result: The union of a method's success and error.
        is_empty_success: The struct of a success without values.
        subtype_syntax: Underlying type of enum and bits, as written.
        subtype: What that is.
        mask: Of bits: all values.
        unknown_value: Of a flexible enum.
        reserved: Ordinals of a table or union that are not to be used again.
        old: Written in the old syntax.
        marked: `strict` or `flexible` stands there.
        shape: Sizes; None before they are computed.
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
    """A constant."""

    type_syntax: TypeConstructor
    value_syntax: Constant
    type: TypeUse | None = None
    value: Value | None = None


@dataclass(slots=True, eq=False)
class AliasDecl(Decl):
    """Another name of a type, or a new type (`kind` tells)."""

    type_syntax: TypeConstructor
    type: TypeUse | None = None


@dataclass(slots=True, eq=False)
class ResourceDecl(Decl):
    """What handles are, and the properties that narrow them."""

    subtype_syntax: TypeConstructor | None
    properties: list[Member]
    subtype: TypeUse | None = None

    def property_named(self, name: str) -> Member | None:
        """`subtype` or `rights`, if it has that."""
        return next((p for p in self.properties if p.name == name), None)


@dataclass(slots=True, eq=False)
class ServiceDecl(Decl):
    """Protocols that are served under one name."""

    members: list[Member]


@dataclass(slots=True, eq=False)
class Composed(Element):
    """`compose P`; `name` is as written."""

    reference: TypeConstructor
    protocol: ProtocolDecl | None = None


@dataclass(slots=True, eq=False)
class MethodDecl(Element):
    """A method or an event.

    Attributes:
        kind: As the IR names it: `oneway`, `twoway`, `event`.
        protocol: The one that defines it.
        request_syntax: Payload; None where there is none.
        response_syntax: The same; the result union where there is one.
        success_syntax: In a result: what comes in success.
        error_syntax: In a result: what comes else.
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
        """A message goes from the client to the server."""
        return self.kind != "event"

    @property
    def has_response(self) -> bool:
        """A message goes from the server to the client."""
        return self.kind != "oneway"


@dataclass(slots=True, eq=False)
class ProtocolDecl(Decl):
    """A protocol.

    Attributes:
        openness: `open`, `ajar` or `closed`.
        composed: What it says by `compose`.
        methods: Its own.
        all_methods: With those of the composed ones, each with whether it is composed.
    """

    openness: str
    composed: list[Composed]
    methods: list[MethodDecl]
    all_methods: list[tuple[MethodDecl, bool]] = field(default_factory=list)

    @property
    def transport(self) -> str:
        """`Channel`, unless `@transport` says otherwise."""
        attribute = self.attribute("transport")
        return (attribute.text() if attribute else None) or "Channel"
