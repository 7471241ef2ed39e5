"""The daemon opens all of its sockets, or none."""

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


def test_each_socket_has_its_configured_permissions(tmp_path):
    opened = open_in(tmp_path, "one", "two")
    assert (mode(tmp_path / "one"), mode(tmp_path / "two")) == (0o666, 0o666)
    assert mode(tmp_path / "consumer") == 0o600
    assert opened.describe() == (
        f"producers: {tmp_path}/one, {tmp_path}/two; consumers: {tmp_path}/consumer"
    )
    opened.close()
    assert list(tmp_path.iterdir()) == []


def test_socket_of_a_running_daemon_is_not_replaced(tmp_path):
    first = open_in(tmp_path)
    with pytest.raises(CommandError, match=r"listens on .*producer already: end it"):
        open_in(tmp_path)
    UnixSocket.connect(str(tmp_path / "producer")).close()
    first.close()


def test_failure_to_open_one_socket_removes_all_sockets(tmp_path):
    (tmp_path / "consumer").write_text("a file")
    with pytest.raises(CommandError, match="not a socket"):
        open_in(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["consumer"]


def test_missing_producer_address_is_refused(tmp_path):
    with pytest.raises(CommandError, match="PERFETTO_PRODUCER_SOCK_NAME names no socket"):
        open_sockets({}, ([], EVERYBODY), ([str(tmp_path / "consumer")], OWNER))
    assert list(tmp_path.iterdir()) == []


def test_sockets_of_an_ended_daemon_are_replaced(tmp_path):
    for name in ("producer", "consumer"):
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(tmp_path / name))
    open_in(tmp_path).close()


def test_missing_folder_is_an_error(tmp_path):
    with pytest.raises(CommandError, match="No such file"):
        open_in(tmp_path / "no")


def test_activated_sockets_are_used(tmp_path):
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


def test_sockets_with_abstract_and_network_addresses_are_opened(tmp_path):
    opened = open_sockets(
        {}, ([f"@stretto-{os.getpid()}", "127.0.0.1:0"], EVERYBODY), (["@c-stretto"], OWNER)
    )
    assert len(opened.producers) == 2
    opened.close()


def test_locked_socket_folder_only_delays_the_start(tmp_path, monkeypatch):
    monkeypatch.setattr(sockets, "LOCK_TIMEOUT_S", 0.03)
    folder = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    open_in(tmp_path).close()
    os.close(folder)
