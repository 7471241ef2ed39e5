"""Channel keys: both ends of a channel find the same key; a missing key has a reason."""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from stretto.flows import channel_key as module
from stretto.flows.channel_key import NoKeyError, channel_key, nonce, peer_cookie
from tests.support.descriptors import expect_new_descriptors, open_descriptors


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(tmp_path / "sock"))
        server.listen()
        yield server


def connect(listener: socket.socket) -> socket.socket:
    client = socket.socket(listener.family, socket.SOCK_STREAM)
    client.connect(listener.getsockname())
    return client


def reason(end: socket.socket | None, *, is_server: bool, tcp: bool = False) -> tuple[str, bool]:
    with pytest.raises(NoKeyError) as caught:
        channel_key(end, is_server=is_server, tcp=tcp)
    return caught.value.reason, caught.value.later


class TestUnixSockets:
    def test_both_ends_find_the_same_key(self, listener: socket.socket) -> None:
        with connect(listener) as client:
            early = channel_key(client, is_server=False)
            server, _ = listener.accept()
            with server:
                assert channel_key(server, is_server=True) == early
                assert channel_key(client, is_server=False) == early

    def test_connections_have_different_keys(self, listener: socket.socket) -> None:
        with connect(listener) as first, connect(listener) as second:
            keys = {channel_key(end, is_server=False) for end in (first, second)}
        assert len(keys) == 2
        assert 0 not in keys

    @pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_SEQPACKET])
    def test_socket_pair_has_one_key_per_direction(self, kind: int) -> None:
        near, far = socket.socketpair(socket.AF_UNIX, kind)
        with near, far:
            key = channel_key(near, is_server=False)
            assert channel_key(far, is_server=True) == key
            assert channel_key(near, is_server=True) != key

    def test_duplicate_of_a_descriptor_has_the_key_of_the_descriptor(self) -> None:
        near, far = socket.socketpair()
        with near, far, near.dup() as again:
            assert channel_key(near, is_server=False) == channel_key(again, is_server=False)
            assert channel_key(near, is_server=True) == channel_key(again, is_server=True)

    def test_key_lookup_neither_closes_nor_leaks_a_descriptor(self) -> None:
        near, far = socket.socketpair()
        with near, far:
            before = open_descriptors()
            channel_key(near, is_server=True)
            expect_new_descriptors(before, 0)
            near.send(b"x")
            assert far.recv(1) == b"x"

    def test_channel_key_is_missing_until_the_server_accepts(self, listener: socket.socket) -> None:
        with connect(listener) as client:
            assert reason(client, is_server=True) == ("not accepted", True)

    def test_key_is_missing_after_the_peer_closed(self) -> None:
        near, far = socket.socketpair()
        with near:
            far.close()
            assert reason(near, is_server=True) == ("peer gone", False)

    def test_missing_key_is_temporary_if_no_descriptor_was_free(self) -> None:
        near, far = socket.socketpair()
        full = OSError(errno.EMFILE, "full")
        with near, far:
            with mock.patch.object(module.os, "dup", side_effect=full):
                assert reason(near, is_server=True) == ("no free descriptor", True)
            with mock.patch.object(module.os, "fstat", side_effect=full):
                assert reason(near, is_server=True) == ("no free descriptor", True)
            assert channel_key(near, is_server=True)

    def test_server_without_netlink_finds_no_key(self) -> None:
        near, far = socket.socketpair()
        real = socket.socket

        def forbidding(family: int = -1, *args: int, **kwargs: int) -> socket.socket:
            if family == socket.AF_NETLINK:
                raise PermissionError("seccomp")
            return real(family, *args, **kwargs)

        with near, far, mock.patch.object(module.socket, "socket", forbidding):
            assert reason(near, is_server=True) == ("peer not found", False)
            assert channel_key(near, is_server=False)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes network namespaces")
def test_server_finds_no_key_of_a_client_in_another_network_namespace(
    listener: socket.socket,
) -> None:
    if os.system("unshare -n true 2>/dev/null"):
        pytest.skip("network namespaces can't be made here")
    ready, done = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            if hasattr(os, "unshare"):
                os.unshare(0x40000000)
            else:
                import ctypes

                ctypes.CDLL(None).unshare(0x40000000)
            client = connect(listener)
            os.write(ready[1], b"x")
            os.read(done[0], 1)
            client.close()
            status = 0
        finally:
            os._exit(status)
    try:
        os.close(ready[1])
        assert os.read(ready[0], 1) == b"x"
        server, _ = listener.accept()
        with server:
            assert reason(server, is_server=True) == ("peer not found", False)
    finally:
        os.write(done[1], b"x")
        os.waitpid(child, 0)
        for fd in (ready[0], *done):
            os.close(fd)


class TestSocketsOfOtherFamilies:
    def test_tcp_sockets_have_a_key_only_if_tcp_is_set(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            client = socket.create_connection(listening.getsockname())
            server, _ = listening.accept()
            with client, server:
                assert reason(client, is_server=False) == ("not a unix socket", False)
                key = channel_key(client, is_server=False, tcp=True)
                assert channel_key(server, is_server=True, tcp=True) == key

    def test_object_that_is_no_connected_socket_has_no_key(self, tmp_path: Path) -> None:
        assert reason(None, is_server=True) == ("no socket", False)
        closed = socket.socket()
        closed.close()
        assert reason(closed, is_server=True) == ("not connected", False)
        with (tmp_path / "file").open("w") as file:
            assert reason(file, is_server=True)[0] == "not a socket"  # type: ignore[arg-type]

    def test_kernel_without_socket_cookies_gives_no_key(self) -> None:
        near, far = socket.socketpair()
        with near, far, mock.patch.object(module, "_SO_COOKIE", 9999):
            assert reason(near, is_server=False) == ("no cookies", False)

    def test_nonces_are_unique_and_not_0(self) -> None:
        nonces = {nonce() for _ in range(100)}
        assert len(nonces) == 100
        assert all(0 < value < 1 << 64 for value in nonces)


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"\0" * 15,
        struct.pack("=IHHIIi", 20, 2, 0, 1, 0, -2),
        struct.pack("=IHHII", 1000, 20, 0, 1, 0) + bytes(4),
        struct.pack("=IHHII", 1000, 99, 0, 1, 0) + bytes(40),
    ],
)
def test_malformed_netlink_reply_is_an_error(reply: bytes) -> None:
    with pytest.raises(OSError, match="sock_diag"):
        module._parse(reply)


def test_netlink_attribute_of_length_0_ends_parsing() -> None:
    head = struct.pack("=IHHII", 1000, 20, 0, 1, 0) + struct.pack("=BBBBIQ", 1, 1, 1, 0, 7, 5)
    assert module._parse(head + bytes(12)) == (5, 0)
    assert module._parse(head + struct.pack("=HHHHI", 4, 9, 8, 2, 77)) == (5, 77)


def test_socket_cookie_of_the_peer_is_read() -> None:
    near, far = socket.socketpair()
    with near, far:
        assert peer_cookie(near) == struct.unpack("Q", far.getsockopt(socket.SOL_SOCKET, 57, 8))[0]
