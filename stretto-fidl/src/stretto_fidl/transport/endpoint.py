"""One end of a protocol's channel: reads and writes messages, and calls the tracer's hooks.

The class `Endpoint` is the base of the ends for threads and for asyncio. `write_now` is called
under the lock that orders the writes, and `read_now` under the lock that orders the reads, because
the hooks count messages in the order of these calls (`stretto.base.rpc_hooks`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.base import rpc_hooks
from stretto.base.rpc_hooks import CONTROL, EVENT, ONE_WAY, REPLY, REQUEST, RpcChannel
from stretto_fidl.codec.headers import TransactionHeader, decode_header, encode_epitaph
from stretto_fidl.codec.message import Message, close_all
from stretto_fidl.errors import FidlError
from stretto_fidl.ordinals import EPITAPH_ORDINAL
from stretto_fidl.transport.described import described
from stretto_fidl.transport.message_socket import MessageSocket

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stretto.base.rpc_hooks import MessageSpan, RpcMethod
    from stretto_fidl.bindings.objects import ChannelEnd
    from stretto_fidl.bindings.protocols import Protocol
    from stretto_fidl.codec.handle import Handle


class Incoming:
    """A message that was read.

    Attributes:
        header: The header.
        data: All bytes, the header's included.
        handles: The handles of the message. Once they are passed to the decoder, it owns them.
        taken: Whether the reader has passed the message to the thread or task that waits for it.
        span: The span of the handler, if the message is traced.
    """

    __slots__ = ("data", "handles", "header", "span", "taken")

    def __init__(
        self,
        header: TransactionHeader,
        data: bytes,
        handles: list[Handle],
        span: MessageSpan | None,
    ) -> None:
        self.header, self.data, self.handles, self.span = header, data, handles, span
        self.taken = False

    def arrive(self) -> None:
        """End the span of a message that is not passed to a handler."""
        span, self.span = self.span, None
        if span is not None:
            with span:
                pass

    def drop(self) -> None:
        """Close the handles of an unused message, and end the span of the message."""
        close_all(self.handles)
        self.arrive()


class Endpoint:
    """Base of the channel ends for threads and for asyncio.

    Args:
        protocol: The protocol of the channel.
        end: The end of the channel; the endpoint closes it.
        is_server: Whether this is the server's end.

    Attributes:
        methods: The descriptions of methods that are passed to the hooks, by ordinal. An unknown
            ordinal has a description, too.
    """

    def __init__(self, protocol: type[Protocol], end: ChannelEnd, *, is_server: bool) -> None:
        used = end.used
        self.protocol = protocol
        self.socket = MessageSocket(end)
        self.channel = RpcChannel(self.socket, is_server=is_server, adopted=used)
        self.methods: Mapping[int, RpcMethod] = described(protocol)
        self.pending: Incoming | None = None
        """The message that was read last, until the caller sets this attribute to None."""
        self._kinds = (ONE_WAY, REQUEST) if is_server else (EVENT, REPLY)

    def write_now(
        self, method: RpcMethod, kind: int, txid: int, message: Message, flags: int = 0
    ) -> MessageSpan | None:
        """Write a message, and report it to the hooks.

        Args:
            method: The method of the message.
            kind: The kind of the message, as in `stretto.base.rpc_hooks`.
            txid: The transaction id, or 0.
            message: The whole message, header included.
            flags: Flags for the socket.

        Returns:
            The span of the caller's wait for the reply, if the message is a traced request.

        Raises:
            The errors of `MessageSocket.write`, which has then written nothing.
        """
        hooks = rpc_hooks.hooks
        if hooks is None:
            self.socket.write(message, flags)
            return None
        stamp = hooks.now()
        try:
            self.socket.write(message, flags)
            size, handles = len(message.data), len(message.handles)
            return hooks.sent(
                self.channel, stamp, method, kind, txid, size, handles, 0, message.data
            )
        except (FidlError, BlockingIOError):
            raise
        except BaseException:
            # A signal handler raised an exception, perhaps before the hook had counted the message.
            hooks.lost(self.channel, True)
            raise

    def write_epitaph(self, status: int, flags: int = 0) -> None:
        """Write an epitaph, the last message of a channel, if there is room."""
        self.socket.flush(flags)
        if self.socket.must_flush():
            return
        message = Message(encode_epitaph(status), [])
        self.write_now(self.methods[EPITAPH_ORDINAL], CONTROL, 0, message, flags)

    def read_now(self, flags: int = 0) -> Incoming | None:
        """Read a message and report it to the hooks.

        Return None if the peer has closed the channel.

        Each call returns the same message until the caller sets `pending` to None.

        Raises:
            BlockingIOError: No message has arrived; with `DONTWAIT` only.
            PeerError: The bytes are not a message.
            WireError: The header breaks FIDL's rules.
        """
        if self.pending is not None:
            return self.pending
        got = self.socket.read(flags)
        if got is None:
            return None
        data, handles = got
        try:
            header = decode_header(data)
        except ValueError:
            close_all(handles)
            raise
        incoming = Incoming(header, data, handles, None)
        hooks = rpc_hooks.hooks
        if hooks is None:
            self.pending, self.socket.message = incoming, None
            return incoming
        ordinal, txid = header.ordinal, header.txid
        kind = CONTROL if ordinal == EPITAPH_ORDINAL else self._kinds[txid != 0]
        try:
            incoming.span = hooks.received(
                self.channel, self.methods[ordinal], kind, txid, len(data), len(handles), 0, data
            )
            self.pending, self.socket.message = incoming, None
        except BaseException:
            # A signal handler raised an exception, perhaps before the hook had counted the message.
            self.pending, self.socket.message = incoming, None
            hooks.lost(self.channel, False)
            raise
        return incoming
