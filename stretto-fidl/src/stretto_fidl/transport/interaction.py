"""FIDL's rules for unknown and wrong interactions, applied to messages that a server reads.

unknown        the protocol is   open            ajar            closed
strict                           close           close           close
flexible, one-way                ignored         ignored         close
flexible, two-way                answered        close           close
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto_fidl.bindings.protocols import EVENT, TWO_WAY
from stretto_fidl.errors import FidlError
from stretto_fidl.python_names import OF_HANDLERS, python_name
from stretto_fidl.transport.errors import PeerError
from stretto_fidl.transport.status import INTERNAL, NOT_SUPPORTED

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from stretto_fidl.bindings.protocols import Method, Protocol
    from stretto_fidl.codec.headers import TransactionHeader


def interaction(protocol: type[Protocol], header: TransactionHeader) -> Method | None:
    """Return the method that a message calls.

    Return None if the method is unknown and the channel stays open.

    Raises:
        PeerError: The message breaks the protocol. The error's status is the epitaph for the
            client.
    """
    if header.is_epitaph:
        raise PeerError("a client sent an epitaph")
    method = protocol.BY_ORDINAL.get(header.ordinal)
    if method is None or method.kind == EVENT:
        _check_unknown(protocol.OPENNESS, header)
        return None
    if (method.kind == TWO_WAY) != bool(header.txid):
        wanted = "needs a" if method.kind == TWO_WAY else "has no"
        raise PeerError(f"{method.name} {wanted} transaction, the client sent {header.txid}")
    return method


def _check_unknown(openness: str, header: TransactionHeader) -> None:
    tolerant = ("open",) if header.txid else ("open", "ajar")
    if not header.flexible or openness not in tolerant:
        strictness = "flexible" if header.flexible else "strict"
        problem = f"no method has the ordinal {header.ordinal:#x}, the message is {strictness}"
        raise PeerError(f"{problem}, the protocol {openness}", NOT_SUPPORTED)


def two_way(protocol: type[Protocol], name: str) -> Method:
    """Return the two-way method with a name.

    Raises:
        FidlError: The protocol has no such method, or the method has no reply.
    """
    method = protocol.BY_NAME.get(name)
    if method is None:
        names = ", ".join(each.name for each in protocol.METHODS if each.kind == TWO_WAY)
        raise FidlError(f"{protocol.NAME} has no method {name!r}; it has {names or 'none'}")
    if method.kind == EVENT:
        raise FidlError(f"{name} is an event of {protocol.NAME}: the server sends it")
    if method.kind != TWO_WAY:
        raise FidlError(f"{name} is one-way, it has no reply: call it as a method of the client")
    return method


def handlers_of(
    protocol: type[Protocol], handler: object, *, events: bool = False
) -> dict[int, Callable[..., Any]]:
    """Return the functions of a handler by ordinal.

    Raises:
        FidlError: The handler has no function for a method (with `events`: for an event).
    """
    wanted = [method for method in protocol.METHODS if (method.kind == EVENT) == events]
    names = {method.ordinal: python_name(method.name, OF_HANDLERS) for method in wanted}
    missing = [name for name in names.values() if not hasattr(handler, name)]
    if missing:
        what = "the events of " if events else ""
        raise FidlError(f"the handler of {what}{protocol.NAME} lacks {', '.join(missing)}")
    return {ordinal: getattr(handler, name) for ordinal, name in names.items()}


def status_of(error: BaseException) -> int:
    """Return the epitaph status for the exception that ended a server."""
    return error.status if isinstance(error, PeerError) else INTERNAL
