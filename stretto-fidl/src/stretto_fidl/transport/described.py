"""Describes the methods of a protocol to the hooks of `stretto.base.rpc_hooks`.

`@trace("CATEGORY")` on a method names the category of the method's messages; on a protocol it is
for all methods of the protocol. `@trace("")` or `@trace("off")` on a method excludes the method.
Methods that a protocol composes keep the category of their own protocol.

`RpcMethod.describe` decodes a message a second time, with placeholders for its handles, because a
handle has one owner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from stretto.base.excerpts import SENSITIVE
from stretto.base.rpc_hooks import REPLY, RpcMethod
from stretto_fidl.bindings.printing import excerpt_of
from stretto_fidl.bindings.protocols import EVENT, Protocol
from stretto_fidl.codec.handle import ANY, SAME_RIGHTS, Handle
from stretto_fidl.codec.headers import decode_header
from stretto_fidl.codec.message import decode_body
from stretto_fidl.ordinals import EPITAPH_ORDINAL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from stretto_fidl.bindings.protocols import Method

OFF = "off"


class Described(dict[int, RpcMethod]):
    """A mapping from ordinals to the methods of a protocol; unknown ordinals have an entry too.

    Args:
        protocol: The class of the protocol.
    """

    def __init__(self, protocol: type[Protocol]) -> None:
        self._service = protocol.NAME
        self[EPITAPH_ORDINAL] = RpcMethod(protocol.NAME, "epitaph", EPITAPH_ORDINAL)
        for method in protocol.METHODS:
            self[method.ordinal] = RpcMethod(
                protocol.NAME,
                method.name,
                method.ordinal,
                category(protocol, method),
                _describer(protocol, method),
            )

    def __missing__(self, ordinal: int) -> RpcMethod:
        """Return a method for an unknown ordinal.

        The method is not stored, because a peer may send any ordinal.
        """
        return RpcMethod(self._service, "", ordinal)


_described: WeakKeyDictionary[type[Protocol], Described] = WeakKeyDictionary()


def described(protocol: type[Protocol]) -> Described:
    """Return the object that describes a protocol to the hooks.

    Each protocol has one such object.
    """
    found = _described.get(protocol)
    return _described.setdefault(protocol, Described(protocol)) if found is None else found


def category(protocol: type[Protocol], method: Method) -> str:
    """Return the category of a method's messages; "" if they are not traced."""
    own = _named(method.attributes)
    if own is None and method.composed:
        definer = _definer(method.ordinal)
        own = None if definer is None else category(definer, definer.BY_ORDINAL[method.ordinal])
    elif own is None:
        own = _named(protocol.ATTRIBUTES)
    return "" if own is None or own == OFF else own


def _named(attributes: Mapping[str, Any]) -> str | None:
    """Return the first category in `@trace`, perhaps ""; None without this attribute."""
    value = attributes.get("trace")
    return value.split(",")[0].strip() if isinstance(value, str) else None


def _definer(ordinal: int) -> type[Protocol] | None:
    """Return the protocol that defines the method with an ordinal.

    Protocols that only compose the method don't count.
    """
    for each in Protocol.__subclasses__():
        method = each.BY_ORDINAL.get(ordinal)
        if method is not None and not method.composed:
            return each
    return None


class _NoHandle(Handle):
    """A placeholder for a handle of any kind."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(-1, ANY, SAME_RIGHTS)

    def check(self, object_type: int, rights: int) -> None:
        del rights
        self.object_type = object_type


def _is_sensitive(protocol: type[Protocol], method: Method) -> bool:
    """Return whether all messages of a method are sensitive."""
    definer = _definer(method.ordinal) if method.composed else None
    where = [each.ATTRIBUTES for each in (protocol, definer) if each is not None]
    return any("sensitive" in attributes for attributes in (method.attributes, *where))


def _describer(protocol: type[Protocol], method: Method) -> Callable[[int, bytes, int], object]:
    """Return a function that describes the messages of a method, for `RpcMethod.describe`."""
    hidden = _is_sensitive(protocol, method)

    def describe(kind: int, data: bytes, handle_count: int) -> object:
        if hidden:
            return SENSITIVE
        answers = kind == REPLY or method.kind == EVENT
        payload = method.response if answers else method.request
        handles = [_NoHandle() for _ in range(handle_count)]
        return excerpt_of(decode_body(decode_header(data), payload, data, handles))

    return describe
