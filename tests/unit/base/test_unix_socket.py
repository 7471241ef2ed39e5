"""Unix sockets: addresses, permissions, descriptors, credentials."""

from __future__ import annotations

import array
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from stretto.base.errors import TransportError
from stretto.base.unix_socket import MAX_PATH_BYTES, UnixListener, UnixSocket, parse_address
from tests.support.descriptors import expect_new_descriptors, open_descriptors

Pair = tuple[UnixSocket, UnixSocket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    one, other = UnixSocket.pair()
    yield one, other
    one.close()
    other.close()


def receive(end: UnixSocket, size: int = 100) -> tuple[bytes, int]:
    buffer = bytearray(size)
    assert end.wait_readable(5000)
    received = end.recv_into(memoryview(buffer))
    assert received is not None
    return bytes(buffer[: received[0]]), received[1]


class TestSocketAddress:
    def test_path_is_a_valid_socket_address(self) -> None:
        assert parse_address("/tmp/perfetto-producer") == "/tmp/perfetto-producer"

    def test_abstract_name_is_a_valid_address(self) -> None:
        assert parse_address("@traced") == b"\0traced"

    @pytest.mark.parametrize("prefix", ["/", "@"])
    def test_longest_address_is_accepted(self, prefix: str) -> None:
        parse_address(prefix + "x" * (MAX_PATH_BYTES - 1))
        with pytest.raises(TransportError, match="at most 106"):
            parse_address(prefix + "x" * MAX_PATH_BYTES)

    @pytest.mark.parametrize("address", ["", "a\0b", "vsock://2:10000"])
    def test_invalid_addresses_are_refused(self, address: str) -> None:
        with pytest.raises(TransportError):
            parse_address(address)


class TestListeningSocket:
    @pytest.mark.parametrize("mode", [0o600, 0o666])
    def test_mode_of_the_socket_file_does_not_depend_on_the_umask(
        self, tmp_path: Path, mode: int
    ) -> None:
        before = os.umask(0o077)
        try:
            listener = UnixListener(str(tmp_path / "socket"), mode)
        finally:
            os.umask(before)
        assert stat.S_IMODE((tmp_path / "socket").stat().st_mode) == mode
        listener.close()

    @pytest.mark.parametrize("abstract", [False, True])
    def test_connected_sockets_exchange_bytes(self, tmp_path: Path, abstract: bool) -> None:
        address = f"@stretto-test-{os.getpid()}" if abstract else str(tmp_path / "socket")
        listener = UnixListener(address)
        assert listener.accept() is None
        client = UnixSocket.connect(address)
        server = listener.accept()
        assert server is not None
        assert client.send(b"hello") == 5
        assert receive(server) == (b"hello", -1)
        for end in (client, server, listener):
            end.close()

    def test_close_removes_the_socket_file(self, tmp_path: Path) -> None:
        listener = UnixListener(str(tmp_path / "socket"))
        listener.close()
        listener.close()
        assert not (tmp_path / "socket").exists()

    def test_close_keeps_the_socket_file_of_a_later_listener(self, tmp_path: Path) -> None:
        old = UnixListener(str(tmp_path / "socket"))
        (tmp_path / "socket").unlink()
        new = UnixListener(str(tmp_path / "socket"))
        old.close()
        client = UnixSocket.connect(str(tmp_path / "socket"))
        client.close()
        new.close()

    def test_stale_socket_is_replaced(self, tmp_path: Path) -> None:
        dead = socket.socket(socket.AF_UNIX)
        dead.bind(str(tmp_path / "socket"))
        dead.listen()
        dead.close()
        listener = UnixListener(str(tmp_path / "socket"))
        UnixSocket.connect(str(tmp_path / "socket")).close()
        listener.close()

    def test_socket_with_a_listener_is_not_replaced(self, tmp_path: Path) -> None:
        listener = UnixListener(str(tmp_path / "socket"))
        with pytest.raises(TransportError, match="another process listens there already"):
            UnixListener(str(tmp_path / "socket"))
        UnixSocket.connect(str(tmp_path / "socket")).close()
        listener.close()

    def test_socket_with_a_full_backlog_is_not_replaced(self, tmp_path: Path) -> None:
        raw = socket.socket(socket.AF_UNIX)
        raw.bind(str(tmp_path / "socket"))
        raw.listen(0)
        first = UnixSocket.connect(str(tmp_path / "socket"))
        with pytest.raises(TransportError, match="another process listens there already"):
            UnixListener(str(tmp_path / "socket"))
        first.close()
        raw.close()

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
    def test_socket_file_has_the_given_group(self, tmp_path: Path) -> None:
        listener = UnixListener(str(tmp_path / "socket"), 0o660, group=12345)
        status = (tmp_path / "socket").stat()
        assert (status.st_gid, stat.S_IMODE(status.st_mode)) == (12345, 0o660)
        listener.close()

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may give files away")
    def test_group_that_does_not_contain_the_user_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(TransportError):
            UnixListener(str(tmp_path / "socket"), 0o660, group=12345)
        assert not (tmp_path / "socket").exists()

    @pytest.mark.parametrize("abstract", [False, True])
    def test_listening_descriptor_is_adopted(self, tmp_path: Path, abstract: bool) -> None:
        path = f"@stretto-adopt-{os.getpid()}" if abstract else str(tmp_path / "socket")
        raw = socket.socket(socket.AF_UNIX)
        raw.bind(parse_address(path))
        raw.listen()
        listener = UnixListener.adopt(raw.detach())
        assert listener.address == path
        assert not os.get_inheritable(listener.fileno())
        client = UnixSocket.connect(path)
        server = listener.accept()
        assert server is not None
        for end in (client, server, listener):
            end.close()
        assert abstract or (tmp_path / "socket").exists()

    def test_descriptor_that_is_no_listening_socket_is_not_adopted(self) -> None:
        read_fd, write_fd = os.pipe()
        one, other = socket.socketpair()
        for fd in (read_fd, one.fileno()):
            with pytest.raises(TransportError, match=f"descriptor {fd}"):
                UnixListener.adopt(fd)
            os.fstat(fd)  # `os.fstat` would fail if the descriptor were closed.
        os.close(read_fd)
        os.close(write_fd)
        one.close()
        other.close()

    def test_file_that_is_no_socket_is_not_replaced(self, tmp_path: Path) -> None:
        path = tmp_path / "file"
        path.write_text("precious")
        with pytest.raises(TransportError, match="not a socket"):
            UnixListener(str(path))
        assert path.read_text() == "precious"

    def test_missing_folder_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(TransportError, match="check the folder"):
            UnixListener(str(tmp_path / "no" / "socket"))


class TestConnectingSocket:
    def test_connecting_without_a_listener_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(TransportError, match="is the tracing service running"):
            UnixSocket.connect(str(tmp_path / "socket"))

    def test_connecting_with_a_full_backlog_times_out(self, tmp_path: Path) -> None:
        raw = socket.socket(socket.AF_UNIX)
        raw.bind(str(tmp_path / "socket"))
        raw.listen(0)
        first = UnixSocket.connect(str(tmp_path / "socket"))
        with pytest.raises(TransportError):
            UnixSocket.connect(str(tmp_path / "socket"), timeout_ms=1)
        first.close()
        raw.close()


class TestDescriptorTransfer:
    def test_descriptor_arrives_with_the_bytes_it_was_sent_with(self, pair: Pair) -> None:
        read_fd, write_fd = os.pipe()
        pair[0].send(b"take it", write_fd)
        os.close(write_fd)
        data, fd = receive(pair[1])
        assert data == b"take it"
        assert not os.get_inheritable(fd)
        os.write(fd, b"through")
        assert os.read(read_fd, 10) == b"through"
        os.close(fd)
        os.close(read_fd)

    @pytest.mark.parametrize("count", [2, 3, 10])
    def test_several_descriptors_are_an_error_and_are_closed(self, count: int) -> None:
        raw, other = socket.socketpair()
        end = UnixSocket(other)
        before = open_descriptors()
        fds = array.array("i", [0] * count)
        raw.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
        with pytest.raises(TransportError, match="more than one"):
            receive(end)
        expect_new_descriptors(before, 0)
        raw.close()
        end.close()


class TestSendAndReceive:
    def test_receive_without_input_returns_none(self, pair: Pair) -> None:
        assert pair[0].recv_into(memoryview(bytearray(10))) is None
        assert not pair[0].wait_readable(0)

    def test_receive_at_the_end_of_the_stream_returns_no_bytes(self, pair: Pair) -> None:
        pair[1].close()
        assert receive(pair[0]) == (b"", -1)

    def test_send_into_a_full_socket_sends_no_bytes(self, pair: Pair) -> None:
        while pair[0].send(bytes(65536)):
            pass
        assert pair[0].send(b"x") == 0

    def test_send_to_a_closed_peer_is_an_error_without_sigpipe(self, pair: Pair) -> None:
        pair[1].close()
        with pytest.raises(TransportError, match="peer has disconnected"):
            pair[0].send(b"x")

    def test_shutdown_affects_every_copy_of_the_descriptor(self, pair: Pair) -> None:
        copy = os.dup(pair[0].fileno())
        pair[0].shutdown()
        pair[0].shutdown()
        assert receive(pair[1]) == (b"", -1)
        os.close(copy)

    def test_peer_credentials_are_those_of_the_process(self, pair: Pair) -> None:
        peer = pair[0].peer_credentials()
        assert (peer.pid, peer.uid, peer.gid) == (os.getpid(), os.getuid(), os.getgid())

    def test_descriptor_is_not_inherited(self, pair: Pair) -> None:
        assert not os.get_inheritable(pair[0].fileno())


def test_hundreds_of_connections_may_wait_to_be_accepted(tmp_path: Path) -> None:
    most = int(Path("/proc/sys/net/core/somaxconn").read_text())
    listener = UnixListener(str(tmp_path / "sock"))
    ends = []
    try:
        for _ in range(min(300, most)):
            end = socket.socket(socket.AF_UNIX)
            ends.append(end)
            end.setblocking(False)
            end.connect(str(tmp_path / "sock"))
    finally:
        for end in ends:
            end.close()
        listener.close()


def test_only_the_client_end_verifies_its_descriptor_before_sending(tmp_path: Path) -> None:
    listener = UnixListener(str(tmp_path / "socket"))
    client = UnixSocket.connect(str(tmp_path / "socket"))
    accepted = listener.accept()
    assert accepted is not None
    with mock.patch("os.fstat", wraps=os.fstat) as fstat:
        accepted.send(b"from the service")
        assert fstat.call_count == 0
        client.send(b"from the program")
        assert fstat.call_count == 1
    for each in (client, accepted, listener):
        each.close()
