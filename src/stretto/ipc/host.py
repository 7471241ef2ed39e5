"""The host's protocol machine for one client: answers binds, dispatches requests.

    frame in --> HostConnection --> handler(request, deferred)
    frame out <-- deferred.resolve(reply) | deferred.reject()

A handler may reply later, or several times (a stream); it must send exactly one last reply. A
malformed request is rejected and otherwise ignored; it is reported once per method and
connection. An unexpected exception of a handler is a bug: its request is rejected, and `receive`
raises the exception to its caller.

Source: docs/formats/ipc.md, "Binding and calls".
"""

from __future__ import annotations

from stretto.base import errors, rpc_hooks
from stretto.base.rpc_hooks import ONE_WAY, REPLY, REQUEST, RpcChannel
from stretto.ipc.frames import decode_payload, encode_frame, encode_reply
from stretto.ipc.parked_fd import ParkedFd
from stretto.protos.ipc import IPCFrame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from stretto.base.rpc_hooks import End, RpcMethod
    from stretto.ipc.service import Message, Method, Outbox, ServiceDescriptor

    Handler = Callable[[Any, "Deferred"], None]

_BindReply = IPCFrame.BindServiceReply


def _nothing(_reason: str) -> None:
    pass


class Deferred:
    """The pending reply to a request."""

    __slots__ = ("_answers", "_connection", "_request_id", "_traced")

    def __init__(
        self,
        connection: HostConnection | None,
        request_id: int,
        traced: RpcMethod | None = None,
    ) -> None:
        self._connection = connection
        self._request_id = request_id
        self._traced = traced
        self._answers = 0

    @property
    def pending(self) -> bool:
        """Whether the client still expects a reply."""
        return self._connection is not None

    def resolve(self, reply: Message, *, has_more: bool = False, fd: int = -1) -> None:
        """Send a reply.

        Args:
            reply: The reply; dropped if the client doesn't expect one.
            has_more: Whether further replies follow.
            fd: A descriptor to send with the reply, owned by the caller.
        """
        self._send(reply.encode(), fd, has_more=has_more)
        if not has_more:
            self._connection = None

    def reject(self) -> None:
        """Reply that the request failed; no further reply follows."""
        self._send(b"", -1, success=False)
        self._connection = None

    def _send(self, reply: bytes, fd: int, *, success: bool = True, has_more: bool = False) -> None:
        if self._connection is None:
            return
        hooks = rpc_hooks.hooks
        traced = None if hooks is None else self._traced
        traced = traced if traced is not None and traced.switch.enabled else None
        stamp = 0 if hooks is None or traced is None else hooks.now()
        sent = self._connection.reply(
            self._request_id, reply, fd, success=success, has_more=has_more
        )
        if hooks is not None and traced is not None and sent:
            hooks.sent(
                self._connection.channel, stamp, traced, REPLY, self._request_id,
                len(reply), 1 if fd >= 0 else 0, self._answers, reply,
            )  # fmt: skip
        self._answers += 1


class HostedService:
    """A service for one client.

    Args:
        descriptor: The methods of the service, with their ids.
        handlers: Handlers by method name; requests of other methods are rejected.
        actions: Functions by method name, for methods with an empty reply: they take the
            request, and the reply is sent when they return.
    """

    __slots__ = ("descriptor", "handlers")

    def __init__(
        self,
        descriptor: ServiceDescriptor,
        handlers: Mapping[str, Handler],
        actions: Mapping[str, Callable[[Any], object]] | None = None,
    ) -> None:
        self.descriptor = descriptor
        self.handlers = dict(handlers)
        for name, action in (actions or {}).items():
            self.handlers[name] = _handler(action, descriptor.by_name[name])


def _handler(action: Callable[[Any], object], method: Method) -> Handler:
    def handle(request: Any, deferred: Deferred) -> None:
        action(request)
        deferred.resolve(method.reply())

    return handle


