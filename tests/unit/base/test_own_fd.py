"""Descriptors that the program may have closed, and whose numbers it may have reused."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from stretto.base.errors import TransportError
from stretto.base.own_fd import OwnFd
from stretto.base.unix_socket import UnixSocket
from stretto.ipc.parked_fd import ParkedFd


@pytest.fixture
def foreign(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    yield fd
    os.close(fd)


def replace(fd: int, by: int) -> None:
    """Reuse the number of a descriptor for another file, as the program may do."""
    os.dup2(by, fd)


class TestOwnFd:
    def test_descriptor_is_ours_until_it_is_closed(self) -> None:
        fd = os.open("/dev/null", os.O_RDONLY)
        own = OwnFd(fd)
        assert own.is_ours
        own.close()
        assert not own.is_ours
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(fd)
        own.close()

    def test_descriptor_whose_number_was_reused_is_not_ours(self, foreign: int) -> None:
        fd = os.open("/dev/null", os.O_RDONLY)
        own = OwnFd(fd)
        replace(fd, foreign)
        assert not own.is_ours
        own.close()
        os.close(fd)  # `os.close` would fail if the descriptor were closed already.

    def test_descriptor_that_was_never_open_is_not_ours(self) -> None:
        assert not OwnFd(-1).is_ours
        assert not OwnFd(1 << 20).is_ours


class TestUnixSocket:
    def test_socket_whose_descriptor_number_was_reused_is_not_closed(self) -> None:
        ours, peer = UnixSocket.pair()
        theirs, other = socket.socketpair()
        with theirs, other:
            other.send(b"for the program")
            replace(ours.fileno(), theirs.fileno())
            with pytest.raises(TransportError, match="has closed the connection"):
                ours.send(b"x")
            with pytest.raises(TransportError, match="has closed the connection"):
                ours.recv_into(memoryview(bytearray(100)))
            number = ours.fileno()
            ours.shutdown()
            ours.close()
            assert theirs.recv(100) == b"for the program"
            theirs.send(b"back")
            assert other.recv(100) == b"back"
            os.close(number)  # `os.close` would fail if the descriptor were closed already.
        peer.close()


class TestParkedFd:
    @pytest.mark.parametrize("end", ["take_fd", "close_parked_fd"])
    def test_fd_whose_number_was_reused_while_parked_is_not_closed(
        self, foreign: int, end: str
    ) -> None:
        fd = os.open("/dev/null", os.O_RDONLY)
        parked = ParkedFd()
        parked.park_fd(fd)
        replace(fd, foreign)
        assert getattr(parked, end)() in (-1, None)
        os.close(fd)  # `os.close` would fail if the descriptor were closed already.
