"""One end of a channel that speaks a protocol: messages in and out, and told to the seam.

What is common to ends that block and ends that don't. The callers keep the order: `write_now` is
called under the lock that orders the writes, `read_now` under the one for the reads, for the
seam counts messages in the order of these calls.
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

    from stretto.base.rpc_hooks import RpcMethod, Told
    from stretto_fidl.bindings.objects import ChannelEnd
    from stretto_fidl.bindings.protocols import Protocol
    from stretto_fidl.codec.handle import Handle


class Incoming:
    """A message that was read.

    Attributes:
        header: Its header.
        data: All its bytes.
        handles: Owned by whoever decodes it.
        taken: Somebody has it now who isn't its reader.
        told: Of the seam: around the handler; None if nobody wants to know.
    """

    __slots__ = ("data", "handles", "header", "taken", "told")

    def __init__(
        self, header: TransactionHeader, data: bytes, handles: list[Handle], told: Told | None
    ) -> None:
        self.header, self.data, self.handles, self.told = header, data, handles, told
        self.taken = False

    def arrive(self) -> None:
        """Tell of a message that no handler will get."""
        told, self.told = self.told, None
        if told is not None:
            with told:
                pass

    def drop(self) -> None:
        """Nobody wants it: close its handles."""
        close_all(self.handles)
        self.arrive()


class Endpoint:
    """See the head of the module.

    Args:
        protocol: What is spoken.
        end: The channel's end, owned from now on.
        is_server: Which end it is.

    Attributes:
        methods: How the seam knows the methods, by ordinal, known or not.
    """

    def __init__(self, protocol: type[Protocol], end: ChannelEnd, *, is_server: bool) -> None:
        used = end.used
        self.protocol = protocol
        self.socket = MessageSocket(end)
        self.channel = RpcChannel(self.socket, is_server=is_server, adopted=used)
        self.methods: Mapping[int, RpcMethod] = described(protocol)
        self.pending: Incoming | None = None
        """What `read_now` returned: a signal's handler may raise before anybody has it."""
        self._kinds = (ONE_WAY, REQUEST) if is_server else (EVENT, REPLY)

    def write_now(
        self, method: RpcMethod, kind: int, txid: int, message: Message, flags: int = 0
    ) -> Told | None:
        """Write a message, and tell of it.

        Args:
            method: Which.
            kind: As in `stretto.base.rpc_hooks`.
            txid: Its transaction, or 0.
            message: Header and all.
            flags: For the socket.

        Returns:
            Of a request that is traced: its block is the wait for the reply.

        Raises:
            As `MessageSocket.write`; then nothing was written.
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
            hooks.lost(self.channel, True)  # a signal's: nobody knows whether it was counted
            raise

    def write_epitaph(self, status: int, flags: int = 0) -> None:
        """Write the last message of a channel, unless there is no room."""
        self.socket.flush(flags)
        if self.socket.must_flush():
            return
        message = Message(encode_epitaph(status), [])
        self.write_now(self.methods[EPITAPH_ORDINAL], CONTROL, 0, message, flags)

    def read_now(self, flags: int = 0) -> Incoming | None:
        """Read a message, and tell of it; None: the peer has gone.

        It stays in `pending`, and is returned again, until the caller takes it from there.

        Raises:
            BlockingIOError: With `DONTWAIT`: none is there.
            PeerError: What came is no message.
            WireError: Its header breaks the rules.
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
            incoming.told = hooks.received(
                self.channel, self.methods[ordinal], kind, txid, len(data), len(handles), 0, data
            )
            self.pending, self.socket.message = incoming, None
        except BaseException:
            # A signal's: nobody knows whether it was counted.
            self.pending, self.socket.message = incoming, None
            hooks.lost(self.channel, False)
            raise
        return incoming
