"""TCP and vsock sockets; the form of an address selects the kind of the socket."""

from __future__ import annotations

import os
import select
import socket
from pathlib import Path

import pytest

from stretto.base import network_socket, sockets
from stretto.base.errors import TransportError
from stretto.base.network_socket import NetworkListener, NetworkSocket
from stretto.base.stream_socket import StreamSocket
from stretto.base.unix_socket import UnixListener, UnixSocket


def receive(end: StreamSocket) -> tuple[bytes, int]:
    buffer = bytearray(100)
    assert end.wait_readable(5000)
    received = end.recv_into(memoryview(buffer))
    assert received is not None
    return bytes(buffer[: received[0]]), received[1]


def accept(listener: NetworkListener) -> StreamSocket:
    """Wait for a connection and accept it."""
    poll = select.poll()
    poll.register(listener.fileno(), select.POLLIN)
    assert poll.poll(5000)
    end = listener.accept()
    assert end is not None
    return end


@pytest.fixture(params=["127.0.0.1:0", "[::1]:0"])
def listener(request: pytest.FixtureRequest) -> NetworkListener:
    try:
        return NetworkListener(request.param)
    except TransportError as error:
        pytest.skip(f"no such loopback here: {error}")


class TestTcpSockets:
    def test_connected_sockets_exchange_bytes(self, listener: NetworkListener) -> None:
        assert listener.accept() is None
        client = sockets.connect(listener.bound_address)
        server = accept(listener)
        assert isinstance(client, NetworkSocket)
        assert isinstance(server, NetworkSocket)
        assert client.send(b"hello") == 5
        assert receive(server) == (b"hello", -1)
        server.shutdown()
        assert receive(client) == (b"", -1)
        for end in (client, server, listener):
            end.close()

    def test_peer_has_no_credentials(self, listener: NetworkListener) -> None:
        client = sockets.connect(listener.bound_address)
        server = accept(listener)
        assert server.peer_credentials() is None
        assert server.local_name == listener.bound_address
        assert not os.get_inheritable(client.fileno())
        assert not os.get_inheritable(server.fileno())
        for end in (client, server, listener):
            end.close()

    def test_small_frames_are_sent_without_delay(self, listener: NetworkListener) -> None:
        client = sockets.connect(listener.bound_address)
        server = accept(listener)
        for end in (client, server):
            raw = socket.socket(fileno=os.dup(end.fileno()))
            assert raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            raw.close()
            end.close()
        listener.close()

    def test_connecting_without_a_listener_is_an_error(self) -> None:
        listener = NetworkListener("127.0.0.1:0")
        address = listener.bound_address
        listener.close()
        with pytest.raises(TransportError, match="is the tracing service running"):
            sockets.connect(address)

    def test_every_address_of_a_host_name_is_tried(self, monkeypatch: pytest.MonkeyPatch) -> None:
        listener = NetworkListener("127.0.0.1:0")
        port = int(listener.bound_address.rpartition(":")[2])
        closed = NetworkListener("127.0.0.1:0")
        dead_port = int(closed.bound_address.rpartition(":")[2])
        closed.close()
        found = [(socket.AF_INET, ("127.0.0.1", each)) for each in (dead_port, port)]
        monkeypatch.setattr(network_socket, "resolve", lambda address: found)
        NetworkSocket.connect("name:1").close()
        listener.close()

    def test_connecting_times_out(self) -> None:
        # The backlog of 0 is full: the next connection waits for ever.
        raw = socket.socket()
        raw.bind(("127.0.0.1", 0))
        raw.listen(0)
        waiting = [socket.socket() for _ in range(3)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(raw.getsockname())
        with pytest.raises(TransportError, match="timed out"):
            sockets.connect(f"127.0.0.1:{raw.getsockname()[1]}", timeout_ms=50)
        for each in (raw, *waiting):
            each.close()

    @pytest.mark.parametrize("address", ["no.such.host.invalid:1", "a" * 70 + ".x:1"])
    def test_unknown_host_is_an_error(self, address: str) -> None:
        with pytest.raises(TransportError, match="no such host"):
            sockets.connect(address)

    def test_listening_on_an_address_of_another_machine_is_an_error(self) -> None:
        with pytest.raises(TransportError, match="is the address this machine's"):
            sockets.listen("192.0.2.1:0")

    def test_unix_address_is_refused(self) -> None:
        with pytest.raises(TransportError, match="give host:port"):
            network_socket.resolve("/path")


class TestVsockSockets:
    def test_connecting_without_a_listener_is_an_error(self) -> None:
        with pytest.raises(TransportError, match="can't connect to vsock://1:9"):
            sockets.connect("vsock://1:9", timeout_ms=200)

    def test_connected_sockets_exchange_bytes(self) -> None:
        try:
            listener = NetworkListener("vsock://-1:45917")
        except TransportError as error:
            pytest.skip(f"no vsock here: {error}")
        try:
            client = sockets.connect("vsock://1:45917", timeout_ms=200)
        except TransportError as error:
            listener.close()
            pytest.skip(f"no vsock loopback here: {error}")
        server = accept(listener)
        assert client.send(b"hello") == 5
        assert receive(server) == (b"hello", -1)
        assert server.local_name.startswith("vsock://")
        for end in (client, server, listener):
            end.close()


def test_address_that_is_a_path_makes_a_unix_socket(tmp_path: Path) -> None:
    listener = sockets.listen(str(tmp_path / "socket"), 0o666)
    assert isinstance(listener, UnixListener)
    assert (tmp_path / "socket").stat().st_mode & 0o777 == 0o666
    client = sockets.connect(str(tmp_path / "socket"))
    assert isinstance(client, UnixSocket)
    assert client.local_name == ""
    client.close()
    listener.close()
