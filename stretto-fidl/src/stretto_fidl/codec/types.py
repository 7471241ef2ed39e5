"""The types of FIDL for the codec.

Types are made from the compiler's JSON IR (`stretto_fidl.bindings.ir`) or by generated code. A
named type has the Python class of its values (`cls`), which `stretto_fidl.bindings` sets. Types
refer to named types by `Reference`, because definitions may be recursive; a `Library` resolves
references.

    FIDL                 values
    bool, int8 … float64 bool, int, float
    string               str
    vector<T>, array     list (any sequence is taken); of uint8: bytes
    enum, bits           an int of the definition's class
    struct, table, union an object of the definition's class
    handles, endpoints   `Handle`
    anything optional    None if absent
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from stretto_fidl.codec.handle import CHANNEL, DEFAULT_RIGHTS, SAME_RIGHTS
from stretto_fidl.errors import FidlError
from stretto_fidl.python_names import OF_RECORDS, OF_UNIONS, python_name

if TYPE_CHECKING:
    from collections.abc import Iterable

UNBOUNDED: Final = 0xFFFFFFFF
"""The bound of strings and vectors without a written bound: counts have 32 bits."""


class Type:
    """Base of all types. A type also stores the functions that the codec compiles for the type."""

    __slots__ = ("plans",)

    def __init__(self) -> None:
        self.plans: dict[object, Any] = {}


class Primitive(Type):
    """A bool, an integer or a float.

    Args:
        name: The name in FIDL.
        code: The format of the struct module.
        size: The size in bytes.
        low: The smallest value; None for floats.
        high: The largest value; None for floats.
    """

    __slots__ = ("code", "high", "low", "name", "size")

    def __init__(self, name: str, code: str, size: int, low: int | None, high: int | None) -> None:
        super().__init__()
        self.name, self.code, self.size, self.low, self.high = name, code, size, low, high


def _integers() -> dict[str, Primitive]:
    found = {}
    for size, code in ((1, "b"), (2, "h"), (4, "i"), (8, "q")):
        bits = 8 * size
        signed = Primitive(f"int{bits}", code, size, -(1 << bits - 1), (1 << bits - 1) - 1)
        unsigned = Primitive(f"uint{bits}", code.upper(), size, 0, (1 << bits) - 1)
        found.update({signed.name: signed, unsigned.name: unsigned})
    return found


PRIMITIVES: Final = {
    "bool": Primitive("bool", "B", 1, 0, 1),
    **_integers(),
    "float32": Primitive("float32", "f", 4, None, None),
    "float64": Primitive("float64", "d", 8, None, None),
}
"""The primitive types by their names in FIDL."""

BOOL, UINT8, INT32 = PRIMITIVES["bool"], PRIMITIVES["uint8"], PRIMITIVES["int32"]
INT8, INT16, INT64 = PRIMITIVES["int8"], PRIMITIVES["int16"], PRIMITIVES["int64"]
UINT16, UINT32, UINT64 = PRIMITIVES["uint16"], PRIMITIVES["uint32"], PRIMITIVES["uint64"]
FLOAT32, FLOAT64 = PRIMITIVES["float32"], PRIMITIVES["float64"]


class String(Type):
    """A string of at most `bound` bytes of UTF-8."""

    __slots__ = ("bound", "optional")

    def __init__(self, bound: int = UNBOUNDED, optional: bool = False) -> None:
        super().__init__()
        self.bound, self.optional = bound, optional


class Vector(Type):
    """A vector of at most `bound` elements."""

    __slots__ = ("bound", "element", "optional")

    def __init__(self, element: Type, bound: int = UNBOUNDED, optional: bool = False) -> None:
        super().__init__()
        self.element, self.bound, self.optional = element, bound, optional


class Array(Type):
    """An array of exactly `count` elements, which are encoded inline."""

    __slots__ = ("count", "element")

    def __init__(self, element: Type, count: int) -> None:
        super().__init__()
        self.element, self.count = element, count


class StringArray(Type):
    """A string in exactly `count` bytes of UTF-8, padded with zeros (experimental in FIDL)."""

    __slots__ = ("count",)

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count


class HandleType(Type):
    """The type of handles to objects of one type.

    The object type `ANY` stands for all types. A received handle must have at least `rights`.
    """

    __slots__ = ("object_type", "optional", "rights")

    def __init__(
        self, object_type: int = 0, rights: int = SAME_RIGHTS, optional: bool = False
    ) -> None:
        super().__init__()
        self.object_type, self.rights, self.optional = object_type, rights, optional


class Endpoint(HandleType):
    """The type of a channel end: a protocol and the role `client` or `server`.

    Its handle has all rights of a new channel.
    """

    __slots__ = ("protocol", "role")

    def __init__(self, role: str, protocol: str, optional: bool = False) -> None:
        super().__init__(CHANNEL, DEFAULT_RIGHTS[CHANNEL], optional)
        self.role, self.protocol = role, protocol


class Reference(Type):
    """A reference to a named type of a library or of its dependencies."""

    __slots__ = ("library", "name", "optional")

    def __init__(self, library: Library, name: str, optional: bool = False) -> None:
        super().__init__()
        self.library, self.name, self.optional = library, name, optional


class Member:
    """A member of a struct, table or union.

    Args:
        name: The name in FIDL.
        type_: The type of its value.
        ordinal: The ordinal, in tables and unions.
        sensitive: Whether texts of the object leave out the value.
        default: The default of a struct's member; None without a default.

    Attributes:
        python_name: The name in Python (see `python_names`). A union may append a `_` to it.
    """

    __slots__ = ("default", "name", "ordinal", "python_name", "sensitive", "type")

    def __init__(
        self,
        name: str,
        type_: Type,
        ordinal: int = 0,
        sensitive: bool = False,
        default: Any = None,
    ) -> None:
        self.name, self.type, self.ordinal, self.sensitive = name, type_, ordinal, sensitive
        self.python_name = python_name(name, OF_RECORDS)
        self.default = default


class Named(Type):
    """A definition with a name, and with a class for its values."""

    __slots__ = ("cls", "name", "sensitive")

    def __init__(self, name: str, sensitive: bool = False) -> None:
        super().__init__()
        self.name, self.sensitive = name, sensitive
        self.cls: Any = None

    @property
    def short_name(self) -> str:
        """The name without the library."""
        return self.name.rpartition("/")[2]


class Enum(Named):
    """An enum type, with the numbers of its members by name.

    A flexible enum accepts other numbers too.
    """

    __slots__ = ("strict", "underlying", "values")

    def __init__(
        self,
        name: str,
        underlying: Primitive,
        values: dict[str, int],
        strict: bool = False,
        sensitive: bool = False,
    ) -> None:
        super().__init__(name, sensitive)
        self.underlying, self.values, self.strict = underlying, values, strict


class Bits(Enum):
    """A type of bits, with its flags by name.

    Flexible bits accept other flags too.
    """

    __slots__ = ()

    @property
    def mask(self) -> int:
        """The bitwise OR of all flags."""
        mask = 0
        for value in self.values.values():
            mask |= value
        return mask


FRAMEWORK_ERROR: Final = Enum("fidl/FrameworkError", INT32, {"UNKNOWN_METHOD": -2}, strict=True)
"""The error of a receiver that doesn't know a flexible method."""


