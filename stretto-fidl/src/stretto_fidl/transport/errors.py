"""Errors of calls and channels."""

from __future__ import annotations

from typing import Any

from stretto.base.errors import RemoteProtocolError
from stretto.base.excerpts import SENSITIVE
from stretto_fidl.errors import FidlError
from stretto_fidl.transport.status import INVALID_ARGS, PEER_CLOSED, status_name


class ClosedError(FidlError):
    """The channel is closed.

    Attributes:
        status: The status of the peer's epitaph; `PEER_CLOSED` without an epitaph.
        by_us: True if this end closed the channel, False if the peer did.
    """

    def __init__(self, status: int = PEER_CLOSED, *, by_us: bool = False) -> None:
        who = "this end closed the channel" if by_us else "the peer closed the channel"
        super().__init__(f"{who}: {status_name(status)}")
        self.status = status
        self.by_us = by_us


class PeerError(FidlError, RemoteProtocolError):
    """The peer broke FIDL's rules, and the channel was closed.

    Attributes:
        status: The status for the epitaph.
    """

    def __init__(self, problem: str, status: int = INVALID_ARGS) -> None:
        super().__init__(problem)
        self.status = status


class CallTimeoutError(FidlError, TimeoutError):
    """No reply came in time, or there was no room for the request: the peer doesn't read.

    The channel stays open; the reply is dropped when it comes.
    """


class DomainError(FidlError):
    """An error of a method's error type. If a handler raises it, the caller's call raises it too.

    Attributes:
        value: The error, of the method's error type.

    Args:
        value: The error, of the method's error type.
        hidden: Whether the exception's text leaves out the value, because the value is
            `@sensitive`.
    """

    def __init__(self, value: Any, *, hidden: bool = False) -> None:
        super().__init__(f"the call failed: {SENSITIVE if hidden else repr(value)}")
        self.value = value


class UnknownMethodError(FidlError):
    """The server's protocol doesn't have the flexible method that the client has called."""
