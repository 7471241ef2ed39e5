"""The compiler's types. The resolver makes them from the types written in files."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto_fidl.compiler.declarations import (
        AliasDecl,
        Decl,
        ProtocolDecl,
        ResourceDecl,
    )
    from stretto_fidl.compiler.source import Span
    from stretto_fidl.compiler.values import Value

# The kinds of types have the names of the IR, except that the IR writes a box as an identifier.
PRIMITIVE = "primitive"
STRING = "string"
STRING_ARRAY = "string_array"
VECTOR = "vector"
ARRAY = "array"
HANDLE = "handle"
ENDPOINT = "endpoint"
IDENTIFIER = "identifier"
INTERNAL = "internal"
POINTER = "experimental_pointer"
BOX = "box"

SAME_RIGHTS = 0x8000_0000
"""The value of `rights` that keeps all rights of a handle."""

SIZES = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "uint8": 1,
    "uint16": 2,
    "uint32": 4,
    "uint64": 8,
    "float32": 4,
    "float64": 8,
}
"""The size of each primitive type in bytes."""

HANDLE_SUBTYPES = {
    0: "handle",
    1: "process",
    2: "thread",
    3: "vmo",
    4: "channel",
    5: "event",
    6: "port",
    9: "interrupt",
    11: "pcidevice",
    12: "debuglog",
    14: "socket",
    15: "resource",
    16: "eventpair",
    17: "job",
    18: "vmar",
    19: "fifo",
    20: "guest",
    21: "vcpu",
    22: "timer",
    23: "iommu",
    24: "bti",
    25: "profile",
    26: "pmt",
    27: "suspendtoken",
    28: "pager",
    29: "exception",
    30: "clock",
    31: "stream",
    32: "msi",
    37: "iob",
}
"""Zircon's object types by their names in the IR."""


UNBOUNDED = (1 << 32) - 1
"""The bound of types without a written bound: the greatest count on the wire."""


@dataclass(slots=True)
class Type:
    """A type of FIDL, with its constraints.

    Attributes:
        kind: One of the constants `PRIMITIVE` to `BOX`.
        subtype: The name of a primitive or internal type.
        element: The element of a vector, array, box or pointer.
        size: The length of an array or string array; the bound of a vector or string.
        nullable: Whether a value may be absent.
        decl: The declaration of a named type.
        protocol: The protocol of an endpoint.
        role: The role of an endpoint: `client` or `server`.
        resource: The resource definition of a handle.
        object_type: The object type of a handle.
        rights: The rights of a handle.
    """

    kind: str
    subtype: str = ""
    element: TypeUse | None = None
    size: int | None = None
    nullable: bool = False
    decl: Decl | None = None
    protocol: ProtocolDecl | None = None
    role: str = ""
    resource: ResourceDecl | None = None
    object_type: int = 0
    object_type_name: str = ""
    rights: int = SAME_RIGHTS

    @property
    def depth(self) -> int:
        """The depth of nesting: 1, plus 1 for each type around the innermost type."""
        type_, depth = self, 1
        while type_.element is not None:
            type_, depth = type_.element.type, depth + 1
        return depth

    @property
    def text(self) -> str:
        """The name of the type, as in error messages and in the IR: `vector`, `lib/Name`."""
        if self.kind in (PRIMITIVE, INTERNAL):
            return self.subtype
        if self.kind == IDENTIFIER and self.decl is not None:
            return self.decl.full_name
        if self.kind == HANDLE and self.resource is not None:
            return self.resource.full_name
        return f"{self.role}_end" if self.kind == ENDPOINT else self.kind


@dataclass(slots=True)
class AliasUse:
    """A type that is written as an alias's name, perhaps with further constraints."""

    decl: AliasDecl
    nullable: bool = False
    size: Value | None = None
    rights: Value | None = None


@dataclass(slots=True)
class TypeUse:
    """A use of a type.

    Attributes:
        span: The place in the file.
        type: The type that is used.
        alias: The alias whose name the file uses for the type; None without an alias.
        nullable: Whether this use has the constraint `optional`.
        bound: The bound that this use adds.
        rights: The rights that this use adds.
    """

    span: Span
    type: Type
    alias: AliasUse | None = None
    nullable: bool = False
    bound: Value | None = None
    rights: Value | None = None
    arguments: list[TypeUse] = field(default_factory=list)


def copy(type_: Type) -> Type:
    """Return a copy of a type, so that one use of the type can have its own constraints."""
    return replace(type_)


def primitive(name: str) -> Type:
    """Return a primitive type, such as `uint8`."""
    return Type(PRIMITIVE, name)
