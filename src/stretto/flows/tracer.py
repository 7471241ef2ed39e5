r"""The hooks that make slices and arrows of what RPC packages tell.

    client   [ call .............................. ]    a slice, and the flow begins
                  \                         ^ reply      an instant, and the flow ends
    server         [ handler ......... ^ reply ]        a slice, and an instant

A two-way call is one flow of four points. The reply has an instant of its own at both ends, and
never shares the END of the call: an arrow starts where its slice starts. A one-way message or an
event is a flow of two points. Each of these slices and instants has the arguments `role` (`send`
or `receive`), `method`, `service`, `kind`, `txid`, `ordinal`, `bytes`, and `handles` if any went
along.

Rules
- A sender's slice has the time before its write, and is written after it: then its id is known.
- A message that nobody wants is counted all the same.
- What is written while a message is being traced, on the same thread, isn't traced: a channel over
  which the trace itself leaves would never come to rest.
"""

from __future__ import annotations

import weakref
from _thread import allocate_lock, get_ident

import stretto
from stretto.base.rpc_hooks import CONTROL, EVENT, KIND_NAMES, ONE_WAY, REPLY, REQUEST
from stretto.flows.channel_state import ChannelState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from stretto.base.rpc_hooks import RpcChannel, RpcMessage, RpcMethod

TRANSPORT_CATEGORY = "rpc.transport"
"""Every message of a channel whose method has no category that is on, as an instant."""

_ENDS_AT_RECEIVER = (ONE_WAY, EVENT, REPLY)


class _Point:
    """A message on its way into the trace: a slice that is open, or one to be opened."""

    __slots__ = ("category", "flow", "message", "slice")

    def __init__(
        self, category: stretto.Category, message: RpcMessage, flow: int, open_slice: Any = None
    ) -> None:
        self.category = category
        self.message = message
        self.flow = flow
        self.slice = open_slice


class FlowTracer:
    """See the module's head; the interface is `stretto.base.rpc_hooks.RpcHooks`.

    Args:
        scheme: How ids are made.
        tcp: Name TCP connections by their addresses.
    """

    def __init__(self, scheme: str = "anchored", *, tcp: bool = False) -> None:
        self.now = stretto.now
        self.suppressed: dict[str, int] = {}
        """Messages without an arrow, by reason."""
        self._scheme = scheme
        self._tcp = tcp
        self._states: weakref.WeakSet[ChannelState] = weakref.WeakSet()
        self._lock = allocate_lock()
        self._tracing: set[int] = set()
        self._transport = stretto.Category(
            TRANSPORT_CATEGORY, description="every message of RPC channels", tags=["slow"]
        )

    def sent(self, channel: RpcChannel, message: RpcMessage, stamp: int) -> _Point | None:
        """See `RpcHooks`."""
        point = self._point(channel, message, outgoing=True)
        if point is None:
            return None
        self._tracing.add(get_ident())
        try:
            return self._write_sent(point, stamp)
        finally:
            self._tracing.discard(get_ident())

    def received(self, channel: RpcChannel, message: RpcMessage) -> _Point | None:
        """See `RpcHooks`."""
        return self._point(channel, message, outgoing=False)

    def handling(self, seen: _Point) -> None:
        """See `RpcHooks`."""
        self._tracing.add(get_ident())
        try:
            self._write_received(seen)
        finally:
            self._tracing.discard(get_ident())

    def finished(self, token: _Point, error: BaseException | None = None) -> None:
        """See `RpcHooks`."""
        open_slice, token.slice = token.slice, None
        if open_slice is not None:
            if error is None:
                open_slice.__exit__(None, None, None)
            else:
                open_slice.__exit__(type(error), error, error.__traceback__)

    def lost(self, channel: RpcChannel, outgoing: bool) -> None:
        """See `RpcHooks`."""
        self._state(channel).ids.lost(outgoing)

    def after_fork_in_child(self) -> None:
        """Channels that the parent has used are its own."""
        self._lock = allocate_lock()
        self._tracing.clear()
        for state in self._states:
            state.after_fork()

    # --- counting

    def _state(self, channel: RpcChannel) -> ChannelState:
        state = channel.state
        if isinstance(state, ChannelState) and state in self._states:
            return state
        # Who hasn't been told of every message since the first can't count them.
        complete = channel.born_under is self and state is None and not channel.adopted
        made = ChannelState(channel, self._scheme, synchronised=complete, tcp=self._tcp)
        channel.state = made
        self._states.add(made)
        return made

    def _point(self, channel: RpcChannel, message: RpcMessage, *, outgoing: bool) -> _Point | None:
        category = self._category(message.method)
        if channel.numbered and category is None:
            return None
        state = self._state(channel)
        state.used = True
        kind, txid, answer = message.kind, message.txid, message.answer
        if category is None or kind == CONTROL or get_ident() in self._tracing:
            state.ids.skip(outgoing, kind, txid, answer)
            return None
        flow = state.ids.next(outgoing, kind, txid, message.method.ordinal, answer)
        if not flow:
            self._suppress(state.why_not())
        return _Point(category, message, flow)

    def _category(self, method: RpcMethod) -> stretto.Category | None:
        """Under which a message is to be written now."""
        switch = method.switch
        if switch is not None and switch.enabled:
            if method.state is None:
                method.state = stretto.Category(switch.category)
            return method.state  # type: ignore[return-value]
        return self._transport if self._transport.enabled else None

    def _suppress(self, reason: str) -> None:
        with self._lock:
            self.suppressed[reason] = self.suppressed.get(reason, 0) + 1

    # --- writing

    def _write_sent(self, point: _Point, stamp: int) -> _Point | None:
        category, message = point.category, point.message
        name, arguments = _name(message), _arguments(message, "send")
        flow = point.flow or None
        if category is self._transport or message.kind == REPLY:
            category.instant(name, flow=flow, timestamp=stamp, args=arguments)
            return None
        point.slice = category.slice(name, flow=flow, timestamp=stamp, args=arguments)
        point.slice.__enter__()
        if message.kind != REQUEST:
            self.finished(point)
            return None
        return point

    def _write_received(self, point: _Point) -> None:
        category, message = point.category, point.message
        name, arguments = _name(message), _arguments(message, "receive")
        # A request's flow goes on to its reply.
        ends = message.kind in _ENDS_AT_RECEIVER
        flow = None if ends else point.flow or None
        last = point.flow or None if ends else None
        if category is self._transport or message.kind == REPLY:
            category.instant(name, flow=flow, terminating_flow=last, args=arguments)
            return
        point.slice = category.slice(name, flow=flow, terminating_flow=last, args=arguments)
        point.slice.__enter__()


def _name(message: RpcMessage) -> str:
    return message.method.name or f"ordinal {message.method.ordinal:#x}"


def _arguments(message: RpcMessage, role: str) -> dict[str, str | int]:
    method = message.method
    arguments: dict[str, str | int] = {
        "role": role,
        "method": _name(message),
        "service": method.service,
        "kind": KIND_NAMES[message.kind],
        "txid": message.txid,
        "ordinal": method.ordinal,
        "bytes": message.size,
    }
    if message.handles:
        arguments["handles"] = int(message.handles)
    return arguments
