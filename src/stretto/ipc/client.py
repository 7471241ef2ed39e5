"""The client's protocol machine: binds services, sends requests, dispatches replies.

    proxy.invoke("Sync", SyncRequest(), on_reply) --> frame out
    frame in --> Client --> on_reply(reply, has_more) | on_reply(None, False)

The reply None means that the host has rejected the request, that the host doesn't support the
method, or that the connection has ended. Requests may be sent from any thread; replies are
delivered on the thread that calls `receive`.

Source: docs/formats/ipc.md, "Binding and calls".
"""

from __future__ import annotations

# Importing `threading` would take a millisecond.
from _thread import RLock

from stretto.base import rpc_hooks
from stretto.base.errors import DecodeError, LocalProtocolError
from stretto.base.rpc_hooks import ONE_WAY, REPLY, REQUEST, RpcChannel
from stretto.ipc.frames import MAX_PAYLOAD_BYTES, decode_payload, encode_frame
from stretto.ipc.parked_fd import ParkedFd
from stretto.protos.ipc import IPCFrame

TYPE_CHECKING = False  # Importing `typing` takes longer than importing this module.
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from stretto.base.rpc_hooks import End
    from stretto.ipc.service import Message, Outbox, ServiceDescriptor

    OnReply = Callable[[Any, bool], object]
    OnBound = Callable[["ServiceProxy | None"], object]

MAX_ARGS_BYTES = MAX_PAYLOAD_BYTES - 48
"""Maximum size of the encoded argument of a request, so that the frame around it fits."""


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
        """Return the host's id of a method; 0 if the host doesn't support it."""
        return self._methods.get(name, 0)

    def invoke(
        self, name: str, request: Message, on_reply: OnReply | None = None, fd: int = -1
    ) -> bool:
        """Call a method of the host.

        Args:
            name: One of the descriptor's methods.
            request: The argument of the method.
            on_reply: Called with each reply and whether more replies follow, or with None if the
                request is rejected. If `on_reply` is None, the host sends no reply.
            fd: A descriptor to send with the request, owned by the caller; -1 for none.

        Returns:
            False if the request was not sent; then `on_reply` has been called with None.

        Raises:
            LocalProtocolError: The request is too large for a frame.
        """
        return self._client.invoke(self, name, request, on_reply, fd)


class _Request:
    """A request that expects a reply."""

    __slots__ = ("answers", "descriptor", "name", "on_reply")

    def __init__(self, descriptor: ServiceDescriptor, name: str, on_reply: OnReply) -> None:
        self.descriptor = descriptor
        self.name = name
        self.on_reply = on_reply
        self.answers = 0

    @property
    def reply_type(self) -> type[Message]:
        return self.descriptor.by_name[self.name].reply


class Client(ParkedFd):
    """The state of one connection to a host.

    Args:
        outbox: Sends frames to the host.
        end: The socket, from which flows may derive the connection's key.
    """

    def __init__(self, outbox: Outbox, end: End | None = None) -> None:
        super().__init__()
        self._outbox = outbox
        self.channel = RpcChannel(end, is_server=False, numbered=True)
        # A reply may arrive on another thread before `invoke` has stored the request. The lock is
        # reentrant: a signal handler may send while the interrupted code holds the lock.
        self._lock = RLock()
        self._bindings: dict[int, tuple[ServiceDescriptor, OnBound]] = {}
        self._requests: dict[int, _Request] = {}

    def bind(self, descriptor: ServiceDescriptor, on_bound: OnBound, *, flow_key: int = 0) -> None:
        """Request a service by name.

        Args:
            descriptor: The service and its methods.
            on_bound: Called with a proxy; with None if the host has no such service or has
                disconnected.
            flow_key: Key of the connection for flow ids, sent with the request; 0 for none. Use it
                if the kernel doesn't report a key of the connection to both peers. It takes 11
                bytes of the request; hosts without support for flow keys ignore it.
        """
        if flow_key:
            self.channel.key = flow_key
        with self._lock:
            request_id = self._outbox.next_request_id()
            bind = IPCFrame.BindService(service_name=descriptor.name)
            if flow_key:
                bind.flow_key = flow_key
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
        """Send a request; `ServiceProxy.invoke` describes the arguments, the result and errors."""
        method_id = proxy.method_id(name)
        request_id = 0
        if method_id:
            args = request.encode()
            if len(args) > MAX_ARGS_BYTES:
                raise LocalProtocolError(
                    f"{name} with {len(args)} bytes: a request carries at most {MAX_ARGS_BYTES}"
                )
            hooks = rpc_hooks.hooks
            traced, stamp = None, 0
            if hooks is not None:
                traced = proxy.descriptor.traced.get(name)
                if traced is not None and traced.switch.enabled:
                    stamp = hooks.now()
            with self._lock:
                request_id = self._outbox.invoke(
                    proxy.service_id, method_id, args, on_reply is None, fd
                )
                if request_id and on_reply is not None:
                    self._requests[request_id] = _Request(proxy.descriptor, name, on_reply)
            if hooks is not None and traced is not None and stamp and request_id:
                kind = ONE_WAY if on_reply is None else REQUEST
                span = hooks.sent(
                    self.channel, stamp, traced, kind, request_id,
                    len(args), 1 if fd >= 0 else 0, 0, args,
                )  # fmt: skip
                if span is not None:
                    with span:
                        pass  # A request without a reply ends its span at once.
        if not request_id and on_reply is not None:
            on_reply(None, False)
        return request_id != 0

    def receive(self, payload: bytes) -> None:
        """Handle the payload of one frame. Unknown frames are dropped."""
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
        """Reject all pending binds and requests: the host has disconnected."""
        with self._lock:
            waiting = sorted(self._bindings.keys() | self._requests.keys())
        for request_id in waiting:
            self._forget(request_id)
        self.close_parked_fd()

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
        with self._lock:
            request = self._requests.get(request_id)
            if request is not None and not (reply.success and reply.has_more):
                del self._requests[request_id]
        if request is None:
            return
        if not reply.success:
            self._trace_reply(request_id, request, b"")
            request.on_reply(None, False)
            return
        self._trace_reply(request_id, request, reply.reply_proto)
        try:
            message = request.reply_type.decode(reply.reply_proto)
        except DecodeError:
            with self._lock:
                self._requests.pop(request_id, None)
            request.on_reply(None, False)
            return
        request.on_reply(message, reply.has_more)

    def _trace_reply(self, request_id: int, request: _Request, data: bytes) -> None:
        hooks = rpc_hooks.hooks
        traced = None if hooks is None else request.descriptor.traced.get(request.name)
        if hooks is not None and traced is not None and traced.switch.enabled:
            span = hooks.received(
                self.channel, traced, REPLY, request_id, len(data), 0, request.answers, data
            )
            if span is not None:
                with span:
                    pass
        request.answers += 1

    def _forget(self, request_id: int) -> None:
        """Reject the pending request or bind with this id."""
        with self._lock:
            request = self._requests.pop(request_id, None)
            _, on_bound = self._bindings.pop(request_id, (None, None))
        if request is not None:
            request.on_reply(None, False)
        if on_bound is not None:
            on_bound(None)