class HostConnection(ParkedFd):
    """The state of one client's connection.

    Args:
        services: The services of the socket; their ids count from 1 in this order.
        outbox: Sends frames to the client.
        on_refused: Called when the outbox refuses a frame; the connection should end.
        on_identity: Called with the identity that the client sends (SetPeerIdentity).
        end: The socket, from which flows may derive the connection's key.
        on_malformed: Called with the reason, for the first request of each method that is
            rejected because it can't be decoded or breaks the protocol.
    """

    def __init__(
        self,
        services: Sequence[HostedService],
        outbox: Outbox,
        on_refused: Callable[[], object],
        on_identity: Callable[[IPCFrame.SetPeerIdentity], object] | None = None,
        end: End | None = None,
        *,
        on_malformed: Callable[[str], object] = _nothing,
    ) -> None:
        super().__init__()
        self.channel = RpcChannel(end, is_server=True, numbered=True)
        self._services: tuple[HostedService, ...] = tuple(services)
        self._outbox = outbox
        self._on_refused = on_refused
        self._on_identity = on_identity
        self._on_malformed = on_malformed
        self._reported: set[str] = set()

    def receive(self, payload: bytes) -> None:
        """Handle the payload of one frame."""
        frame = decode_payload(payload)
        if frame is None:
            self._report("frame", f"{len(payload)} bytes that are no message")
            return
        if frame.set_peer_identity is not None:
            if self._on_identity is not None:
                self._on_identity(frame.set_peer_identity)
        elif frame.msg_bind_service is not None:
            self.channel.key = frame.msg_bind_service.flow_key or self.channel.key
            self._bind(frame.request_id, frame.msg_bind_service.service_name)
        elif frame.msg_invoke_method is not None:
            self._invoke(frame.request_id, frame.msg_invoke_method)
        else:
            error = IPCFrame.RequestError(error="unknown request")
            self.send(IPCFrame(request_id=frame.request_id, msg_request_error=error))

    def close(self) -> None:
        """Release the services, because the client has disconnected."""
        self.close_parked_fd()
        self._services = ()

    def send(self, frame: IPCFrame, fd: int = -1) -> bool:
        """Send a frame; if it is refused, call `on_refused` and return False."""
        return self._push(lambda: encode_frame(frame), fd)

    def reply(
        self, request_id: int, reply: bytes, fd: int, *, success: bool, has_more: bool
    ) -> bool:
        """Send an encoded reply; if it is refused, call `on_refused` and return False."""
        return self._push(
            lambda: encode_reply(request_id, reply, success=success, has_more=has_more), fd
        )

    def _push(self, encode: Callable[[], bytes], fd: int) -> bool:
        try:
            accepted = self._outbox.push(encode(), fd)
        except errors.LocalProtocolError:
            # The reply is too large to send. The client waits for it, so the connection is closed.
            accepted = False
        if not accepted:
            self._on_refused()
        return accepted

    def _bind(self, request_id: int, name: str) -> None:
        reply = _BindReply()
        for service_id, service in enumerate(self._services, 1):
            if service.descriptor.name == name:
                reply = _bind_reply(service_id, service.descriptor)
        self.send(IPCFrame(request_id=request_id, msg_bind_service_reply=reply))

    def _invoke(self, request_id: int, call: IPCFrame.InvokeMethod) -> None:
        connection = None if call.drop_reply else self
        found = self._find(call.service_id, call.method_id)
        if found is None:
            Deferred(connection, request_id).reject()
            return
        service, method = found
        traced = service.descriptor.traced.get(method.name)
        deferred = Deferred(connection, request_id, traced)
        hooks, span = rpc_hooks.hooks, None
        if hooks is not None and traced is not None and traced.switch.enabled:
            kind = ONE_WAY if call.drop_reply else REQUEST
            data = call.args_proto
            span = hooks.received(self.channel, traced, kind, request_id, len(data), 0, 0, data)
        if span is None:
            self._handle(service, method, call, deferred)
        else:
            with span:
                self._handle(service, method, call, deferred)

    def _handle(
        self,
        service: HostedService,
        method: Method,
        call: IPCFrame.InvokeMethod,
        deferred: Deferred,
    ) -> None:
        handler = service.handlers.get(method.name)
        if handler is None:
            deferred.reject()
            return
        try:
            handler(method.request.decode(call.args_proto), deferred)
        except (errors.DecodeError, errors.RemoteProtocolError) as error:
            deferred.reject()
            self._report(method.name, str(error))
        except errors.StrettoError:  # The service refuses the request with this error.
            deferred.reject()
        except Exception:
            deferred.reject()
            raise

    def _report(self, what: str, reason: str) -> None:
        """Report why a request was rejected, only once per method, because a peer may repeat it."""
        if what not in self._reported:
            self._reported.add(what)
            self._on_malformed(f"{what}: {reason}")

    def _find(self, service_id: int, method_id: int) -> tuple[HostedService, Method] | None:
        if not 1 <= service_id <= len(self._services):
            return None
        service = self._services[service_id - 1]
        if not 1 <= method_id <= len(service.descriptor.methods):
            return None
        return service, service.descriptor.methods[method_id - 1]


def _bind_reply(service_id: int, descriptor: ServiceDescriptor) -> IPCFrame.BindServiceReply:
    methods = [
        _BindReply.MethodInfo(id=method_id, name=method.name)
        for method_id, method in enumerate(descriptor.methods, 1)
    ]
    return _BindReply(success=True, service_id=service_id, methods=methods)
