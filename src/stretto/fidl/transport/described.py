"""Methods as the seam of `stretto.base.rpc_hooks` knows them.

`@trace("CATEGORY")` on a method, or on its protocol for all its methods, names what its messages
are traced under; `@trace("off")` on a method excepts it. Methods that a protocol composes keep
what their own protocol says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from stretto.base.rpc_hooks import RpcMethod
from stretto.fidl.bindings.protocols import Protocol
from stretto.fidl.ordinals import EPITAPH_ORDINAL

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from stretto.fidl.bindings.protocols import Method

OFF = "off"


class Described:
    """A protocol's methods, by ordinal.

    Args:
        protocol: Its class.
    """

    __slots__ = ("_service", "epitaph", "methods")

    def __init__(self, protocol: type[Protocol]) -> None:
        self._service = protocol.NAME
        self.methods = {
            method.ordinal: RpcMethod(
                protocol.NAME, method.name, method.ordinal, category(protocol, method)
            )
            for method in protocol.METHODS
        }
        self.epitaph = RpcMethod(protocol.NAME, "epitaph", EPITAPH_ORDINAL)

    def of(self, ordinal: int) -> RpcMethod:
        """The method of an ordinal, known or not."""
        if ordinal == EPITAPH_ORDINAL:
            return self.epitaph
        return self.methods.get(ordinal) or RpcMethod(self._service, "", ordinal)


_described: WeakKeyDictionary[type[Protocol], Described] = WeakKeyDictionary()


def described(protocol: type[Protocol]) -> Described:
    """What the seam knows of a protocol: one object for ever."""
    found = _described.get(protocol)
    return _described.setdefault(protocol, Described(protocol)) if found is None else found


def category(protocol: type[Protocol], method: Method) -> str:
    """Under which a method's messages are traced; "": they aren't."""
    own = _named(method.attributes)
    if own is None and method.composed:
        definer = _definer(method.ordinal)
        own = None if definer is None else category(definer, definer.BY_ORDINAL[method.ordinal])
    elif own is None:
        own = _named(protocol.ATTRIBUTES)
    return "" if own is None or own == OFF else own


def _named(attributes: Mapping[str, Any]) -> str | None:
    """The first category that the attribute names."""
    value = attributes.get("trace")
    if not isinstance(value, str):
        return None
    return value.split(",")[0].strip() or None


def _definer(ordinal: int) -> type[Protocol] | None:
    """The protocol that a composed method comes from; ordinals are unique."""
    for each in Protocol.__subclasses__():
        method = each.BY_ORDINAL.get(ordinal)
        if method is not None and not method.composed:
            return each
    return None
