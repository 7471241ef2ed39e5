"""What can go wrong with a call, or with a channel."""

from __future__ import annotations

from typing import Any

from stretto.base.errors import RemoteProtocolError
from stretto.base.excerpts import SENSITIVE
from stretto_fidl.errors import FidlError
from stretto_fidl.transport.status import INVALID_ARGS, PEER_CLOSED, status_name


class ClosedError(FidlError):
    """The channel is closed.

    Attributes:
        status: That of the peer's epitaph; `PEER_CLOSED` if there was none.
        by_us: It was closed at this end.
    """

    def __init__(self, status: int = PEER_CLOSED, *, by_us: bool = False) -> None:
        who = "this end closed the channel" if by_us else "the peer closed the channel"
        super().__init__(f"{who}: {status_name(status)}")
        self.status = status
        self.by_us = by_us


class PeerError(FidlError, RemoteProtocolError):
    """The peer broke the rules, and the channel was closed therefore.

    Attributes:
        status: For the epitaph.
    """

    def __init__(self, problem: str, status: int = INVALID_ARGS) -> None:
        super().__init__(problem)
        self.status = status


class CallTimeoutError(FidlError, TimeoutError):
    """No reply came in time, or there was no room for the request: the peer doesn't read.

    The channel goes on; the reply is dropped when it comes.
    """


class DomainError(FidlError):
    """A method's own error: a handler raises it, and the caller's call does.

    Attributes:
        value: Of the method's error type.

    Args:
        value: The same.
        hidden: The definition calls it sensitive: it isn't said in the error's text.
    """

    def __init__(self, value: Any, *, hidden: bool = False) -> None:
        super().__init__(f"the call failed: {SENSITIVE if hidden else repr(value)}")
        self.value = value


class UnknownMethodError(FidlError):
    """The server doesn't know this flexible method."""
