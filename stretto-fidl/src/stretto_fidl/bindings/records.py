"""Classes of structs, tables and unions.

Generated code makes a class by a class statement, and the loader by a call of `type`. Both give the
class its `TYPE` and, in `__slots__`, a name for each member. The base classes of this module add
everything else.

Objects are made with keywords. The constructor checks the types of its arguments,
but not the contents of lists and other objects; the codec checks everything.
Objects are mutable. They are equal if their members are equal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from stretto_fidl.bindings.printing import redacted
from stretto_fidl.codec import types
from stretto_fidl.codec.checks import checker, is_optional
from stretto_fidl.codec.wire_error import UNION_FIELD_NOT_SET, WireError

_SOURCE = """
def __init__(_self, /{keywords}):
{check}{stores}    pass

def _make({names}):
    _self = _new(_cls)
{stores}    return _self
"""


class Record:
    """Base class of structs and tables, whose members are attributes."""

    __slots__: tuple[str, ...] = ()

    TYPE: ClassVar[types.Struct]

    def __init_subclass__(cls) -> None:
        if "TYPE" in cls.__dict__:
            cls.TYPE.cls = cls
            _add_constructors(cls)

    def __eq__(self, other: object) -> bool:
        """Return whether both objects have the same class and equal members."""
        if other.__class__ is not self.__class__:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return redacted(self)


class Struct(Record):
    """A struct: every member is present, but an optional member may be None."""

    __slots__ = ()


class Table(Record):
    """A table: absent members are None."""

    __slots__ = ()


def _add_constructors(cls: type[Record]) -> None:
    """Add `__init__`, which checks its arguments, and `_make`, which the decoder calls.

    Both methods are compiled from text, because a loop over the names of members takes several
    times as long.
    """
    names = [member.python_name for member in cls.TYPE.members]
    is_table = isinstance(cls.TYPE, types.Table)
    keywords = [
        f"{member.python_name}={member.default!r}"
        if is_table or member.default is not None or _may_be_left_out(member)
        else member.python_name
        for member in cls.TYPE.members
    ]
    source = _SOURCE.format(
        keywords=f", *, {', '.join(keywords)}" if names else "",
        names=", ".join(names),
        check=f"    _check(({', '.join(names)},))\n" if names else "",
        stores="".join(f"    _self.{name} = {name}\n" for name in names),
    )
    scope = {"_new": object.__new__, "_cls": cls, "_check": _checker(cls.TYPE, cls.TYPE.members)}
    exec(compile(source, f"<{cls.TYPE.name}>", "exec"), scope)
    cls.__init__ = scope["__init__"]  # type: ignore[assignment]
    cls._make = scope["_make"]  # type: ignore[attr-defined]


def _may_be_left_out(member: types.Member) -> bool:
    """Return whether a member's type is optional, without resolving references."""
    if isinstance(member.type, types.Reference):
        return member.type.optional
    return is_optional(member.type)


_Check = Callable[[tuple[Any, ...]], None]


def _checker(type_: types.Struct, members: tuple[types.Member, ...]) -> _Check:
    """Return a function that checks the values of members.

    The first call of that function resolves the types of the members.
    """
    checks: list[Callable[[Any], None]] = []
    is_table = isinstance(type_, types.Table)

    def check(values: tuple[Any, ...]) -> None:
        if not checks:
            checks.extend(checker(member.type) for member in members)
        for index, value in enumerate(values):
            if value is None and is_table:
                continue
            try:
                checks[index](value)
            except WireError as error:
                name = members[index].name
                error.add_step(name, hidden=name in type_.hidden)
                raise

    return check


class Union:
    """A union, which holds one of several members. Its constructor takes the member as a keyword.

    Each member is also an attribute; it is None unless the union holds this member. If the name of
    a member is used already, the name of the attribute gets a `_`: `value_` (see `python_names`).

    Attributes:
        ordinal: The ordinal of the member.
        value: The value of the member; None for an unknown member, whose contents are dropped.
    """

    __slots__ = ("ordinal", "value")

    TYPE: ClassVar[types.Union]
    _MEMBERS: ClassVar[dict[str, tuple[types.Member, _Check]]]

    def __init_subclass__(cls) -> None:
        cls.TYPE.cls = cls
        cls._MEMBERS = {
            member.python_name: (member, _checker(cls.TYPE, (member,)))
            for member in cls.TYPE.members
        }
        for member in cls.TYPE.members:
            setattr(cls, member.python_name, _variant(member.ordinal))

    def __init__(self, /, **member: Any) -> None:
        if len(member) != 1:
            raise WireError(
                UNION_FIELD_NOT_SET,
                f"{self.TYPE.short_name} takes exactly one of its members, not {len(member)}",
            )
        ((name, value),) = member.items()
        known = self._MEMBERS
        if name not in known:
            raise TypeError(f"{self.TYPE.short_name} has no member {name}, but {', '.join(known)}")
        found, check = known[name]
        check((value,))
        self.ordinal: int = found.ordinal
        self.value = value

    @classmethod
    def _make(cls, ordinal: int, value: Any) -> Union:
        self = object.__new__(cls)
        self.ordinal, self.value = ordinal, value
        return self

    @property
    def which(self) -> str | None:
        """The name of the member's attribute; None for an unknown member."""
        names = [m.python_name for m in self.TYPE.members if m.ordinal == self.ordinal]
        return names[0] if names else None

    @property
    def is_unknown(self) -> bool:
        """Return whether the union holds a member that its definition doesn't have."""
        return self.which is None

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        assert isinstance(other, Union)
        return self.ordinal == other.ordinal and bool(self.value == other.value)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return redacted(self)


def _variant(ordinal: int) -> property:
    return property(lambda self: self.value if self.ordinal == ordinal else None)
