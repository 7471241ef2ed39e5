"""The RPC calls of a trace, assembled from messages by their flows.

    send request ----> receive request        the handler's slice
                          |
    receive reply <---- send reply            instants

    queueing   from send to the handler's begin
    service    from the handler's begin to the first reply, or without a reply to the handler's end
    latency    from send to the reply's arrival; equal to queueing for a message without a reply

Every slice or instant with the arguments `role` and `method` is a message. A message is unmatched
if its sending or its receiving is missing in the trace, or if the message has no flow. Times are
BOOTTIME nanoseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stretto.analysis.track_events import BEGIN, END, INSTANT, TrackEvents
from stretto.base.errors import DecodeError

if TYPE_CHECKING:
    from typing import BinaryIO

    from stretto.analysis.track_events import Event

SEND, RECEIVE = "send", "receive"
_MAX_PARENTS = 32


@dataclass(slots=True)
class Message:
    """The sending or the receiving of a message."""

    role: str
    method: str
    """The method, with its service if that is known: `Greeter.SayHello`."""
    kind: str
    timestamp: int
    track: int
    flow: int
    """The id of the flow; 0 if there is none."""
    end: int = 0


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
    """The number of unreadable packets and events."""
    places: dict[int, str] = field(default_factory=dict)
    """Names of tracks, by uuid: the process, and the thread or track."""


def read_rpc_flows(file: BinaryIO) -> RpcFlows:
    """Read the messages of a trace, and assemble them into calls."""
    events = TrackEvents(file)
    messages = _messages(events)
    places = {uuid: _place(uuid, events) for uuid in {each.track for each in messages}}
    return RpcFlows(_calls(messages), events.damaged + events.skipped, places)


def _messages(events: TrackEvents) -> list[Message]:
    """Return all messages sorted by time, with the ends of their slices."""
    found: list[tuple[int, int, int, Message | None]] = []
    for event in events:
        if event.kind in (BEGIN, INSTANT):
            try:
                message = _message(event)
            except DecodeError:
                events.damaged += 1
                message = None
            found.append((event.timestamp, event.kind, event.track, message))
        elif event.kind == END:
            found.append((event.timestamp, END, event.track, None))
    found.sort(key=lambda each: each[0])
    open_slices: dict[int, list[Message | None]] = {}
    messages = []
    for timestamp, kind, track, message in found:
        if message is not None:
            messages.append(message)
        if kind == BEGIN:
            open_slices.setdefault(track, []).append(message)
        elif kind == END and open_slices.get(track):
            ended = open_slices[track].pop()
            if ended is not None:
                ended.end = timestamp
    return messages


def _message(event: Event) -> Message | None:
    if not event.annotations:
        return None
    arguments = event.arguments()
    role, method = arguments.get("role"), arguments.get("method")
    if role not in (SEND, RECEIVE) or not isinstance(method, str):
        return None
    service = arguments.get("service")
    return Message(
        role,
        f"{service}.{method}" if service else method,
        str(arguments.get("kind") or "one-way"),
        event.timestamp,
        event.track,
        event.flows[0] if event.flows else 0,
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
    return calls


def _place(uuid: int, events: TrackEvents) -> str:
    """Return the names of a track and of its parents, from the process down."""
    names: list[str] = []
    for _ in range(_MAX_PARENTS):
        track = events.tracks.get(uuid)
        if track is None:
            break
        if track.process is not None:
            names.append(f"{track.process.process_name or 'process'} {track.process.pid}")
        elif track.thread is not None:
            names.append(f"{track.thread.thread_name or 'thread'} {track.thread.tid}")
            if not track.parent_uuid:
                names.append(f"process {track.thread.pid}")
        elif track.name:
            names.append(track.name)
        uuid = track.parent_uuid
    return " / ".join(reversed(names))
