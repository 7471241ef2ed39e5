"""Resolvers: they find traces by the arguments of a URI.

resolver:key=value;key2=v1,v2;key3>=4
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, get_args, get_origin

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import BinaryIO, Self

    TraceUri = str
    TraceGenerator = Generator[bytes, None, None]
    TraceContent = BinaryIO | TraceGenerator

T = TypeVar("T")
_ARGUMENT = re.compile(r"(\w+)(!=|<=|>=|=|<|>)(.+)", re.DOTALL)


@dataclass
class ConstraintClass(Generic[T]):
    """A value and the operator before it in a URI."""

    class Op(Enum):
        """An operator."""

        EQ = "="
        NE = "!="
        LE = "<="
        GE = ">="
        GT = ">"
        LT = "<"

        def __str__(self) -> str:
            return str(self.value)

    value: T
    op: Op = Op.EQ


class TraceUriResolver:
    """The base class of resolvers. Their `__init__` takes the arguments of a URI."""

    PREFIX: ClassVar[str | None] = None
    """The part of a URI before its colon."""

    @dataclass
    class Result:
        """A trace, or what a resolver makes one of, and its metadata."""

        trace: Any
        metadata: dict[str, str] = field(default_factory=dict)

    def resolve(self) -> list[Result]:
        """Return the traces."""
        raise NotImplementedError(f"{type(self).__name__} has no method resolve")

    @classmethod
    def from_trace_uri(cls, uri: str) -> Self:
        """Make a resolver of a URI.

        Raises:
            ValueError: The URI is malformed, or has an operator that its argument doesn't take.
        """
        hints = getattr(cls.__init__, "__annotations__", {})
        return cls(**_arguments(uri.partition(":")[2], hints))


def _arguments(text: str, hints: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in text.split(";") if text else ():
        match = _ARGUMENT.fullmatch(part)
        if match is None:
            raise ValueError(f"{part!r} is no argument: write key=value")
        key, operator, given = match.groups()
        value: Any = given.split(",") if "," in given else given
        if _takes_operators(hints.get(key)):
            constraint = ConstraintClass(value, ConstraintClass.Op(operator))
            found[key] = [*_as_list(found[key]), constraint] if key in found else constraint
        elif operator != "=":
            raise ValueError(f"{key} takes only the operator '=': {part!r}")
        else:
            found[key] = value
    return found


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _takes_operators(hint: Any) -> bool:
    if isinstance(hint, str):  # Annotations aren't evaluated: they may name what isn't imported.
        return ConstraintClass.__name__ in hint
    return ConstraintClass in (hint, get_origin(hint)) or any(map(_takes_operators, get_args(hint)))
