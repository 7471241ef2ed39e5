r"""The hooks that make slices and arrows of what RPC packages tell.

    client   [ call .............................. ]    a slice, and the flow begins
                  \                         ^ reply      an instant, and the flow ends
    server         [ handler ......... ^ reply ]        a slice, and an instant

A two-way call is one flow of four points. The reply has an instant of its own at both ends, and
never shares the END of the call: an arrow starts where its slice starts. A one-way message or an
event is a flow of two points. Each of these slices and instants has the arguments `role` (`send`
or `receive`), `method`, `service`, `kind`, `txid`, `ordinal`, `bytes`, and `handles` if any went
along; and `body`, for who asked for it.

What a handler sends on, from its own task or from others that it starts, has the argument
`incoming`: the flow of the message that is being handled. A context variable holds it.

Rules
- A sender's slice has the time before its write, and is written after it: then its id is known.
- A message that nobody wants is counted all the same.
- What is written while a message is being traced, on the same thread, isn't traced: a channel over
  which the trace itself leaves would never come to rest.
"""

from __future__ import annotations

import weakref
from _thread import allocate_lock, get_ident
from contextvars import ContextVar

import stretto
from stretto.base.rpc_hooks import CONTROL, KIND_NAMES, REPLY, REQUEST
from stretto.flows.channel_state import ChannelState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from contextvars import Token
    from typing import Any

    from stretto.base.rpc_hooks import RpcChannel, RpcMessage, RpcMethod

TRANSPORT_CATEGORY = "rpc.transport"
"""Every message of a channel whose method has no category that is on, as an instant."""

_NOTHING: dict[str, Any] = {}


class _How:
    """What all messages of a method have in common in the trace."""

    __slots__ = ("category", "name", "only_instants", "owner", "received", "sent", "with_body")

    def __init__(
        self,
        owner: FlowTracer,
        category: stretto.Category,
        method: RpcMethod,
        *,
        only_instants: bool = False,
    ) -> None:
        self.owner = owner
        self.category = category
        self.with_body = method.describe is not None and owner.wants_bodies(category.name)
        self.name = method.name or f"ordinal {method.ordinal:#x}"
        self.only_instants = only_instants
        self.sent = [self._arguments(method, "send", kind) for kind in KIND_NAMES]
        self.received = [self._arguments(method, "receive", kind) for kind in KIND_NAMES]

    def _arguments(self, method: RpcMethod, role: str, kind: str) -> dict[str, str | int]:
        return {
            "role": role,
            "method": self.name,
            "service": method.service,
            "kind": kind,
            "ordinal": method.ordinal,
        }


class _Point:
    """A message on its way into the trace: a slice that is open, or one to be opened."""

    __slots__ = ("before", "flow", "how", "message", "slice")

    def __init__(self, how: _How, message: RpcMessage, flow: int, open_slice: Any = None) -> None:
        self.how = how
        self.message = message
        self.flow = flow
        self.slice = open_slice
        self.before: Token[int] | None = None
        """What was handled before in this context."""


incoming: ContextVar[int] = ContextVar("stretto.flows.incoming", default=0)
"""The flow of the message that is being handled here; 0: none is, or it has no flow."""


