"""A consumer that is connected by a socket and sends and receives single frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stretto.base.unix_socket import UnixSocket
from stretto.ipc.client import Client, ServiceProxy
from stretto.ipc.connection import Connection
from stretto.ipc.service import Raw
from stretto.ports.consumer_port import CONSUMER_PORT
from stretto.protos import ipc
from tests.support.plain_queue import PlainQueue

if TYPE_CHECKING:
    from stretto.base.task_runner import TaskRunner
    from stretto.ports.consumer_ipc_service import ConsumerIPCService


class Replies(list[Any]):
    """The replies to one request; None means that the service refused the request."""

    def __init__(self) -> None:
        super().__init__()
        self.has_more = True

    def add(self, reply: Any, has_more: bool) -> None:
        self.append(reply.data if isinstance(reply, Raw) else reply)
        self.has_more = has_more


class RemoteConsumer:
    """A consumer that is bound to ConsumerPort; a test runs the task runner of both ends.

    Args:
        runner: Task runner for both ends of the socket.
        host: The service that accepts the connection.
    """

    def __init__(self, runner: TaskRunner, host: ConsumerIPCService) -> None:
        end, near = UnixSocket.pair()
        self.disconnected = False
        self.connection = Connection(end, runner, PlainQueue(end), self._on_closed)
        self.client = Client(self.connection)
        self.connection.start(self.client)
        self.proxy: ServiceProxy | None = None
        self.client.bind(CONSUMER_PORT, self._on_bound)
        host.add_connection(near)

    def _on_bound(self, proxy: ServiceProxy | None) -> None:
        self.proxy = proxy

    def _on_closed(self) -> None:
        self.disconnected = True

    def call(self, name: str, fd: int = -1, **fields: Any) -> Replies:
        """Send a request; the replies arrive when the runner runs."""
        assert self.proxy is not None
        replies = Replies()
        request = getattr(ipc, f"{name}Request")(**fields)
        self.proxy.invoke(name, request, replies.add, fd)
        return replies

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()
