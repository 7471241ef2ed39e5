"""A request and its reply that carry their name with them: HTTP, gRPC.

Between the ends may lie proxies, retries and multiplexing: nobody can count messages here. But
where requests carry a `traceparent` (W3C Trace Context) both ends have the same 24 bytes, and an id
is made of them; where they don't, a header of our own can be added by whoever asks for that.

The id is in the request, so nothing needs the hooks' counting: slices and instants (those of
`stretto.flows.tracer`, but for `txid` and `ordinal`, which there are none of) are written right
here. That is a fifth of the cost; what wraps gRPC does without the `Exchange`, too.
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
        """Nothing is traced, and nobody asks."""
        return 0


TRACEPARENT = "traceparent"
FLOW_HEADER = "x-stretto-flow"

_MAX_METHODS = 1024
"""Paths of HTTP are as many as peers like."""

_NO_KEY = "no header"


def key_of(headers: Mapping[str, str]) -> int:
    """The key that headers (in lower case) name; 0: none."""
    return request_key(tuple((name, value.strip()) for name, value in headers.items()))


_count = count()
_base = 0


def _begin_keys() -> None:
    global _base  # of this process
    _base = nonce()


_begin_keys()
os.register_at_fork(after_in_child=_begin_keys)


def new_flow() -> tuple[str, int]:
    """A value for `FLOW_HEADER`, and its key."""
    key = flow_id(_base, next(_count)) or 1
    return key.to_bytes(8, "big").hex(), key  # a format takes twice as long


class TracedMethod:
    """How the messages of one method look in the trace: templates.

    Args:
        category: Which there is: its switch is on, or was.
        service: The argument `service`.
        method: The name of the slice, and the argument `method`.
    """

    __slots__ = (
        "_category",
        "_method",
        "_service",
        "_steps",
        "received_reply",
        "received_request",
        "sent_reply",
        "sent_request",
    )

    def __init__(self, category: str, service: str, method: str) -> None:
        own = stretto.Category(category)
        self._category, self._service, self._method = own, service, method
        self._steps: dict[str, EventTemplate] = {}

        def template(role: str, kind: int, *values: str) -> EventTemplate:
            return own.template(
                method, *values, role=role, method=method, service=service, kind=KIND_NAMES[kind]
            )

        self.sent_request = template("send", REQUEST, "incoming")
        self.received_request = template("receive", REQUEST)
        self.sent_reply = template("send", REPLY, "bytes")
        self.received_reply = template("receive", REPLY, "bytes")

    def step(self, name: str) -> EventTemplate:
        """For slices of work about it that is no message."""
        made = self._steps.get(name)
        if made is None:
            own = self._category
            made = self._steps[name] = own.template(
                name, method=self._method, service=self._service
            )
        return made


traced_method = lru_cache(_MAX_METHODS)(TracedMethod)
"""The same object for all calls of a method."""


def no_flow() -> int | None:
    """What a message without a key takes as its flow: none, which is counted."""
    installation.suppress(_NO_KEY)
    return None


def cause() -> int | None:
    """The argument `incoming` of what is sent here; see `stretto.flows.tracer`."""
    flow = incoming.get()
    return flow - (flow >> 63 << 64) if flow else None


class Exchange:
    """One end of one request; the `with` block is the call, or its handling.

    It is left by the thread that entered it, before anything that began earlier there ends; what
    is done about the request later are steps.

    Args:
        category: Under which it is traced.
        service: The argument `service`.
        method: The name of the slice, and the argument `method`.
        key: Of `key_of`; 0: there will be no arrow.
        is_server: Which end it is.
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
        """Around work about the request, when its own block is over.

        Args:
            name: What is done.
        """
        if self._method is None:
            return nullcontext()
        template = self._method.step(name)
        return template.slice(within=(incoming, self._key)) if self._is_server else template.slice()

    def reply(self, stamp: int = 0, size: int = 0) -> None:
        """The reply goes out, or has come in.

        Args:
            stamp: Of a server: `stamp()` before it wrote.
            size: Of the reply, in bytes.
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
    """The time before a write; 0 while nothing is traced."""
    hooks = rpc_hooks.hooks
    return 0 if hooks is None else hooks.now()