class FlowTracer:
    """See the module's head; the interface is `stretto.base.rpc_hooks.RpcHooks`.

    Args:
        scheme: How ids are made.
        tcp: Name TCP connections by their addresses.
        bodies: Categories whose messages are recorded with what is in them; or all, or none.
    """

    def __init__(
        self,
        scheme: str = "anchored",
        *,
        tcp: bool = False,
        bodies: bool | Collection[str] = False,
    ) -> None:
        self.now = stretto.now
        self.suppressed: dict[str, int] = {}
        """Messages without an arrow, by reason."""
        self._scheme = scheme
        self._tcp = tcp
        self._bodies = bodies if isinstance(bodies, bool) else frozenset(bodies)
        self._states: weakref.WeakSet[ChannelState] = weakref.WeakSet()
        self._lock = allocate_lock()
        self._tracing: set[int] = set()
        self._transport = stretto.Category(
            TRANSPORT_CATEGORY, description="every message of RPC channels", tags=["slow"]
        )

    def sent(self, channel: RpcChannel, message: RpcMessage, stamp: int) -> _Point | None:
        """See `RpcHooks`."""
        how = self._how(message.method)
        if how is None and channel.numbered:
            return None
        ident = get_ident()
        flow = self._count(channel, message, how, ident, outgoing=True)
        if how is None or flow is None:
            return None
        self._tracing.add(ident)
        try:
            return self._write_sent(how, message, flow or None, stamp)
        finally:
            self._tracing.discard(ident)

    def received(self, channel: RpcChannel, message: RpcMessage) -> _Point | None:
        """See `RpcHooks`."""
        how = self._how(message.method)
        if how is None and channel.numbered:
            return None
        flow = self._count(channel, message, how, get_ident(), outgoing=False)
        return None if how is None or flow is None else _Point(how, message, flow)

    def handling(self, seen: _Point) -> None:
        """See `RpcHooks`."""
        ident = get_ident()
        self._tracing.add(ident)
        try:
            self._write_received(seen)
        finally:
            self._tracing.discard(ident)

    def finished(self, token: _Point, error: BaseException | None = None) -> None:
        """See `RpcHooks`."""
        if token.before is not None:
            _leave(token.before)
            token.before = None
        open_slice, token.slice = token.slice, None
        if open_slice is not None:
            if error is None:
                open_slice.__exit__(None, None, None)
            else:
                open_slice.__exit__(type(error), error, error.__traceback__)

    def lost(self, channel: RpcChannel, outgoing: bool) -> None:
        """See `RpcHooks`."""
        self._state(channel).ids.lost(outgoing)

    def wants_bodies(self, category: str) -> bool:
        """Whether what is in the messages of a category shall be recorded."""
        bodies = self._bodies
        return bodies if isinstance(bodies, bool) else category in bodies

    def suppress(self, reason: str) -> None:
        """Count a message that has no arrow."""
        with self._lock:
            self.suppressed[reason] = self.suppressed.get(reason, 0) + 1

    def after_fork_in_child(self) -> None:
        """Channels that the parent has used are its own."""
        self._lock = allocate_lock()
        self._tracing.clear()
        for state in self._states:
            state.after_fork()

    # --- counting

    def _state(self, channel: RpcChannel) -> ChannelState:
        state = channel.state
        if type(state) is ChannelState and state.owner is self:
            return state
        # Who hasn't been told of every message since the first can't count them.
        complete = channel.born_under is self and state is None and not channel.adopted
        made = ChannelState(self, channel, self._scheme, synchronised=complete, tcp=self._tcp)
        channel.state = made
        self._states.add(made)
        return made

    def _count(
        self,
        channel: RpcChannel,
        message: RpcMessage,
        how: _How | None,
        ident: int,
        *,
        outgoing: bool,
    ) -> int | None:
        """Count a message. Its flow, 0 if that isn't known; None: it isn't to be shown."""
        state = self._state(channel)
        state.used = True
        kind, txid, answer = message.kind, message.txid, message.answer
        if how is None or kind == CONTROL or ident in self._tracing:
            state.ids.skip(outgoing, kind, txid, answer)
            return None
        flow = state.ids.next(outgoing, kind, txid, message.method.ordinal, answer)
        if not flow:
            self.suppress(state.why_not())
        return flow

    def _how(self, method: RpcMethod) -> _How | None:
        """How a method's messages are to be written now; None: not at all."""
        switch = method.switch
        if switch.enabled:
            how = method.state
            if type(how) is not _How or how.owner is not self:
                how = method.state = _How(self, stretto.Category(switch.category), method)
            return how
        if self._transport.enabled:
            return _How(self, self._transport, method, only_instants=True)
        return None

    # --- writing

    def _write_sent(
        self, how: _How, message: RpcMessage, flow: int | None, stamp: int
    ) -> _Point | None:
        kind = message.kind
        arguments = how.sent[kind]
        cause = 0 if kind == REPLY else incoming.get()
        more = _NOTHING
        if cause or message.handles or how.with_body:
            more = _more(how, message, cause)
        if how.only_instants or kind == REPLY:
            how.category.instant(
                how.name, flow=flow, timestamp=stamp, args=arguments,
                txid=message.txid, bytes=message.size, **more,
            )  # fmt: skip
            return None
        opened = how.category.slice(
            how.name, flow=flow, timestamp=stamp, args=arguments,
            txid=message.txid, bytes=message.size, **more,
        )  # fmt: skip
        opened.__enter__()
        if kind == REQUEST:
            return _Point(how, message, 0, opened)
        opened.__exit__(None, None, None)
        return None

    def _write_received(self, point: _Point) -> None:
        how, message = point.how, point.message
        kind = message.kind
        # A request's flow goes on to its reply; all others end at their receiver.
        flow = point.flow or None
        going, ending = (flow, None) if kind == REQUEST else (None, flow)
        if kind != REPLY:
            point.before = incoming.set(point.flow)
        more = _more(how, message, 0) if message.handles or how.with_body else _NOTHING
        if how.only_instants or kind == REPLY:
            how.category.instant(
                how.name, flow=going, terminating_flow=ending, args=how.received[kind],
                txid=message.txid, bytes=message.size, **more,
            )  # fmt: skip
            return
        point.slice = how.category.slice(
            how.name, flow=going, terminating_flow=ending, args=how.received[kind],
            txid=message.txid, bytes=message.size, **more,
        )  # fmt: skip
        point.slice.__enter__()


def _leave(before: Token[int]) -> None:
    try:
        incoming.reset(before)
    except ValueError:
        pass  # the handler has ended in another context, as generators may: nobody sees this one


def _more(how: _How, message: RpcMessage, cause: int) -> dict[str, Any]:
    """Arguments that most messages don't have."""
    more: dict[str, Any] = {}
    if cause:
        # As the column trace_id of the trace processor's table `flow` has it: with a sign.
        more["incoming"] = cause - (cause >> 63 << 64)
    if message.handles:
        more["handles"] = int(message.handles)
    if how.with_body and (body := _body(message)) is not None:
        more["body"] = body
    return more


def _body(message: RpcMessage) -> object:
    describe = message.method.describe
    try:
        return None if describe is None else describe(message)
    except Exception:  # noqa: BLE001 - whatever a peer sent: the transport complains of it
        return "<not decodable>"
