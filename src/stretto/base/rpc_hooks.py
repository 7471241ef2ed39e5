"""The interface between RPC transports and a tracer of their messages.

A transport (`stretto.ipc`, `stretto_fidl.transport`, or your own) calls the hooks in `hooks` for
its messages. A tracer (`stretto.flows`) sets them. Neither imports the other: both import only this
module. Until a tracer is installed, `hooks` is None, and a message costs the transport one
comparison.

Objects and their lifetime

    RpcMethod    one for each method, made once by generated code or by the transport; never deleted
    TraceSwitch  one for each category; `enabled` while a tracer is installed that records it
    RpcChannel   one for each end of a connection; made and deleted with the end
    MessageSpan  made by a hook for one message; entered once and left once

Calls

    sender                                       receiver
    hooks = rpc_hooks.hooks                      hooks = rpc_hooks.hooks
    stamp = hooks.now()
    -- lock of the channel's writes ------       -- lock of the channel's reads -------
    write the message                            read the message
    span = hooks.sent(channel, stamp, ...)       span = hooks.received(channel, ...)
    --------------------------------------       --------------------------------------
    with span: wait for the reply                with span: handle the message

- `opened(channel)`: `RpcChannel` itself calls it for a server's end, when the end is made.
- `now()`, then the write, then `sent()`: the stamp is earlier than any time of the receiver. `sent`
  is called after the write has succeeded, and not called if it has failed.
- `received()`: after a message has been read, before it is handled.
- `lost(channel, outgoing)`: when the transport can't say whether a message was counted, as when a
  signal handler has raised between a write and its `sent`.

What a transport must do

- Call `sent` under the lock that orders the writes, and `received` under the lock that orders the
  reads: the hooks count messages, and their count must be the order on the wire.
- Call the hooks for every message of a channel while `hooks` is set: for methods whose switch is
  off, for unknown methods, for replies and for its own control messages. On a `numbered` channel,
  call them only for methods whose switch is on, in any order, without lock.
- Give a reply the transaction id of its request, at both ends. Use a transaction id once in the
  lifetime of a connection. If an end was used by others before (`adopted`), begin at a random id.
- Enter a span (unless it is None) at once, on the thread or task that sends or handles the message.
  Leave it when the call has ended or the handler has returned. Enter the span of a received reply
  on the caller's thread or task. If the reply is passed to a callback, enter and leave the span of
  the request at once.
- Pass arguments by position: the hooks are native functions, and run for each message.

What hooks must do

- Return None, or a span, and never raise, wait, or use the channel.
- Return a span from `sent` for a REQUEST only.

Examples: the messages of `stretto_fidl.transport.endpoint` are counted by the hooks, those of
`stretto.ipc.client` are numbered; `tests/support/framed_rpc.py` is a small complete transport.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Protocol

    class End(Protocol):
        """A socket, or an object that holds one. The socket's kernel cookie names the channel."""

        def fileno(self) -> int: ...

    class MessageSpan(Protocol):
        """A context manager whose slice is the wait for a reply, or the handling of a message."""

        def __enter__(self) -> object: ...
        def __exit__(
            self,
            kind: type[BaseException] | None,
            error: BaseException | None,
            traceback: TracebackType | None,
            /,
        ) -> None: ...

    class RpcHooks(Protocol):
        """The hooks of a tracer. Times are nanoseconds of the trace clock."""

        def now(self) -> int:
            """Return the current time, for `stamp`."""

        def opened(self, channel: RpcChannel) -> None:
            """Handle the creation of a server's end, for example by determining the channel's key.

            After the peer has disconnected, the key can't be determined any more."""

        def sent(  # noqa: PLR0917  # positional, so that calls are fast
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
            """Record a message that was written.

            Returns:
                For a REQUEST that is traced, the span of the wait for its reply; else None.

            Args:
                channel: The end that wrote the message.
                stamp: `now()` before the write.
                method: The method of the message.
                kind: REQUEST, ONE_WAY, EVENT, REPLY or CONTROL.
                txid: The transaction id; 0 if the protocol has none for this message.
                size: The number of bytes; None if unknown.
                handles: The number of descriptors that the message carries.
                answer: For a request with several replies, the number of earlier replies.
                data: The bytes, for `RpcMethod.describe`; unused unless bodies are recorded.
            """

        def received(  # noqa: PLR0917  # positional, so that calls are fast
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
            """Record a message that was read. The arguments are those of `sent`.

            Returns:
                For a message that is traced, the span of its handling; else None.
            """

        def lost(self, channel: RpcChannel, outgoing: bool) -> None:
            """Record that an unknown number of messages of one direction was not counted."""


REQUEST = 0
"""A message from a client; a reply follows."""
ONE_WAY = 1
"""A message from a client; no reply follows."""
EVENT = 2
"""A message from a server, without a request."""
REPLY = 3
"""A message from a server: the reply to a REQUEST."""
CONTROL = 4
"""A message of the transport itself, like FIDL's epitaph: counted, but not in the trace."""

KIND_NAMES = ("request", "one-way", "event", "reply", "control")


class RpcChannel:
    """One end of a connection, as an argument of the hooks.

    Args:
        end: The socket that the key of the channel is derived from; None if there is none.
        is_server: Whether this is the server's end.
        adopted: The end was made elsewhere: a descriptor that came in a message, or was inherited.
            The number of earlier messages is not known.
        numbered: Each request, also a one-way one, has a number that is never used again, so that
            messages don't need to be counted.
        key: A key that both ends have agreed on (64 bits, not 0); 0 derives it from `end`.
    """

    __slots__ = (
        "__weakref__",
        "adopted",
        "created_under",
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
        self.created_under = hooks
        """The hooks at creation: only these can have counted every message."""
        self.state: object = None
        """Storage of the hooks for this object."""
        if is_server and end is not None and hooks is not None:
            hooks.opened(self)


class TraceSwitch:
    """Whether messages of one category are traced now. Generated code reads `enabled` inline.

    A category has one switch for the lifetime of the process. It is off while no hooks are set.
    """

    __slots__ = ("_listeners", "category", "enabled")

    def __init__(self, category: str) -> None:
        self.category = category
        self.enabled = False
        self._listeners: list[Callable[[bool], object]] = []

    def listen(self, on_change: Callable[[bool], object]) -> None:
        """Call `on_change(enabled)` now and at each change, for example to replace stubs."""
        self._listeners.append(on_change)
        on_change(self.enabled)

    def set(self, enabled: bool) -> None:
        """Set `enabled`, and call the listeners if it has changed. Only the tracer calls this."""
        if enabled != self.enabled:
            self.enabled = enabled
            for on_change in self._listeners:
                on_change(enabled)


NEVER = TraceSwitch("")
"""The switch of methods without a category: always off."""


class RpcMethod:
    """A method of a protocol or service.

    Args:
        service: The name of the protocol or service; "" if unknown.
        name: The name of the method; "" if unknown.
        ordinal: The number of the method on the wire.
        category: The category of the method's messages; "" if they are not traced.
        describe: Returns plain values for a message, without sensitive values
            (`stretto.base.excerpts`), from the message's kind, its bytes and the number of its
            descriptors. It may raise a StrettoError. None if messages can't be decoded here.
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
        """Storage of the hooks for this object."""


hooks: RpcHooks | None = None
"""The hooks; None while no tracer is installed. Read it as `rpc_hooks.hooks`: it changes."""

_switches: dict[str, TraceSwitch] = {}
_on_switch: Callable[[TraceSwitch], object] | None = None


def switch(category: str) -> TraceSwitch:
    """Return the switch of a category."""
    found = _switches.get(category)
    if found is None:
        found = _switches.setdefault(category, TraceSwitch(category))
        if _on_switch is not None:
            _on_switch(found)
    return found


def set_hooks(new: RpcHooks | None, on_switch: Callable[[TraceSwitch], object] | None) -> None:
    """Set the hooks, or remove them with None, which turns all switches off. Called by tracers.

    Args:
        new: The hooks to call from now on.
        on_switch: Called with each existing switch now, and with each new one when it is made.
    """
    global hooks, _on_switch
    hooks, _on_switch = new, on_switch
    for each in list(_switches.values()):
        if on_switch is not None:
            on_switch(each)
        if new is None:
            each.set(False)
