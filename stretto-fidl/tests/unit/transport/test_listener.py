"""Tests of listening sockets in the file system: addresses in use, and old socket files."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from fidl_support.talk import serving, talk
from stretto.base.errors import TransportError
from stretto_fidl.transport import Client, Listener, connect

STREAM = pytest.mark.parametrize("stream", [False, True])


@STREAM
def test_listener_accepts_clients_and_removes_its_socket(tmp_path: Path, stream: bool) -> None:
    path = tmp_path / "socket"
    with Listener(path, stream=stream) as listener:
        with Client(talk.Talk, connect(path, stream=stream)) as client, serving(listener.accept()):
            assert client.Echo(number=1).number == 1
        with pytest.raises(TransportError, match="another server listens there"):
            Listener(path, stream=stream)
        with pytest.raises(TransportError, match="another server listens there"):
            Listener(path, stream=not stream)
        assert path.exists()
    assert not path.exists()
    with pytest.raises(TransportError, match="can't connect"):
        connect(path)


def test_socket_file_of_a_crashed_server_must_be_removed_first(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as crashed:
        crashed.bind(str(path))
    with pytest.raises(TransportError, match="if its server has exited, remove it"):
        Listener(path)
    path.unlink()
    Listener(path).close()


def test_file_other_than_a_socket_at_the_path_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("precious")
    with pytest.raises(TransportError, match="is not a socket: choose another path"):
        Listener(path)
    assert path.read_text() == "precious"


def test_deleted_listener_removes_its_socket(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    listener = Listener(path)
    assert path.exists()
    del listener
    assert not path.exists()


def test_close_in_a_forked_child_keeps_the_parents_socket(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    listener, inherited = Listener(path), Listener.__new__(Listener)
    vars(inherited).update(vars(listener))
    inherited._socket = listener._socket.dup()
    inherited._owner = os.getppid()
    inherited.close()
    assert path.exists()
    with listener, connect(path):
        pass
    assert not path.exists()


def test_close_keeps_the_socket_of_a_later_listener(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    listener = Listener(path)
    path.unlink()
    with Listener(path):
        listener.close()
        assert path.exists()


def test_listener_accepts_an_abstract_address() -> None:
    name = f"\0stretto-test-{os.getpid()}"
    with Listener(name), connect(name), pytest.raises(TransportError, match="listens there"):
        Listener(name)
