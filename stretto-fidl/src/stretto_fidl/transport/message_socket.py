"""Messages over a unix socket: bytes and handles.

SOCK_SEQPACKET    a message is a packet
SOCK_STREAM       a message is  size: 4 bytes   handles: 4 bytes   the bytes

The numbers are little-endian. Handles are sent as descriptors (SCM_RIGHTS) with the packet, or with
the first byte of the frame. A message has at most 65536 bytes and 64 handles. A message that is
larger, or has a wrong number of descriptors, is refused, and its descriptors are closed.

The caller makes sure that one thread writes and one reads at a time. The socket stays in blocking
mode, because the mode is shared with every copy of the descriptor; with `DONTWAIT` a function
raises BlockingIOError instead of waiting.

A signal handler may raise an exception just after a function has returned; the returned value is
then lost. The results of system calls must not be lost: `list.extend(map(f, …))` stores the result
of `f` before any handler runs. For the same reason an incomplete frame is kept until it is flushed,
and a read message is kept in `message` until the caller sets that to None.
"""

from __future__ import annotations

import array
import os
import socket
import struct
from sys import is_finalizing
from typing import TYPE_CHECKING, Final

from stretto_fidl.bindings.objects import ChannelEnd, adopt
from stretto_fidl.codec.headers import HEADER_SIZE
from stretto_fidl.codec.message import MAX_BYTES, MAX_HANDLES, close_all
from stretto_fidl.codec.wire_error import HANDLE_CLOSED, WireError
from stretto_fidl.errors import FidlError
from stretto_fidl.transport.errors import ClosedError, PeerError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from stretto_fidl.codec.handle import Handle
    from stretto_fidl.codec.message import Message

_FRAME: Final = struct.Struct("<II")
_FD_SIZE: Final = 4
_CUT_OFF: Final = "the peer has gone in the middle of a message"

# These are plain ints, because `|` of the socket module's flags creates an object on each call.
DONTWAIT: Final = int(socket.MSG_DONTWAIT)
_NOSIGNAL: Final = int(socket.MSG_NOSIGNAL)
_CLOEXEC: Final = int(socket.MSG_CMSG_CLOEXEC)
_TRUNCATED: Final = int(socket.MSG_CTRUNC | socket.MSG_TRUNC)
_ANCILLARY: Final = socket.CMSG_SPACE(MAX_HANDLES * _FD_SIZE)


