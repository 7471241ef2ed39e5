"""A simple model of `_native.SendQueue`, the outgoing queue of a socket, in Python."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stretto.base.errors import TransportError
from stretto.ipc.frames import encode_frame
from stretto.protos.ipc import IPCFrame

if TYPE_CHECKING:
    from stretto.base.unix_socket import UnixSocket


class PlainQueue:
    """A send queue for at most `limit` bytes of frames."""

    def __init__(self, end: UnixSocket, limit: int = 1 << 20) -> None:
        self._end = end
        self._limit = limit
        self._parts: list[tuple[bytes, int]] = []
        self._last_request_id = 0
        self.broken = False

    @property
    def pending(self) -> int:
        return sum(len(data) for data, _ in self._parts)

    def push(self, frame: bytes, fd: int = -1) -> bool:
        if self.broken or self.pending + len(frame) > self._limit:
            return False
        self._parts.append((frame, os.dup(fd) if fd >= 0 else -1))
        self.drain()
        return True

    def invoke(
        self, service_id: int, method_id: int, args: bytes, drop_reply: bool, fd: int = -1
    ) -> int:
        call = IPCFrame.InvokeMethod(
            service_id=service_id, method_id=method_id, args_proto=args, drop_reply=drop_reply
        )
        frame = IPCFrame(request_id=self._last_request_id + 1, msg_invoke_method=call)
        if not self.push(encode_frame(frame), fd):
            return 0
        return self.next_request_id()

    def next_request_id(self) -> int:
        self._last_request_id += 1
        return self._last_request_id

    def drain(self) -> None:
        try:
            while self._parts:
                data, fd = self._parts[0]
                sent = self._end.send(data, fd)
                if not sent:
                    return
                if fd >= 0:
                    os.close(fd)
                self._parts[0] = (data[sent:], -1)
                if sent == len(data):
                    del self._parts[0]
        except TransportError:
            self.broken = True
            self._parts.clear()
