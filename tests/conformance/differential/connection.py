"""A client connection to a port of a tracing service: frames, binding, calls, streams.

A call waits for its reply, so the service has handled the request when the call returns. Replies
of a stream that arrive during the wait are kept for `next_of_stream`.
"""

from __future__ import annotations

import array
import os
import socket
import struct
from collections import defaultdict, deque

from tests.conformance.differential.wire import blob, blobs, last_number, number

TIMEOUT_S = 20


class DisconnectedError(Exception):
    """Raised if the service closes the connection or does not reply in time."""


class Connection:
    """A connection that is bound to one service of the host.

    Args:
        path: Path of the socket.
        port: Name of the service: `ProducerPort` or `ConsumerPort`.
    """

    def __init__(self, path: str, port: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(TIMEOUT_S)
        self.socket.connect(path)
        self.received_fds: list[int] = []
        self._input = b""
        self._replies: defaultdict[int, deque[tuple[bool, bool, bytes]]] = defaultdict(deque)
        self._request = 1
        self._send(blob(3, blob(1, port)))
        bound = self.next_of_stream(1)[2]
        self._service = last_number(bound, 2)
        self._methods = {
            blobs(method, 2)[0].decode(): last_number(method, 1) for method in blobs(bound, 3)
        }

    def close(self) -> None:
        """Close the socket and received descriptors that were not fetched."""
        self.socket.close()
        for fd in self.received_fds:
            os.close(fd)
        self.received_fds.clear()

    def send(self, method: str, arguments: bytes = b"", *, reply: bool = True) -> int:
        """Invoke a method without waiting for its reply; return the request id."""
        self._request += 1
        body = number(1, self._service) + number(2, self._methods[method]) + blob(3, arguments)
        if not reply:
            body += number(4, 1)
        self._send(blob(5, body))
        return self._request

    def call(self, method: str, arguments: bytes = b"") -> tuple[bool, bytes]:
        """Invoke a method and wait for its reply; return its success and the reply message."""
        ok, _, data = self.next_of_stream(self.send(method, arguments))
        return ok, data

    def stream(self, method: str, arguments: bytes = b"") -> list[bytes]:
        """Invoke a method and collect its replies up to the last one."""
        request, out, more = self.send(method, arguments), [], True
        while more:
            _, more, data = self.next_of_stream(request)
            out.append(data)
        return out

    def next_of_stream(self, request: int) -> tuple[bool, bool, bytes]:
        """Return the next reply to a request: (success, whether more follow, reply message)."""
        while not self._replies[request]:
            self._receive()
        return self._replies[request].popleft()

    def has_reply(self, request: int) -> bool:
        """Return whether a reply to the request has arrived, without waiting."""
        return bool(self._replies[request])

    def _send(self, body: bytes) -> None:
        frame = number(2, self._request) + body
        self.socket.sendall(struct.pack("<I", len(frame)) + frame)

    def _receive(self) -> None:
        try:
            data, ancillary, _, _ = self.socket.recvmsg(1 << 17, socket.CMSG_SPACE(4))
        except (TimeoutError, ConnectionError) as error:
            raise DisconnectedError(str(error) or "no answer") from None
        for level, kind, content in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                self.received_fds.extend(array.array("i", content[:4]))
        if not data:
            raise DisconnectedError("end of stream")
        self._input += data
        self._split()

    def _split(self) -> None:
        while len(self._input) >= 4:
            (size,) = struct.unpack_from("<I", self._input)
            if len(self._input) < 4 + size:
                return
            frame, self._input = self._input[4 : 4 + size], self._input[4 + size :]
            for content in blobs(frame, 6):
                ok, more = last_number(content, 1), last_number(content, 2)
                data = b"".join(blobs(content, 3))
                self._replies[last_number(frame, 2)].append((bool(ok), bool(more), data))
            for content in blobs(frame, 4):
                self._replies[last_number(frame, 2)].append((True, False, content))
