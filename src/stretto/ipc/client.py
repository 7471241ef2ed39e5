"""The client's half of the conversation: binds services, sends requests, sorts the replies.

    proxy.invoke("Sync", SyncRequest(), on_reply) --> frame out
    frame in --> Client --> on_reply(reply, has_more) | on_reply(None, False)

A reply of None means rejected: by the host, because the host is too old to know
the method, or because the connection is gone. Requests may be sent from any
thread; replies are delivered on the thread that calls `receive`.

Source: perfetto-abi 2.4.
"""

from __future__ import annotations

# `threading` costs a traced program a millisecond that the lock itself doesn't.
from _thread import RLock

from stretto.base.errors import DecodeError, LocalProtocolError
from stretto.ipc.frames import MAX_PAYLOAD_BYTES, decode_payload, encode_frame
from stretto.ipc.parked_fd import ParkedFd
from stretto.protos.ipc import IPCFrame

TYPE_CHECKING = False  # `typing` costs more to import than everything here
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from stretto.ipc.service import Message, Outbox, ServiceDescriptor

    OnReply = Callable[[Any, bool], object]
    OnBound = Callable[["ServiceProxy | None"], object]

MAX_ARGS_BYTES = MAX_PAYLOAD_BYTES - 48
"""Of a request's encoded argument: the frame around it needs the rest."""


class ServiceProxy:
    """A bound service of the host."""

    __slots__ = ("_client", "_methods", "descriptor", "service_id")

    def __init__(
        self,
        client: Client,
        descriptor: ServiceDescriptor,
        service_id: int,
        methods: dict[str, int],
    ) -> None:
        self._client = client
        self._methods = methods
        self.descriptor = descriptor
        self.service_id = service_id

    def method_id(self, name: str) -> int:
        """The host's id of a method; 0 if the host doesn't know it."""
        return self._methods.get(name, 0)

    def invoke(
        self, name: str, request: Message, on_reply: OnReply | None = None, fd: int = -1
    ) -> bool:
        """Call a method of the host.

        Args:
            name: One of the descriptor's methods.
            request: Its argument.
            on_reply: Called with each reply and whether more follow, or with None
                when it is rejected. Without it the host sends no reply at all.
            fd: Goes with the request; stays the caller's.

        Returns:
            False: it was not sent (and `on_reply` has been called with None).

        Raises:
            LocalProtocolError: The request is too large for a frame.
        """
        return self._client.invoke(self, name, request, on_reply, fd)


class Client:
    """The state of one connection to a host.

    Args:
        outbox: Takes the frames to the host.
    """

    __slots__ = ("_bindings", "_lock", "_outbox", "_parked_fd", "_requests")

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        # A reply may arrive on another thread before `invoke` knows its id; and a
        # signal handler may send while its thread does.
        self._lock = RLock()
        self._bindings: dict[int, tuple[ServiceDescriptor, OnBound]] = {}
        self._requests: dict[int, tuple[type[Message], OnReply]] = {}
        self._parked_fd = ParkedFd()

    def bind(self, descriptor: ServiceDescriptor, on_bound: OnBound) -> None:
        """Ask for a service by name.

        Args:
            descriptor: What we know of it.
            on_bound: Called with a proxy, or with None if the host has no such
                service or has gone.
        """
        with self._lock:
            request_id = self._outbox.next_request_id()
            bind = IPCFrame.BindService(service_name=descriptor.name)
            frame = IPCFrame(request_id=request_id, msg_bind_service=bind)
            sent = self._outbox.push(encode_frame(frame))
            if sent:
                self._bindings[request_id] = (descriptor, on_bound)
        if not sent:
            on_bound(None)

    def invoke(
        self,
        proxy: ServiceProxy,
        name: str,
        request: Message,
        on_reply: OnReply | None,
        fd: int = -1,
    ) -> bool:
        """See `ServiceProxy.invoke`."""
        method_id = proxy.method_id(name)
        request_id = 0
        if method_id:
            args = request.encode()
            if len(args) > MAX_ARGS_BYTES:
                raise LocalProtocolError(
                    f"{name} with {len(args)} bytes: a request carries at most {MAX_ARGS_BYTES}"
                )
            with self._lock:
                request_id = self._outbox.invoke(
                    proxy.service_id, method_id, args, on_reply is None, fd
                )
                if request_id and on_reply is not None:
                    reply_type = proxy.descriptor.by_name[name].reply
                    self._requests[request_id] = (reply_type, on_reply)
        if not request_id and on_reply is not None:
            on_reply(None, False)
        return request_id != 0

    def park_fd(self, fd: int) -> None:
        """A descriptor arrived (-1: none)."""
        self._parked_fd.park(fd)

    def take_fd(self) -> int:
        """The last descriptor that arrived, the caller's from now on; -1: none."""
        return self._parked_fd.take()

    def receive(self, payload: bytes) -> None:
        """Handle the payload of one frame. What isn't understood is dropped."""
        frame = decode_payload(payload)
        if frame is None:
            return
        if frame.msg_invoke_method_reply is not None:
            self._on_reply(frame.request_id, frame.msg_invoke_method_reply)
        elif frame.msg_bind_service_reply is not None:
            self._on_bound(frame.request_id, frame.msg_bind_service_reply)
        elif frame.msg_request_error is not None:
            self._forget(frame.request_id)

    def close(self) -> None:
        """The host has gone: reject everything that waits."""
        with self._lock:
            waiting = sorted(self._bindings.keys() | self._requests.keys())
        for request_id in waiting:
            self._forget(request_id)
        self._parked_fd.close()

    def _on_bound(self, request_id: int, reply: IPCFrame.BindServiceReply) -> None:
        with self._lock:
            descriptor, on_bound = self._bindings.pop(request_id, (None, None))
        if descriptor is None or on_bound is None:
            return
        if not reply.success:
            on_bound(None)
            return
        methods = {method.name: method.id for method in reply.methods}
        on_bound(ServiceProxy(self, descriptor, reply.service_id, methods))

    def _on_reply(self, request_id: int, reply: IPCFrame.InvokeMethodReply) -> None:
        if not reply.success:
            self._forget(request_id)
            return
        with self._lock:
            reply_type, on_reply = self._requests.get(request_id, (None, None))
            if on_reply is not None and not reply.has_more:
                del self._requests[request_id]
        if reply_type is None or on_reply is None:
            return
        try:
            message = reply_type.decode(reply.reply_proto)
        except DecodeError:
            with self._lock:
                self._requests.pop(request_id, None)
            on_reply(None, False)
            return
        on_reply(message, reply.has_more)

    def _forget(self, request_id: int) -> None:
        """Reject a request or a bind, whichever has the id."""
        with self._lock:
            _, on_reply = self._requests.pop(request_id, (None, None))
            _, on_bound = self._bindings.pop(request_id, (None, None))
        if on_reply is not None:
            on_reply(None, False)
        if on_bound is not None:
            on_bound(None)
