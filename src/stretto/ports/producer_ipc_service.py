"""The service's side of ProducerPort: accepts the connections of producers.

socket --> ProducerIPCService --> one RemoteProducer per connection
and one RemoteRelay per connection on sockets that accept relays
"""

from __future__ import annotations

from stretto.ipc.host import HostConnection
from stretto.ipc.listener import ignore
from stretto.ports.ipc_service import IPCService
from stretto.ports.peer import peer_of
from stretto.ports.remote_producer import RemoteProducer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.base.errors import StrettoError
    from stretto.base.stream_socket import StreamListener, StreamSocket
    from stretto.base.task_runner import TaskRunner
    from stretto.ipc.connection import SocketOutbox
    from stretto.ports.remote_producer import ConnectProducer
    from stretto.ports.remote_relay import ConnectRelay, RemoteRelay


class ProducerIPCService(IPCService):
    """Accepts producers.

    Args:
        runner: The task runner of the service.
        connect: Creates the service's endpoint for a producer.
        make_queue: Creates the outgoing queue of a socket; by default `_native.SendQueue`.
        scrape_by_default: Whether to scrape the memory of producers that don't request a
            scraping mode.
        connect_relay: Creates the service's endpoint for a relay; None to refuse relays.
        on_error: Called when accepting fails, and when a producer is disconnected.
    """

    def __init__(
        self,
        runner: TaskRunner,
        connect: ConnectProducer,
        make_queue: Callable[[int], SocketOutbox] | None = None,
        *,
        scrape_by_default: bool = False,
        connect_relay: ConnectRelay | None = None,
        on_error: Callable[[StrettoError], object] = ignore,
    ) -> None:
        super().__init__(runner, make_queue, on_error)
        self._connect = connect
        self._connect_relay = connect_relay
        self._scrape_by_default = scrape_by_default

    def listen(self, socket: StreamListener, *, relays: bool = False) -> None:
        """Accept producers on another socket.

        Args:
            socket: A listener of any kind; owned by this object from now on.
            relays: Whether to accept relays of other machines, too.
        """

        def accept(end: StreamSocket) -> None:
            self.add_connection(end, relays=relays)

        self._accept_from(socket, accept)

    def add_connection(self, end: StreamSocket, *, relays: bool = False) -> None:
        """Serve a producer on a connected socket, which is owned by this object from now on."""
        peer = peer_of(end)
        producer = RemoteProducer(self._connect, peer, self._scrape_by_default)
        hosted: list[RemoteProducer | RemoteRelay] = [producer]
        if relays and self._connect_relay is not None:
            from stretto.ports.remote_relay import RemoteRelay

            hosted.append(RemoteRelay(self._connect_relay, peer))

        def on_closed() -> None:
            for each in hosted:
                each.disconnected()

        connection = self._connection(end, "producer", peer.pid, on_closed)
        services = [each.service for each in hosted]
        machine = HostConnection(
            services,
            connection,
            connection.give_up,
            peer.set_identity,
            connection,
            on_malformed=self._on_rejected("producer", peer.pid),
        )
        producer.take_fd = machine.take_fd
        connection.start(machine, producer.commit_frames)
