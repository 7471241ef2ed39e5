"""The seam between RPC packages and whoever traces them: one slot, empty by default.

The RPC packages (`ipc`, `fidl`) never import a tracer. They look at `hooks`, and tell
what they do where it isn't None; `stretto.flows.install()` puts an object there.

    sender                                      receiver
    hooks, or method.switch.enabled: is it wanted?
    stamp = hooks.now()
    -- write lock -----------------------       -- receive lock -------------------------
    the write                                   the read
    told = hooks.sent(channel, stamp, ...)      told = hooks.received(channel, ...)
    -------------------------------------       -----------------------------------------
    with told:                                  with told:
        a two-way call waits here                   the message is handled here

Rules of a transport
- `sent` comes after a write that succeeded, under the lock that orders the writes: what it
  counts is the order on the wire. `received` likewise, under the lock that orders the reads.
- Every message of a channel is told, traced or not, known or not, as long as there are hooks; on
  a `numbered` channel only those of a method whose switch is on, and their order doesn't matter.
- `stamp` is taken before the write: no receiver shall be earlier than its sender.
- A reply is told like any message, by its sender and by its receiver, with its request's txid. A
  received reply is handled, too, on the caller's thread or task.
- What `sent` gives for a REQUEST, and `received` for any message, is None where there is nothing
  to do, else a context manager that is entered and left once: by the thread or task that has sent,
  at once, until the call has ended (if nobody waits for that, at once); by the one that handles
  what was received.
- A transaction id is used once in the life of a connection. Who took over an endpoint that others
  have used (`RpcChannel(adopted=True)`) begins at a random one.
- Hooks raise nothing, block on nothing, and don't use the channel.
- What is told are plain arguments by position: an object for each message would cost more than
  all that is done with it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Protocol

    class End(Protocol):
        """What a channel's key may be derived from: a socket, or whatever holds one."""

        def fileno(self) -> int: ...

    class Told(Protocol):
        """A message that is to be traced: its block is the call, or the handler."""

        def __enter__(self) -> object: ...
        def __exit__(
            self,
            kind: type[BaseException] | None,
            error: BaseException | None,
            traceback: TracebackType | None,
            /,
        ) -> None: ...

    class RpcHooks(Protocol):
        """What is told. Times are the trace clock's nanoseconds."""

        def now(self) -> int:
            """The time for a `stamp`."""

        def opened(self, channel: RpcChannel) -> None:
            """A server's end has been made: its key may be asked for, while its peer is there."""

        def sent(  # noqa: PLR0917  # see the rules
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
        ) -> Told | None:
            """A message was written.

            Returns:
                Of a REQUEST only: its block is the wait for the reply.

            Args:
                channel: To which.
                stamp: `now()` before the write.
                method: Its method.
                kind: REQUEST, ONE_WAY, EVENT, REPLY or CONTROL.
                txid: Its transaction; 0 where the protocol has none for it.
                size: Its bytes; None: not known.
                handles: Descriptors that go with it.
                answer: Of a request with several replies: how many came before this one.
                data: Its bytes, for `RpcMethod.describe`: nobody looks at them who wasn't asked to.
            """

        def received(  # noqa: PLR0917  # see the rules
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
        ) -> Told | None:
            """A message was read; arguments as of `sent`."""

        def lost(self, channel: RpcChannel, outgoing: bool) -> None:
            """Messages of one direction went uncounted."""


REQUEST = 0
"""Wants a reply."""
ONE_WAY = 1
"""Of a client, without a reply."""
EVENT = 2
"""Of a server, unasked."""
REPLY = 3
CONTROL = 4
"""Of the transport itself (FIDL's epitaph): counted, and not shown."""

KIND_NAMES = ("request", "one-way", "event", "reply", "control")


class RpcChannel:
    """One end of a connection, as hooks know it.

    Args:
        end: From which the key of the channel is derived; None: there is no socket.
        is_server: Which end it is.
        adopted: It was made elsewhere (a descriptor that came in a message, or was inherited):
            how many messages went before is not known.
        numbered: Each request has a number that is never used again, one-ways too: nothing
            needs to be counted.
        key: What names the connection at both ends, where they agreed on something (64 bits,
            not 0); then nobody asks the kernel.
    """

    __slots__ = (
        "__weakref__",
        "adopted",
        "born_under",
        "end",
        "is_server",
        "key",
        "numbered",
        "state",
    )

    def __init__(
        self,
        end: End | None,
        *,
        is_server: bool,
        adopted: bool = False,
        numbered: bool = False,
        key: int = 0,
    ) -> None:
        self.end = end
        self.is_server = is_server
        self.adopted = adopted
        self.numbered = numbered
        self.key = key
        self.born_under = hooks
        """Who has been told of every message, if it is told of this one."""
        self.state: object = None
        """The hooks' own."""
        if is_server and end is not None and hooks is not None:
            hooks.opened(self)


class TraceSwitch:
    """Whether messages of one category are wanted now: generated code reads `enabled`, inlined.

    One object per category, for ever. It is off while there are no hooks.
    """

    __slots__ = ("_listeners", "category", "enabled")

    def __init__(self, category: str) -> None:
        self.category = category
        self.enabled = False
        self._listeners: list[Callable[[bool], object]] = []

    def listen(self, on_change: Callable[[bool], object]) -> None:
        """Have `on_change(enabled)` called now and at each change: to swap stubs."""
        self._listeners.append(on_change)
        on_change(self.enabled)

    def set(self, enabled: bool) -> None:
        """For the hooks: switch, and tell the listeners if that changes anything."""
        if enabled != self.enabled:
            self.enabled = enabled
            for on_change in self._listeners:
                on_change(enabled)


NEVER = TraceSwitch("")
"""The switch of what has no category: always off."""


class RpcMethod:
    """What is known of a method for ever.

    Args:
        service: The protocol's or service's name; "" if unknown.
        name: The method's; "" if unknown.
        ordinal: Its number on the wire.
        category: Under which its messages are traced; "": they aren't.
        describe: Makes plain values of what is in a message, without what is sensitive
            (`stretto.base.excerpts`): of its kind, its bytes and how many descriptors went with
            it. None: nobody here can. It may raise a StrettoError.
    """

    __slots__ = ("describe", "name", "ordinal", "service", "state", "switch")

    def __init__(
        self,
        service: str,
        name: str,
        ordinal: int,
        category: str = "",
        describe: Callable[[int, bytes, int], object] | None = None,
    ) -> None:
        self.service = service
        self.name = name
        self.ordinal = ordinal
        self.switch = switch(category) if category else NEVER
        self.describe = describe
        self.state: object = None
        """The hooks' own."""


hooks: RpcHooks | None = None
"""Read it as `rpc_hooks.hooks`, never by `from … import hooks`."""

_switches: dict[str, TraceSwitch] = {}
_on_switch: Callable[[TraceSwitch], object] | None = None


def switch(category: str) -> TraceSwitch:
    """The switch of a category."""
    found = _switches.get(category)
    if found is None:
        found = _switches.setdefault(category, TraceSwitch(category))
        if _on_switch is not None:
            _on_switch(found)
    return found


def set_hooks(new: RpcHooks | None, on_switch: Callable[[TraceSwitch], object] | None) -> None:
    """Fill the slot, or empty it with None: then all switches are off.

    Args:
        new: What is told from now on.
        on_switch: Called with each switch that there is or will be.
    """
    global hooks, _on_switch  # the slot
    hooks, _on_switch = new, on_switch
    for each in list(_switches.values()):
        if on_switch is not None:
            on_switch(each)
        if new is None:
            each.set(False)
