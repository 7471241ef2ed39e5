"""Python methods of generated writers, for fields that have no native method.

They use only the writer's methods by field number, which the native and the pure MessageWriter
both have.
"""

from __future__ import annotations

from stretto.protozero.codec import SCALARS
from stretto.protozero.wire import tag

TYPE_CHECKING = False  # Importing `typing` takes longer than importing this module.
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    WriterMethod: TypeAlias = tuple[str, int, str, bool, Callable[..., Any]]
    """Method name, field number, kind, whether packed, and a helper function, which normalizes a
    value or, for a message, returns the class of its writer."""


def python_method(row: WriterMethod) -> Callable[..., Any]:
    """Create a method from its description."""
    _, number, kind, packed, helper = row
    if kind == "message":
        return _opener(number, helper)
    return (_packed_setter if packed else _setter)(number, kind, helper)


def _setter(number: int, kind: str, check: Callable[[Any], Any]) -> Callable[..., None]:
    codec = SCALARS[kind]
    prefix, pack = tag(number, codec.wire_type), codec.pack

    def append(self: Any, value: Any) -> None:
        self.append_raw(prefix + pack(check(value)))

    return append


def _packed_setter(number: int, kind: str, check: Callable[[Any], Any]) -> Callable[..., None]:
    pack = SCALARS[kind].pack

    def append(self: Any, values: Any) -> None:
        if isinstance(values, str | bytes):
            check(values)
        self.append_bytes(number, b"".join([pack(check(value)) for value in values]))

    return append


def _opener(number: int, find: Callable[[], Any]) -> Callable[..., Any]:
    def open_nested(self: Any) -> Any:
        return self.nested(number, find())

    return open_nested
