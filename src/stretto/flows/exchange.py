"""Requests and replies that are identified by a header: HTTP, gRPC.

Proxies, retries and multiplexing between the ends make counting messages impossible. But if
requests carry a `traceparent` (W3C Trace Context), both ends have the same 24 bytes, and the flow's
id is made from these. To requests without a `traceparent`, Stretto can add its own header; this is
optional.

The id is in the request, so the hooks' counting isn't needed: this module writes the slices and
instants itself. These events are like those of `stretto.flows.tracer`, without `txid` and
`ordinal`, and take a fifth of the time. The gRPC wrappers are faster still, because they don't use
`Exchange`.
"""

from __future__ import annotations

import os
from contextlib import nullcontext
from functools import lru_cache
from itertools import count

import stretto
from stretto import flow_id
from stretto.base import rpc_hooks
from stretto.base.rpc_hooks import KIND_NAMES, REPLY, REQUEST
from stretto.flows import installation
from stretto.flows.channel_key import nonce
from stretto.flows.mixing import U64
from stretto.flows.tracer import incoming

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager
    from types import TracebackType
    from typing import Any, Self

    from stretto._native import EventTemplate

if TYPE_CHECKING or stretto.available():
    from stretto._native import request_key as request_key
else:

    def request_key(_pairs: object) -> int:
        """Return 0: without the native part nothing is traced."""
        return 0


TRACEPARENT = "traceparent"
FLOW_HEADER = "x-stretto-flow"

_MAX_METHODS = 1024
"""The number of cached methods. It is bounded, as peers choose the paths of HTTP requests."""

_NO_KEY = "no header"


def key_of(headers: Mapping[str, str]) -> int:
    """Return the key in headers; 0 if there is none. The names must be in lower case."""
    return request_key(tuple((name, value.strip()) for name, value in headers.items()))


_count = count()
_base = 0


def _begin_keys() -> None:
    global _base  # Each process has its own random value.
    _base = nonce()


_begin_keys()
os.register_at_fork(after_in_child=_begin_keys)


def new_flow() -> tuple[str, int]:
    """Return a value for `FLOW_HEADER`, and its key."""
    key = flow_id(_base, next(_count)) or 1
    return key.to_bytes(8, "big").hex(), key  # `hex` takes half the time of an f-string.


class TracedMethod:
    """The event templates for the messages of one method.

    Args:
        category: The name of an existing category.
        service: The argument `service`.
        method: The name of the slice, and the argument `method`. Replies are named `reply`.
    """

    def __init__(self, category: str, service: str, method: str) -> None:
        own = stretto.Category(category)
        self._category, self._service, self._method = own, service, method
        self._steps: dict[str, EventTemplate] = {}

        def template(role: str, kind: int, *values: str) -> EventTemplate:
            name, of_kind = ("reply" if kind == REPLY else method), KIND_NAMES[kind]
            return own.template(
                name, *values, role=role, method=method, service=service, kind=of_kind
            )

        self.sent_request = template("send", REQUEST, "incoming")
        self.received_request = template("receive", REQUEST)
        self.sent_reply = template("send", REPLY, "bytes")
        self.received_reply = template("receive", REPLY, "bytes")

    def step(self, name: str) -> EventTemplate:
        """Return the template for slices that show work on the request, not messages."""
        made = self._steps.get(name)
        if made is None:
            own = self._category
            made = self._steps[name] = own.template(
                name, method=self._method, service=self._service
            )
        return made


traced_method = lru_cache(_MAX_METHODS)(TracedMethod)
"""Returns the same object for all calls of a method."""


def no_flow() -> int | None:
    """Count a message without a key, and return its flow: None."""
    installation.suppress(_NO_KEY)
    return None


def cause() -> int | None:
    """Return the argument `incoming` of a message to send; see `stretto.flows.tracer`."""
    flow = incoming.get()
    return flow - (flow >> 63 << 64) if flow else None


class Exchange:
    """One end of one request; the `with` block is the call, or its handling.

    The thread that entered the block has to leave it. Slices that began on this thread before the
    block must end after it. Later work on the request is recorded by `step`.

    Args:
        category: The category of the slices.
        service: The argument `service`.
        method: The name of the slice, and the argument `method`.
        key: The result of `key_of`; 0: there is no arrow.
        is_server: Whether this is the server's end.
    """

    __slots__ = ("_is_server", "_key", "_method", "_slice")

    def __init__(
        self, *, category: str, service: str, method: str, key: int, is_server: bool
    ) -> None:
        wanted = rpc_hooks.switch(category).enabled
        self._method = traced_method(category, service, method) if wanted else None
        self._key = key & U64
        self._is_server = is_server
        self._slice: Any = None

    def __enter__(self) -> Self:
        method = self._method
        if method is None:
            return self
        flow = self._key or no_flow()
        if self._is_server:
            within = (incoming, self._key)
            self._slice = method.received_request.slice(flow=flow, within=within)
        else:
            self._slice = method.sent_request.slice(cause(), flow=flow)
        self._slice.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        open_slice, self._slice = self._slice, None
        if open_slice is not None:
            open_slice.__exit__(kind, error, traceback)

    def step(self, name: str) -> AbstractContextManager[object]:
        """Return a context manager that records later work on the request.

        The work is done after this object's block has ended.

        Args:
            name: The name of the work.
        """
        if self._method is None:
            return nullcontext()
        template = self._method.step(name)
        return template.slice(within=(incoming, self._key)) if self._is_server else template.slice()

    def reply(self, stamp: int = 0, size: int = 0) -> None:
        """Record that the reply is being sent, or was received.

        Args:
            stamp: For a server, the result of `stamp()` before the server wrote the reply.
            size: The size of the reply in bytes.
        """
        method = self._method
        if method is None:
            return
        flow = self._key or no_flow()
        if self._is_server:
            method.sent_reply.instant(size or None, flow=flow, timestamp=stamp or None)
        else:
            method.received_reply.instant(size or None, terminating_flow=flow)


def stamp() -> int:
    """Return the current time, for `Exchange.reply`; 0 while nothing is traced."""
    hooks = rpc_hooks.hooks
    return 0 if hooks is None else hooks.now()