class MessageSocket:
    """One end of a connection.

    Args:
        end: A connected unix socket; this object closes it.

    Raises:
        FidlError: The descriptor isn't a connected unix socket.
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
        self.message: tuple[bytes, list[Handle]] | None = None
        """The result of `read`, until the caller has stored it and sets this to None."""
        self._frame = b""
        self._sent: list[int] = []
        self._buffer = memoryview(bytearray(MAX_BYTES))
        self._received: list[Any] = []
        self._fds: list[int] = []
        self._handles: list[Handle] = []
        self._is_broken = False
        self._filled = 0
        self._expected = (0, 0)

    def fileno(self) -> int:
        """Return the descriptor; -1 after closing."""
        return self._socket.fileno()

    def must_flush(self) -> bool:
        """Return whether a frame is written in part, so that `flush` has to write the rest."""
        return self.is_stream and 0 < sum(self._sent) < len(self._frame)

    def write(self, message: Message, flags: int = 0) -> None:
        """Write a message, and close its handles on this side.

        The previous message must have been flushed.

        Raises:
            BlockingIOError: There is no room, and nothing was written; with `DONTWAIT` only.
            ClosedError: The peer has closed the channel; nothing was written.
            WireError: A handle has another type than the message says; nothing was written.
        """
        handles = [disposition.transfer() for disposition in message.handles]
        if len(handles) > 1 and len(set(map(id, handles))) < len(handles):
            problem = "the same handle is in the message twice: send a `duplicate()` of it"
            raise WireError(HANDLE_CLOSED, problem)
        data = message.data
        if self.is_stream:
            data = _FRAME.pack(len(data), len(handles)) + data
        fds = array.array("i", [handle.fd for handle in handles])
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)] if fds else []
        send = self._socket.sendmsg
        sent: list[int] = []
        self._frame, self._sent = data, sent
        try:
            sent.extend(map(send, ((data,),), (ancillary,), (flags | _NOSIGNAL,)))
        except BlockingIOError:
            raise
        except (BrokenPipeError, ConnectionResetError) as error:
            raise ClosedError from error
        except OSError as error:
            if self.fileno() < 0:
                raise ClosedError(by_us=True) from error
            raise FidlError(f"the message can't be sent: {error}") from error
        close_all(handles)
        if sent[0] < len(data):
            self.flush(flags)

    def flush(self, flags: int = 0) -> None:
        """Write as much as possible of the frame that is partly written."""
        frame, sent = self._frame, self._sent
        try:
            while self.must_flush():
                sent.extend(map(self._socket.send, (frame[sum(sent) :],), (flags | _NOSIGNAL,)))
        except BlockingIOError:
            return
        except OSError:
            self._sent = []  # The peer has closed the channel. The next read reports it.

    def read(self, flags: int = 0) -> tuple[bytes, list[Handle]] | None:
        """Read a message; return None if the peer has closed the channel.

        Each call returns the same message until the caller sets `message` to None.

        Raises:
            BlockingIOError: No complete message has arrived; with `DONTWAIT` only.
            PeerError: The bytes are not a message.
        """
        if self.message is not None:
            return self.message
        if self._is_broken:
            raise PeerError("the reader of a message was interrupted, and its handles got lost")
        try:
            there = self._read_frame(flags) if self.is_stream else self._read_packet(flags)
            self._adopt_handles()
        except PeerError:
            self._close_fds()
            raise
        if not there:
            return None
        message = bytes(self._buffer[: self._filled]), self._handles
        self.message, self._filled, self._expected, self._handles = message, 0, (0, 0), []
        return message

    def _read_packet(self, flags: int) -> bool:
        # The buffer already holds a packet if an exception interrupted the last read.
        return self._filled > 0 or self._receive(self._buffer, flags)

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
            raise PeerError(_CUT_OFF)
        came = len(self._fds) + len(self._handles)
        if came != handles:
            raise PeerError(f"{came} handles came with a frame of {handles}")
        return True

    def _fill(self, size: int, flags: int) -> bool:
        """Read until the buffer has `size` bytes; return False if the peer closes the channel."""
        while self._filled < size:
            if not self._receive(self._buffer[self._filled : size], flags):
                if self._filled:
                    raise PeerError(_CUT_OFF)
                return False
        return True

    def _receive(self, into: memoryview, flags: int) -> bool:
        """Receive more bytes; return False at the end of the connection."""
        received = self._received
        if not received:
            buffers, flags, receive = ((into,),), flags | _CLOEXEC, self._socket.recvmsg_into
            try:
                # The first read after a reset raises; the second read returns the bytes that
                # arrived earlier.
                try:
                    received.extend(map(receive, buffers, (_ANCILLARY,), (flags,)))
                except ConnectionResetError:
                    received.extend(map(receive, buffers, (_ANCILLARY,), (flags,)))
            except BlockingIOError:
                raise
            except OSError:
                return False
        size, ancillary, state, _ = received[0]
        fds = self._fds
        if ancillary:
            fds = fds.copy()
        for level, kind, data in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                fds += array.array("i", data[: len(data) // _FD_SIZE * _FD_SIZE])
        self._fds, self._received, self._filled = fds, [], self._filled + size
        if state & _TRUNCATED or len(self._fds) > MAX_HANDLES:
            raise PeerError("the peer sent a message that is too large, or too many handles")
        return bool(size)

    def _adopt_handles(self) -> None:
        """Make handles for the received descriptors."""
        if not self._fds:
            return
        (fds, self._fds), handles = (self._fds, []), []
        try:
            while fds:
                handles.append(adopt(fds[0]))
                del fds[0]
        except OSError as error:
            self._fds = fds
            close_all(handles)
            raise PeerError(f"a received descriptor can't be used: {error}") from error
        except BaseException:
            # A signal handler raised an exception: a handle may own the first descriptor already.
            self._is_broken = True
            self._fds = fds[1:]
            raise
        self._handles = handles

    def _close_fds(self) -> None:
        close_all(self._handles)
        while self._fds:
            os.close(self._fds.pop())

    def shutdown(self) -> None:
        """Shut the connection down. This wakes threads that read or write."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # The socket isn't connected any more.

    def detach(self) -> ChannelEnd:
        """Return the channel end without closing it; this object can't be used afterwards."""
        return ChannelEnd(self._socket.detach())

    def close(self) -> None:
        """Close the socket; a second call does nothing."""
        self._close_fds()
        self._socket.close()

    def __del__(self, _is_finalizing: Callable[[], bool] = is_finalizing) -> None:
        if not hasattr(self, "_expected"):
            return
        if _is_finalizing():  # Modules may have no globals; the process's end closes other handles.
            self._socket.close()
        else:
            self.close()
