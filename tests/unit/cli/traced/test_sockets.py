"""Opening the daemon's sockets: all, or none."""

from __future__ import annotations

import fcntl
import os
import socket
import stat
from pathlib import Path

import pytest

from stretto.base.errors import CommandError
from stretto.base.unix_socket import UnixListener, UnixSocket
from stretto.cli.traced import sockets
from stretto.cli.traced.permissions import Permissions
from stretto.cli.traced.sockets import Sockets, open_sockets

EVERYBODY = Permissions(0o666)
OWNER = Permissions(0o600)


def open_in(folder: Path, *producers: str) -> Sockets:
    addresses = [str(folder / name) for name in producers or ("producer",)]
    return open_sockets({}, (addresses, EVERYBODY), ([str(folder / "consumer")], OWNER))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_each_has_its_permissions(tmp_path):
    opened = open_in(tmp_path, "one", "two")
    assert (mode(tmp_path / "one"), mode(tmp_path / "two")) == (0o666, 0o666)
    assert mode(tmp_path / "consumer") == 0o600
    assert opened.describe() == (
        f"producers: {tmp_path}/one, {tmp_path}/two; consumers: {tmp_path}/consumer"
    )
    opened.close()
    assert list(tmp_path.iterdir()) == []


def test_a_living_daemon_is_left_alone(tmp_path):
    first = open_in(tmp_path)
    with pytest.raises(CommandError, match=r"listens on .*producer already: end it"):
        open_in(tmp_path)
    UnixSocket.connect(str(tmp_path / "producer")).close()
    first.close()


def test_if_one_cannot_be_opened_none_stays(tmp_path):
    (tmp_path / "consumer").write_text("a file")
    with pytest.raises(CommandError, match="no socket"):
        open_in(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["consumer"]


def test_a_daemon_without_a_socket_is_none(tmp_path):
    with pytest.raises(CommandError, match="PERFETTO_PRODUCER_SOCK_NAME names no socket"):
        open_sockets({}, ([], EVERYBODY), ([str(tmp_path / "consumer")], OWNER))
    assert list(tmp_path.iterdir()) == []


def test_what_a_dead_daemon_left_is_replaced(tmp_path):
    for name in ("producer", "consumer"):
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(tmp_path / name))
    open_in(tmp_path).close()


def test_no_such_folder(tmp_path):
    with pytest.raises(CommandError, match="No such file"):
        open_in(tmp_path / "no")


def test_open_sockets_are_taken_over(tmp_path):
    listener = UnixListener(str(tmp_path / "ours"))
    opened = open_sockets(
        {"producer": [listener]},
        ([str(tmp_path / "unused")], EVERYBODY),
        ([str(tmp_path / "consumer")], OWNER),
    )
    assert opened.producers == [listener]
    assert not (tmp_path / "unused").exists()
    assert (tmp_path / "consumer").exists()
    opened.close()


def test_abstract_and_network_addresses(tmp_path):
    opened = open_sockets(
        {}, ([f"@stretto-{os.getpid()}", "127.0.0.1:0"], EVERYBODY), (["@c-stretto"], OWNER)
    )
    assert len(opened.producers) == 2
    opened.close()


def test_a_lock_that_somebody_keeps_does_not_stop_us(tmp_path, monkeypatch):
    monkeypatch.setattr(sockets, "LOCK_TIMEOUT_S", 0.03)
    folder = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    open_in(tmp_path).close()
    os.close(folder)
