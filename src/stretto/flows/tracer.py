r"""The hooks that write slices and arrows for the messages of RPC transports.

    client   [ call .............................. ]    a slice, and the flow begins
                  \                         ^ reply      an instant, and the flow ends
    server         [ handler ......... ^ reply ]        a slice, and an instant

A two-way call is one flow with four points. The reply has its own instant at both ends. The END of
the call's slice can't be a point of the flow, because an arrow starts at the beginning of a slice.
A one-way message or an event is a flow with two points. Each of these slices and instants has the
arguments `role` (`send` or `receive`), `method`, `service`, `kind`, `txid`, `ordinal` and `bytes`;
also `handles` if the message carries descriptors, and `body` if bodies are recorded.

Messages that a handler sends, in its own task or in others that it starts, have the argument
`incoming`: the flow of the message being handled. It is stored in a context variable.

Rules
- A sender's slice begins before the write. It is recorded after the write, because only then the
  message's id is known.
- Untraced messages are still counted.
- Messages that a thread sends while it records an event are not traced: otherwise a channel that
  transports the trace itself would cause an endless recursion.
- The constant data of a method's messages is in templates, one for each kind. `MessageHook` handles
  most messages in C by these templates, and calls the functions here for the others.
"""

from __future__ import annotations

import weakref
from _thread import allocate_lock
from contextvars import ContextVar
from mmap import mmap

import stretto
from stretto import in_event
from stretto.base.rpc_hooks import CONTROL, KIND_NAMES, REPLY, REQUEST
from stretto.flows.channel_state import ChannelState
from stretto.flows.native import MessageHook, MessageTemplates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from stretto.base.rpc_hooks import MessageSpan, RpcChannel, RpcMethod

TRANSPORT_CATEGORY = "rpc.transport"
"""The category that shows messages of disabled or missing categories, as instants."""


incoming: ContextVar[int] = ContextVar("stretto.flows.incoming", default=0)
"""The flow of the message being handled in this context; 0 if there is no message or flow."""


class _Points(MessageTemplates):
    """The event templates of a method's messages by kind, made at their first use.

    Args:
        owner: The tracer that made the object.
        category: The category of the events.
        method: The method.
    """

    __slots__ = (
        "_category",
        "_method",
        "only_instants",
        "received",
        "sent",
        "transport",
        "with_body",
    )

    def __init__(self, owner: FlowTracer, category: str, method: RpcMethod) -> None:
        super().__init__(owner)
        self._category = category
        self._method = method
        self.only_instants = category == TRANSPORT_CATEGORY
        self.with_body = method.describe is not None and owner.records_bodies(category)
        self.sent: list[Any] = [None] * len(KIND_NAMES)
        self.received: list[Any] = [None] * len(KIND_NAMES)
        self.transport: _Points | None = None
        """The templates used while the method's own category is disabled."""

    def make(self, role: str, kind: int) -> Any:
        """Make the event template for a kind of message."""
        method = self._method
        name = method.name or f"ordinal {method.ordinal:#x}"
        made = stretto.Category(self._category).template(
            name, "txid", "bytes", "handles", "body", "incoming",
            role=role, method=name, service=method.service,
            kind=KIND_NAMES[kind], ordinal=method.ordinal,
        )  # fmt: skip
        templates = self.sent if role == "send" else self.received
        templates[kind] = made
        if not self.only_instants and not self.with_body:
            self.put(role == "send", kind, made)
        return made


