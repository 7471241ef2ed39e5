"""The service's side of ConsumerPort: accepts the connections of consumers.

    socket --> ConsumerIPCService --> one RemoteConsumer per connection

Rules
- The credentials of each peer, reported by the kernel, are checked first (`peer_rule`). The
  connection of a peer without permission is closed.
- There are no credentials over a network. Consumers are accepted there only with
  `allow_network`. Their user is NOBODY, who can start sessions and owns no files.
"""

from __future__ import annotations

from stretto.ipc.host import HostConnection
from stretto.ipc.listener import ignore
from stretto.ipc.reply_streams import ReplyStreams
from stretto.ports.ipc_service import IPCService
from stretto.ports.peer_rule import PeerRule
from stretto.ports.remote_consumer import RemoteConsumer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.base.errors import StrettoError
    from stretto.base.peer_credentials import PeerCredentials
    from stretto.base.stream_socket import StreamListener, StreamSocket
    from stretto.base.task_runner import TaskRunner
    from stretto.ipc.connection import SocketOutbox
    from stretto.ports.remote_consumer import ConnectConsumer

NOBODY = 65534
"""The user of consumers over a network."""


class ConsumerIPCService(IPCService):
    """Accepts consumers.

    Args:
        runner: The task runner of the service.
        connect: Creates the service's endpoint for a consumer.
        make_queue: Creates the outgoing queue of a socket; by default `_native.SendQueue`.
        may_connect: Whether a peer may be a consumer; by default root and this process's user.
        allow_network: Whether every peer of a TCP or vsock listener may be a consumer, too.
        on_error: Called when accepting fails, and when a consumer is disconnected.
    """

    def __init__(
        self,
        runner: TaskRunner,
        connect: ConnectConsumer,
        make_queue: Callable[[int], SocketOutbox] | None = None,
        *,
        may_connect: Callable[[PeerCredentials], bool] | None = None,
        allow_network: bool = False,
        on_error: Callable[[StrettoError], object] = ignore,
    ) -> None:
        super().__init__(runner, make_queue, on_error)
        self._connect = connect
        self._may_connect = may_connect or PeerRule()
        self._allow_network = allow_network

    def listen(self, socket: StreamListener) -> None:
        """Accept consumers on another socket, which is owned by this object from now on."""
        self._accept_from(socket, self.add_connection)

    def add_connection(self, end: StreamSocket) -> None:
        """Serve a consumer on a connected socket, which is owned by this object from now on."""
        peer = end.peer_credentials()
        if not (self._may_connect(peer) if peer else self._allow_network):
            end.close()
            return

        def on_closed() -> None:
            streams.close()
            consumer.disconnected()

        pid = peer.pid if peer else 0
        # A consumer is urgent: thousands of producers must not delay its answer.
        connection = self._connection(end, "consumer", pid, on_closed, urgent=True)
        streams = ReplyStreams(self._runner, connection)
        uid = peer.uid if peer else NOBODY
        consumer = RemoteConsumer(self._connect, uid, streams, self._on_error)
        machine = HostConnection(
            [consumer.service],
            connection,
            connection.give_up,
            end=connection,
            on_malformed=self._on_rejected("consumer", pid),
        )
        consumer.take_fd = machine.take_fd
        connection.start(machine, on_drained=streams.resume)
