"""A request and its reply that carry their name with them: HTTP, gRPC.

Between the ends may lie proxies, retries and multiplexing: nobody can count messages here. But
where requests carry a `traceparent` (W3C Trace Context) both ends have the same 24 bytes, and an id
is made of them; where they don't, a header of our own can be added by whoever asks for that.
"""

from __future__ import annotations

import re
from functools import lru_cache

from stretto.base import rpc_hooks
from stretto.base.rpc_hooks import REPLY, REQUEST, RpcChannel, RpcMessage, RpcMethod
from stretto.flows.channel_key import nonce
from stretto.flows.mixing import U64, combine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Self

TRACEPARENT = "traceparent"
FLOW_HEADER = "x-stretto-flow"

_MAX_METHODS = 1024
"""Paths of HTTP are as many as peers like."""

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?")
_FLOW = re.compile(r"[0-9a-f]{16}")


def key_of(headers: Mapping[str, str]) -> int:
    """The key that headers (in lower case) name; 0: none."""
    if match := _FLOW.fullmatch(headers.get(FLOW_HEADER, "").strip()):
        return int(match[0], 16)
    if match := _TRACEPARENT.fullmatch(headers.get(TRACEPARENT, "").strip()):
        trace, span = int(match[1], 16), int(match[2], 16)
        return combine(trace & U64, trace >> 64, span) if trace and span else 0
    return 0


def new_flow() -> tuple[str, int]:
    """A value for `FLOW_HEADER`, and its key."""
    key = nonce()
    return f"{key:016x}", key


@lru_cache(_MAX_METHODS)
def _method(service: str, method: str, category: str) -> RpcMethod:
    """Hooks keep what they need to know of a method in it: the same one for all its calls."""
    return RpcMethod(service, method, 0, category)


class Exchange:
    """One end of one request; the `with` block is the call, or its handling.

    Args:
        category: Under which it is traced.
        service: The argument `service`.
        method: The name of the slice, and the argument `method`.
        key: Of `key_of`; 0: there will be no arrow.
        is_server: Which end it is.
    """

    __slots__ = ("_channel", "_is_server", "_method", "_token")

    def __init__(
        self, *, category: str, service: str, method: str, key: int, is_server: bool
    ) -> None:
        self._method = _method(service, method, category)
        self._channel = RpcChannel(None, is_server=is_server, numbered=True, key=key)
        self._is_server = is_server
        self._token: object = None

    def __enter__(self) -> Self:
        hooks = rpc_hooks.hooks
        if hooks is not None:
            message = RpcMessage(self._method, REQUEST, 1)
            if self._is_server:
                self._token = hooks.received(self._channel, message)
                if self._token is not None:
                    hooks.handling(self._token)
            else:
                # The block sends: what it does is later than its begin.
                self._token = hooks.sent(self._channel, message, hooks.now())
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        hooks = rpc_hooks.hooks
        token, self._token = self._token, None
        if hooks is not None and token is not None:
            hooks.finished(token, error)

    def reply(self, stamp: int = 0, size: int = 0) -> None:
        """The reply goes out, or has come in.

        Args:
            stamp: Of a server: `stamp()` before it wrote.
            size: Of the reply, in bytes.
        """
        hooks = rpc_hooks.hooks
        if hooks is None:
            return
        message = RpcMessage(self._method, REPLY, 1, size=size)
        if self._is_server:
            token = hooks.sent(self._channel, message, stamp or hooks.now())
        else:
            token = hooks.received(self._channel, message)
            if token is not None:
                hooks.handling(token)
        if token is not None:
            hooks.finished(token)


def stamp() -> int:
    """The time before a write; 0 while nothing is traced."""
    hooks = rpc_hooks.hooks
    return 0 if hooks is None else hooks.now()