class FlowTracer:
    """Implements `stretto.base.rpc_hooks.RpcHooks`; the module's docstring has the rules.

    Args:
        scheme: The scheme of the flow ids.
        tcp: Whether to identify TCP connections by their addresses.
        bodies: Categories whose messages are recorded with their contents; True: all.
    """

    now = staticmethod(stretto.now)

    def __init__(
        self,
        scheme: str = "anchored",
        *,
        tcp: bool = False,
        bodies: bool | Collection[str] = False,
    ) -> None:
        self.suppressed: dict[str, int] = {}
        """The number of messages without an arrow, by reason."""
        self._scheme = scheme
        self._tcp = tcp
        self._bodies = bodies if isinstance(bodies, bool) else frozenset(bodies)
        self._states: weakref.WeakSet[ChannelState] = weakref.WeakSet()
        self._lock = allocate_lock()
        self._transport = stretto.Category(
            TRANSPORT_CATEGORY, description="every message of RPC channels", tags=["slow"]
        )
        made = (incoming, self._transport)
        self.sent = MessageHook(self, self._sent, *made, outgoing=True)
        self.received = MessageHook(self, self._received, *made, outgoing=False)

    def _sent(  # noqa: PLR0917  # the parameters of RpcHooks.sent
        self,
        channel: RpcChannel,
        stamp: int,
        method: RpcMethod,
        kind: int,
        txid: int,
        size: int | None = 0,
        handles: int = 0,
        answer: int = 0,
        data: bytes = b"",
        /,
    ) -> MessageSpan | None:
        """Implement `RpcHooks.sent`."""
        counted = self._count(True, channel, method, kind, txid, answer)
        if counted is None:
            return None
        points, flow = counted
        template = points.sent[kind] or points.make("send", kind)
        body = _body(method, kind, data, handles) if points.with_body else None
        if kind == REPLY:
            template.instant(txid, size, handles or None, body, flow=flow, timestamp=stamp)
            return None
        # `incoming` is written as a signed number, like the column trace_id of the trace
        # processor's table `flow`.
        handled = incoming.get()
        cause = handled - (handled >> 63 << 64) if handled else None
        if points.only_instants:
            template.instant(txid, size, handles or None, body, cause, flow=flow, timestamp=stamp)
            return None
        shown: MessageSpan = template.slice(
            txid, size, handles or None, body, cause, flow=flow, timestamp=stamp
        )
        if kind == REQUEST:
            return shown
        with shown:
            return None

    def _received(  # noqa: PLR0917  # the parameters of RpcHooks.received
        self,
        channel: RpcChannel,
        method: RpcMethod,
        kind: int,
        txid: int,
        size: int | None = 0,
        handles: int = 0,
        answer: int = 0,
        data: bytes = b"",
        /,
    ) -> MessageSpan | None:
        """Implement `RpcHooks.received`."""
        counted = self._count(False, channel, method, kind, txid, answer)
        if counted is None:
            return None
        points, flow = counted
        template = points.received[kind] or points.make("receive", kind)
        body = _body(method, kind, data, handles) if points.with_body else None
        if kind == REPLY:
            reply: MessageSpan = template.instant_at_entry(
                txid, size, handles or None, body, terminating_flow=flow
            )
            return reply
        record = template.instant_at_entry if points.only_instants else template.slice
        within = (incoming, flow or 0)
        # A request's flow continues with its reply; other flows end at the receiver.
        going, ending = (flow, None) if kind == REQUEST else (None, flow)
        shown: MessageSpan = record(
            txid, size, handles or None, body, flow=going, terminating_flow=ending, within=within
        )
        return shown

    def _count(  # noqa: PLR0917  # the parameters of a hook
        self,
        outgoing: bool,
        channel: RpcChannel,
        method: RpcMethod,
        kind: int,
        txid: int,
        answer: int,
    ) -> tuple[_Points, int | None] | None:
        """Count a message; return its templates and its flow, or None if it isn't recorded."""
        points = self._points(method)
        if points is None and channel.numbered:
            return None
        state = self._state(channel)
        state.use()
        if points is None or kind == CONTROL:
            state.ids.skip(outgoing, kind, txid, answer)
            return None
        flow = state.ids.next(outgoing, kind, txid, method.ordinal, answer) or None
        if flow is None and not in_event():
            self.suppress(state.missing_id_reason())
        return points, flow

    def opened(self, channel: RpcChannel) -> None:
        """Implement `RpcHooks.opened`."""
        self._state(channel).find_key()

    def lost(self, channel: RpcChannel, outgoing: bool) -> None:
        """Implement `RpcHooks.lost`."""
        self._state(channel).ids.lost(outgoing)

    def suppress(self, reason: str) -> None:
        """Count a message that has no arrow."""
        with self._lock:
            self.suppressed[reason] = self.suppressed.get(reason, 0) + 1

    def before_fork(self) -> None:
        """Give each used channel a flag, in memory that the processes will share after the fork."""
        shared = [state for state in list(self._states) if state.needs_flag]
        if shared:
            flags = mmap(-1, len(shared))
            for index, state in enumerate(shared):
                state.before_fork(flags, index)

    def after_fork_in_parent(self) -> None:
        """Stop assigning ids to one-way messages until the next two-way call."""
        for state in list(self._states):
            state.after_fork_in_parent()

    def after_fork_in_child(self) -> None:
        """Stop assigning ids on channels that the parent has used."""
        self._lock = allocate_lock()
        for state in self._states:
            state.after_fork_in_child()

    def _state(self, channel: RpcChannel) -> ChannelState:
        state = channel.state
        if type(state) is ChannelState and state.owner is self:
            return state
        # The channel may have transported messages before this tracer was installed.
        complete = channel.created_under is self and state is None and not channel.adopted
        made = ChannelState(self, channel, self._scheme, synchronised=complete, tcp=self._tcp)
        channel.state = made
        self._states.add(made)
        return made

    def _points(self, method: RpcMethod) -> _Points | None:
        """Return the current templates for a method's messages; None if they aren't recorded."""
        own = method.switch.enabled
        if not own and not self._transport.enabled:
            return None
        points = method.state
        if type(points) is not _Points or points.owner is not self:
            points = method.state = _Points(self, method.switch.category, method)
        if own:
            return points
        if points.transport is None:
            points.transport = _Points(self, TRANSPORT_CATEGORY, method)
        return points.transport

    def records_bodies(self, category: str) -> bool:
        """Whether the contents of a category's messages are recorded."""
        bodies = self._bodies
        return bodies if isinstance(bodies, bool) else category in bodies


def _body(method: RpcMethod, kind: int, data: bytes, handles: int) -> object:
    describe = method.describe
    try:
        return None if describe is None else describe(kind, data, handles)
    except Exception:  # noqa: BLE001 - malformed data of a peer: the transport reports it
        return "<not decodable>"
