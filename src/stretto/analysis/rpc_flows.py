"""RPC messages of a trace, put together to calls by their flows.

    send request ----> receive request        the handler's slice
                          |
    receive reply <---- send reply            instants

    queueing   from send to the handler's begin
    service    from there to the first reply, or to the handler's end where none was sent
    latency    from send to the reply's arrival; of a message without a reply, the queueing

A message is any slice or instant with the arguments `role` and `method`, whoever wrote it; one of
which only one end is in the trace is unmatched, and so are both ends of one that has no flow.
Times are BOOTTIME nanoseconds.
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
    """One end of a message."""

    role: str
    method: str
    """With its service, if it names one: `Greeter.SayHello`."""
    kind: str
    timestamp: int
    track: int
    flow: int
    """0: it has none."""
    end: int = 0


@dataclass(slots=True)
class Call:
    """A request with its reply, a one-way message, an event, or a further part of a reply.

    What isn't in the trace is None.
    """

    method: str
    kind: str
    sent: Message | None = None
    received: Message | None = None
    reply_sent: Message | None = None
    reply_received: Message | None = None

    @property
    def matched(self) -> bool:
        """Both ends of the message are there, and of its reply if there is any.

        A reply that arrived has been sent, though not every server can tell when: an abort in
        `grpc.aio` is on its way before the handler ends, and its arrow begins at the handler.
        """
        if self.kind == "reply":
            return self.reply_sent is not None and self.reply_received is not None
        replies = self.reply_sent is None or self.reply_received is not None
        return self.sent is not None and self.received is not None and replies

    @property
    def parts(self) -> list[Message]:
        """What is in the trace."""
        all_parts = (self.sent, self.received, self.reply_sent, self.reply_received)
        return [part for part in all_parts if part is not None]

    @property
    def is_loose(self) -> bool:
        """A single end of a message without a flow: nothing says what it belongs to."""
        parts = self.parts
        return len(parts) == 1 and not parts[0].flow

    @property
    def queueing_ns(self) -> int | None:
        """Between sender and handler."""
        return _between(self.sent, self.received)

    @property
    def service_ns(self) -> int | None:
        """In the handler, until it answers."""
        if self.received is None:
            return None
        end = self.reply_sent.timestamp if self.reply_sent is not None else self.received.end
        return end - self.received.timestamp if end else None

    @property
    def latency_ns(self) -> int | None:
        """Until the sender has its answer; without an answer, until the message arrives."""
        if self.kind == "reply":
            return _between(self.reply_sent, self.reply_received)
        return _between(self.sent, self.reply_received if self.kind == "request" else self.received)


def _between(first: Message | None, second: Message | None) -> int | None:
    if first is None or second is None:
        return None
    return second.timestamp - first.timestamp


@dataclass(slots=True)
class RpcFlows:
    """What a trace tells of its RPC."""

    calls: list[Call] = field(default_factory=list)
    damaged: int = 0
    """Packets and events that couldn't be read."""
    places: dict[int, str] = field(default_factory=dict)
    """Names of tracks: process, and thread or track."""


def read_rpc_flows(file: BinaryIO) -> RpcFlows:
    """Read the messages of a trace, and put them together."""
    events = TrackEvents(file)
    messages = _messages(events)
    places = {uuid: _place(uuid, events) for uuid in {each.track for each in messages}}
    return RpcFlows(_calls(messages), events.damaged + events.skipped, places)


def _messages(events: TrackEvents) -> list[Message]:
    """All messages in the order of time, with the ends of their slices."""
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
        # Ids of other schemes come back: a part that is there already begins anew.
        if call is None or getattr(call, part) is not None:
            # Only a flow tells a further part of a reply from the first one.
            kind = "request" if is_reply and not message.flow else message.kind
            call = Call(message.method, kind)
            calls.append(call)
            if message.flow:
                waiting[message.flow] = call
        setattr(call, part, message)
    return calls


def _place(uuid: int, events: TrackEvents) -> str:
    """The process and the thread or track."""
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
