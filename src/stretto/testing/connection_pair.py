"""A connection between a client and a host without a socket: each frame is delivered by a task.

Frames sent by one side are delivered to the machine of the other side in order. Descriptors are
duplicated, as by the kernel.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stretto.ipc.frames import HEADER_BYTES, encode_frame
from stretto.protos.ipc import IPCFrame

if TYPE_CHECKING:
    from stretto.base.task_runner import TaskRunner
    from stretto.ipc.connection import Machine


class MemoryOutbox:
    """The outbox of one side: delivers frames to the protocol machine of the other side.

    Attributes:
        sent: Every accepted frame.
        accepting: If False, frames are refused, as by a full queue.
    """

    def __init__(self, runner: TaskRunner) -> None:
        self._runner = runner
        self._peer: Machine | None = None
        self._last_request_id = 0
        self.sent: list[IPCFrame] = []
        self.accepting = True

    def connect(self, peer: Machine) -> None:
        """Deliver frames to `peer` from now on."""
        self._peer = peer

    def disconnect(self) -> None:
        """Refuse all frames from now on, and close the peer."""
        self.accepting = False
        peer, self._peer = self._peer, None
        if peer is not None:
            peer.close()

    def push(self, frame: bytes, fd: int = -1) -> bool:
        if not self.accepting:
            return False
        payload = frame[HEADER_BYTES:]
        self.sent.append(IPCFrame.decode(payload))
        passed_fd = os.dup(fd) if fd >= 0 else -1
        self._runner.post(lambda: self._deliver(payload, passed_fd))
        return True

    def invoke(
        self, service_id: int, method_id: int, args: bytes, drop_reply: bool, fd: int = -1
    ) -> int:
        call = IPCFrame.InvokeMethod(
            service_id=service_id, method_id=method_id, args_proto=args, drop_reply=drop_reply
        )
        if not self.accepting:
            return 0
        request_id = self.next_request_id()
        self.push(encode_frame(IPCFrame(request_id=request_id, msg_invoke_method=call)), fd)
        return request_id

    def next_request_id(self) -> int:
        self._last_request_id += 1
        return self._last_request_id

    def _deliver(self, payload: bytes, fd: int) -> None:
        if self._peer is None:
            if fd >= 0:
                os.close(fd)
            return
        self._peer.park_fd(fd)
        self._peer.receive(payload)


class ConnectionPair:
    """The outboxes of both sides.

    Example:
        pair = ConnectionPair(runner)
        client = Client(pair.client_outbox)
        host = HostConnection(services, pair.host_outbox, on_refused)
        pair.connect(client, host)
    """

    def __init__(self, runner: TaskRunner) -> None:
        self.client_outbox = MemoryOutbox(runner)
        self.host_outbox = MemoryOutbox(runner)

    def connect(self, client: Machine, host: Machine) -> None:
        """Connect each outbox to the machine of the other side."""
        self.client_outbox.connect(host)
        self.host_outbox.connect(client)

    def disconnect(self) -> None:
        """End the connection on both sides."""
        self.client_outbox.disconnect()
        self.host_outbox.disconnect()
