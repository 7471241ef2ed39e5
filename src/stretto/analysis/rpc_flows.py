"""The RPC calls of a trace, assembled from messages by their flows.

    send request ----> receive request        the handler's slice
                          |
    receive reply <---- send reply            instants

    queueing   from send to the handler's begin
    service    from the handler's begin to the first reply, or without a reply to the handler's end
    latency    from send to the reply's arrival; equal to queueing for a message without a reply

Every slice or instant with the arguments `role` and `method` is a message. A message is unmatched
if its sending or its receiving is missing in the trace, or if the message has no flow. Times are
nanoseconds of the trace's clock, BOOTTIME unless the trace names another.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stretto.analysis.trace_tables import import_trace, is_empty, statistics
from stretto.analysis.track_places import track_places

if TYPE_CHECKING:
    from typing import Any, BinaryIO

SEND, RECEIVE = "send", "receive"
_ROLE, _METHOD, _SERVICE, _KIND = "debug.role", "debug.method", "debug.service", "debug.kind"
_LOSSES = (
    "stretto_undecodable_packets",
    "stretto_undecodable_arguments",
    "tokenizer_skipped_packets",
    "interned_data_tokenizer_errors",
    "track_event_parser_errors",
)
"""Statistics that count packets or events which could not be read."""


@dataclass(slots=True)
class Message:
    """The sending or the receiving of a message."""

    role: str
    method: str
    """The method, with its service if that is known: `Greeter.SayHello`."""
    kind: str
    timestamp: int
    track: int
    """The id of its track in the importer's tables."""
    flow: int
    """The id of the flow; 0 if there is none."""
    end: int = 0
    """The end of its slice; 0 for an instant, or if the end is missing in the trace."""


@dataclass(slots=True)
class Call:
    """A request with its reply, a one-way message, an event, or a further part of a reply.

    Messages that are missing in the trace are None.
    """

    method: str
    kind: str
    sent: Message | None = None
    received: Message | None = None
    reply_sent: Message | None = None
    reply_received: Message | None = None

    @property
    def matched(self) -> bool:
        """Whether the message, and its reply if there is any, were both sent and received.

        A reply that was received counts as sent, because the sending of some replies isn't
        recorded: `grpc.aio` sends an abort before the handler ends. The arrow of such a reply
        begins at the handler.
        """
        if self.kind == "reply":
            return self.reply_sent is not None and self.reply_received is not None
        replies = self.reply_sent is None or self.reply_received is not None
        return self.sent is not None and self.received is not None and replies

    @property
    def parts(self) -> list[Message]:
        """The messages of the call that are in the trace."""
        all_parts = (self.sent, self.received, self.reply_sent, self.reply_received)
        return [part for part in all_parts if part is not None]

    @property
    def is_loose(self) -> bool:
        """Whether this is a single message without a flow, which can't be joined to others."""
        parts = self.parts
        return len(parts) == 1 and not parts[0].flow

    @property
    def queueing_ns(self) -> int | None:
        """The time from sending to the handler's begin."""
        return _between(self.sent, self.received)

    @property
    def service_ns(self) -> int | None:
        """The time from the handler's begin to the first reply, or to the handler's end."""
        if self.received is None:
            return None
        end = self.reply_sent.timestamp if self.reply_sent is not None else self.received.end
        return end - self.received.timestamp if end else None

    @property
    def latency_ns(self) -> int | None:
        """The time from the sending of a message until the reply arrives.

        For a message without a reply, the time until the message itself arrives.
        """
        if self.kind == "reply":
            return _between(self.reply_sent, self.reply_received)
        return _between(self.sent, self.reply_received if self.kind == "request" else self.received)


def _between(first: Message | None, second: Message | None) -> int | None:
    if first is None or second is None:
        return None
    return second.timestamp - first.timestamp


@dataclass(slots=True)
class RpcFlows:
    """The RPC calls of a trace."""

    calls: list[Call] = field(default_factory=list)
    damaged: int = 0
    """The number of unreadable packets and events, and of places where bytes are missing."""
    places: dict[int, str] = field(default_factory=dict)
    """Names of tracks, by id: the process, and the thread or track."""
    unread: list[str] = field(default_factory=list)
    """A line if the trace is empty."""

    @property
    def lacks(self) -> str:
        """The side that no message was recorded on, `server` or `client`; empty if both were."""
        if not self.calls:
            return ""
        if not any(call.received or call.reply_sent for call in self.calls):
            return "server"
        return "" if any(call.sent or call.reply_received for call in self.calls) else "client"


def read_rpc_flows(file: BinaryIO) -> RpcFlows:
    """Read the messages of a trace, and assemble them into calls.

    Args:
        file: The trace, at its beginning.

    Raises:
        DecodeError: The file is not a trace.
    """
    importer = import_trace(file)
    rows = importer.slices_with_argument(_ROLE)
    messages = [message for row in rows if (message := _message(*row)) is not None]
    sums = statistics(importer)
    damaged = sum(sums[name] for name in _LOSSES) + bool(sums["stretto_unread_bytes"])
    places = track_places(importer, {message.track for message in messages})
    return RpcFlows(_calls(messages), damaged, places, is_empty(importer))


def _message(
    timestamp: int, duration: int, track: int, flow: int, arguments: dict[str, Any]
) -> Message | None:
    role, method = arguments[_ROLE], arguments.get(_METHOD)
    if role not in (SEND, RECEIVE) or not isinstance(method, str):
        return None
    service = arguments.get(_SERVICE)
    return Message(
        role,
        f"{service}.{method}" if service else method,
        str(arguments.get(_KIND) or "one-way"),
        timestamp,
        track,
        flow,
        timestamp + duration if duration > 0 else 0,
    )


_PARTS = {
    (SEND, False): "sent",
    (RECEIVE, False): "received",
    (SEND, True): "reply_sent",
    (RECEIVE, True): "reply_received",
}


def _calls(messages: list[Message]) -> list[Call]:
    calls: list[Call] = []
    waiting: dict[int, Call] = {}
    for message in messages:
        is_reply = message.kind == "reply"
        part = _PARTS[message.role, is_reply]
        call = waiting.get(message.flow) if message.flow else None
        # Some schemes reuse flow ids: a second message of the same kind begins a new call.
        if call is None or getattr(call, part) is not None:
            # A reply without a flow id is taken for the first reply of a two-way call. It may be a
            # later reply of another call, but first and later replies can't be distinguished.
            kind = "request" if is_reply and not message.flow else message.kind
            call = Call(message.method, kind)
            calls.append(call)
            if message.flow:
                waiting[message.flow] = call
        setattr(call, part, message)
        if part == "received" and " /" in message.method:
            call.method = message.method  # A client of HTTP knows the host only.
    return calls
