"""Messages over a unix socket: bytes, and handles that stick to them.

SOCK_SEQPACKET    a message is a packet
SOCK_STREAM       a message is  size: 4 bytes   handles: 4 bytes   the bytes

Little-endian; handles travel as descriptors (SCM_RIGHTS), with the packet, or with the first
byte of the frame. A message has at most 65536 bytes and 64 handles. What a hostile peer sends
beyond that, or with descriptors that don't fit, is refused and its descriptors are closed.

Whoever uses it takes care that one thread writes and one reads at a time. The socket stays
in blocking mode, which is shared with whoever has a copy of the descriptor; who mustn't block
passes `DONTWAIT`, and gets BlockingIOError.
"""

from __future__ import annotations

import array
import os
import socket
import struct
from typing import TYPE_CHECKING, Final

from stretto.fidl.bindings.objects import ChannelEnd, adopt
from stretto.fidl.codec.headers import HEADER_SIZE
from stretto.fidl.codec.message import MAX_BYTES, MAX_HANDLES, close_all
from stretto.fidl.errors import FidlError
from stretto.fidl.transport.errors import ClosedError, PeerError

if TYPE_CHECKING:
    from stretto.fidl.codec.handle import Handle
    from stretto.fidl.codec.message import Message

_FRAME: Final = struct.Struct("<II")
_FD_SIZE: Final = 4

# As plain ints: `|` of socket's flags makes an object each time.
DONTWAIT: Final = int(socket.MSG_DONTWAIT)
_NOSIGNAL: Final = int(socket.MSG_NOSIGNAL)
_CLOEXEC: Final = int(socket.MSG_CMSG_CLOEXEC)
_TRUNCATED: Final = int(socket.MSG_CTRUNC | socket.MSG_TRUNC)
_ANCILLARY: Final = socket.CMSG_SPACE(MAX_HANDLES * _FD_SIZE)


class MessageSocket:
    """One end of a connection.

    Args:
        end: A connected unix socket; owned from now on.

    Raises:
        FidlError: It is no such socket.
    """

    def __init__(self, end: ChannelEnd) -> None:
        try:
            self._socket = socket.socket(fileno=end.fd)
        except OSError as error:
            raise FidlError(f"a channel's end must be a unix socket: {error}") from error
        end.detach()
        if self._socket.family != socket.AF_UNIX:
            self._socket.close()
            raise FidlError("a channel's end must be a unix socket")
        self._socket.settimeout(None)
        self.is_stream = self._socket.type == socket.SOCK_STREAM
        self._buffer = memoryview(bytearray(MAX_BYTES))
        self._fds: list[int] = []
        self._filled = 0
        self._expected = (0, 0)
        self._rest = b""

    def fileno(self) -> int:
        """The descriptor; -1 once it is closed."""
        return self._socket.fileno()

    # --- writing

    def must_flush(self) -> bool:
        """A part of a frame is left: call `flush` when the socket can be written."""
        return bool(self._rest)

    def write(self, message: Message, flags: int = 0) -> None:
        """Write a message, whose handles are closed then.

        Raises:
            BlockingIOError: Nothing was written, and with `DONTWAIT` nothing can be now.
            ClosedError: The peer has gone; nothing was written.
            WireError: A handle isn't what the message says; nothing was written.
        """
        handles = [disposition.transfer() for disposition in message.handles]
        data = message.data
        if self.is_stream:
            data = _FRAME.pack(len(data), len(handles)) + data
        fds = array.array("i", [handle.fd for handle in handles])
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)] if fds else []
        try:
            sent = self._socket.sendmsg([data], ancillary, flags | _NOSIGNAL)
        except BlockingIOError:
            raise
        except (BrokenPipeError, ConnectionResetError) as error:
            raise ClosedError from error
        except OSError as error:
            if self.fileno() < 0:
                raise ClosedError(by_us=True) from error
            raise FidlError(f"the message can't be sent: {error}") from error
        close_all(handles)
        self._rest = data[sent:]
        if self._rest:
            self.flush(flags)

    def flush(self, flags: int = 0) -> None:
        """Go on with the rest of a frame, as far as can be."""
        try:
            while self._rest:
                self._rest = self._rest[self._socket.send(self._rest, flags | _NOSIGNAL) :]
        except BlockingIOError:
            return
        except OSError:
            self._rest = b""  # the peer has gone: the reader will see it

    # --- reading

    def read(self, flags: int = 0) -> tuple[bytes, list[Handle]] | None:
        """Read a message; None: the peer has gone.

        Raises:
            BlockingIOError: With `DONTWAIT`: no whole message is there.
            PeerError: The peer sent what is no message.
        """
        try:
            there = self._read_frame(flags) if self.is_stream else self._read_packet(flags)
        except PeerError:
            self._close_fds()
            raise
        if not there:
            self._close_fds()
            return None
        size, self._filled = self._filled, 0
        self._expected = (0, 0)
        return bytes(self._buffer[:size]), self._take_handles()

    def _read_packet(self, flags: int) -> bool:
        self._filled = self._receive(self._buffer, flags)
        return self._filled > 0

    def _read_frame(self, flags: int) -> bool:
        if self._expected[0] == 0:
            if not self._fill(_FRAME.size, flags):
                return False
            size, handles = _FRAME.unpack_from(self._buffer)
            if not HEADER_SIZE <= size <= MAX_BYTES or handles > MAX_HANDLES:
                raise PeerError(f"the peer sent a frame of {size} bytes and {handles} handles")
            self._expected, self._filled = (size, handles), 0
        size, handles = self._expected
        if not self._fill(size, flags):
            return False
        if len(self._fds) != handles:
            raise PeerError(f"{len(self._fds)} handles came with a frame of {handles}")
        return True

    def _fill(self, size: int, flags: int) -> bool:
        while self._filled < size:
            received = self._receive(self._buffer[self._filled : size], flags)
            if not received:
                return False
            self._filled += received
        return True

    def _receive(self, into: memoryview, flags: int) -> int:
        flags |= _CLOEXEC
        try:
            # What the peer wrote before it reset the connection is there behind the error.
            try:
                got = self._socket.recvmsg_into([into], _ANCILLARY, flags)
            except ConnectionResetError:
                got = self._socket.recvmsg_into([into], _ANCILLARY, flags)
        except BlockingIOError:
            raise
        except OSError:
            return 0
        size, ancillary, state, _ = got
        for level, kind, data in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                self._fds += array.array("i", data[: len(data) // _FD_SIZE * _FD_SIZE])
        if state & _TRUNCATED or len(self._fds) > MAX_HANDLES:
            raise PeerError("the peer sent a message that is too large, or too many handles")
        return size

    def _take_handles(self) -> list[Handle]:
        fds, self._fds = self._fds, []
        handles: list[Handle] = []
        try:
            while fds:
                handles.append(adopt(fds[0]))
                del fds[0]
        except OSError as error:
            self._fds = fds
            close_all(handles)
            self._close_fds()
            raise PeerError(f"a handle that came is of no use: {error}") from error
        return handles

    def _close_fds(self) -> None:
        while self._fds:
            os.close(self._fds.pop())

    # --- the end

    def shutdown(self) -> None:
        """Wake whoever reads or writes here; the peer sees the end."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # it has ended already

    def detach(self) -> ChannelEnd:
        """Give the socket back."""
        return ChannelEnd(self._socket.detach())

    def close(self) -> None:
        """Close it; closing again does nothing."""
        self._close_fds()
        self._socket.close()

    def __del__(self) -> None:
        if hasattr(self, "_rest"):
            self.close()