class Struct(Named):
    """A struct: members in a fixed order."""

    __slots__ = ("members", "resource")

    def __init__(
        self,
        name: str,
        members: tuple[Member, ...],
        resource: bool = False,
        sensitive: bool = False,
    ) -> None:
        super().__init__(name, sensitive)
        self.members, self.resource = members, resource

    @property
    def hidden(self) -> frozenset[str]:
        """The names of the sensitive members; all names if the struct is sensitive."""
        return frozenset(each.name for each in self.members if self.sensitive or each.sensitive)


class Table(Struct):
    """A table: members by ordinal, each of which may be absent."""

    __slots__ = ()


class Union(Struct):
    """A union: one of several members. A flexible union may hold an unknown member."""

    __slots__ = ("strict",)

    def __init__(
        self,
        name: str,
        members: tuple[Member, ...],
        strict: bool = False,
        resource: bool = False,
        sensitive: bool = False,
    ) -> None:
        super().__init__(name, members, resource, sensitive)
        self.strict = strict
        for member in members:
            member.python_name = python_name(member.name, OF_UNIONS)


AnyNamed = TypeVar("AnyNamed", bound=Named)


class Library:
    """Named types, and the libraries that they depend on.

    Args:
        name: The name in FIDL.
        dependencies: The libraries whose types this library may mention.
        sensitive: The names of the library's sensitive aliases and new types. The IR has no types
            for them.
    """

    __slots__ = ("dependencies", "name", "sensitive", "types")

    def __init__(
        self,
        name: str,
        dependencies: tuple[Library, ...] = (),
        sensitive: Iterable[str] = (),
    ) -> None:
        self.name = name
        self.dependencies = dependencies
        self.sensitive = frozenset(sensitive)
        self.types: dict[str, Named] = {}

    def add(self, named: AnyNamed) -> AnyNamed:
        """Add a definition to this library, and return the definition."""
        self.types[named.name] = named
        return named

    def ref(self, name: str, optional: bool = False) -> Reference:
        """Return a reference to a definition, which may be added after this call."""
        return Reference(self, name, optional)

    def find(self, name: str) -> Named:
        """Return the definition with this full name.

        Raises:
            FidlError: There is no such definition.
        """
        for library in (self, *self.dependencies):
            if name in library.types:
                return library.types[name]
        raise FidlError(
            f"{self.name} mentions {name}, which is defined neither there nor in its dependencies; "
            "load the IR of that library first and pass it as a dependency"
        )


def resolve(type_: Type) -> tuple[Type, bool]:
    """Return the type that a reference refers to, and whether the reference is optional."""
    if isinstance(type_, Reference):
        return type_.library.find(type_.name), type_.optional
    return type_, False
