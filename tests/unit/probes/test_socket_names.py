"""Names of sockets, from saved tables of the kernel."""

from __future__ import annotations

import os
import socket
import struct
import sys
from pathlib import Path

import pytest

from stretto.base.clock import SystemClock
from stretto.probes.machine import Machine
from stretto.probes.socket_names import socket_names
from stretto.testing.fake_clock import FakeClock
from stretto.testing.fake_task_runner import FakeTaskRunner
from tests.support.probing import write_files

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when uid  timeout inode\n"


def machine(root: Path | str) -> Machine:
    return Machine(FakeTaskRunner(FakeClock()), lambda f: f(), SystemClock(), str(root))


def words(packed: bytes) -> str:
    """Return an address as the kernel of this machine prints it."""
    return "".join(f"{word:08X}" for word in struct.unpack(f"={len(packed) // 4}I", packed))


def line(own: str, peer: str, state: str, inode: int) -> str:
    return (
        f"   0: {own} {peer} {state} 00000000:00000000 00:00000000 00000000 0 0 {inode} 1 0 100\n"
    )


LOCAL = words(bytes([127, 0, 0, 1]))
ANY = words(bytes(4))
MAPPED = words(socket.inet_pton(socket.AF_INET6, "::ffff:10.0.0.7"))
SIX = words(socket.inet_pton(socket.AF_INET6, "fe80::1"))


def test_connected_sockets_have_their_peer_and_others_their_own_address(tmp_path: Path) -> None:
    tcp = HEAD + line(f"{LOCAL}:1F90", f"{LOCAL}:1538", "01", 11)
    tcp += line(f"{ANY}:0050", f"{ANY}:0000", "0A", 12)
    tcp6 = HEAD + line(f"{MAPPED}:0001", f"{MAPPED}:0050", "01", 13)
    tcp6 += line(f"{SIX}:0001", f"{SIX}:0050", "01", 14)
    udp = HEAD + line(f"{LOCAL}:0035", f"{ANY}:0000", "07", 15)
    unix = "Num RefCount Protocol Flags Type St Inode Path\n"
    unix += "0000: 00000002 00000000 00010000 0001 01 16 /run/a socket\n"
    unix += "0000: 00000003 00000000 00000000 0001 03 17\n"
    tables = {"tcp": tcp, "tcp6": tcp6, "udp": udp, "unix": unix}
    write_files(tmp_path, {f"proc/7/net/{name}": text for name, text in tables.items()})
    assert socket_names(machine(tmp_path), 7) == {
        11: "127.0.0.1:5432",
        12: "listening on 0.0.0.0:80",
        13: "10.0.0.7:80",
        14: "[fe80::1]:80",
        15: "127.0.0.1:53",
        16: "/run/a socket",
        17: "unix socket",
    }


def test_damaged_tables_have_no_names(tmp_path: Path) -> None:
    write_files(tmp_path, {"proc/7/net/tcp": HEAD + "0: 1\n", "proc/7/net/unix": "Num\nx\n"})
    assert socket_names(machine(tmp_path), 7) == {}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has the tables")
def test_own_connection_has_its_peer() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        names = socket_names(machine("/"), os.getpid())
        port = server.getsockname()[1]
        assert names[os.fstat(client.fileno()).st_ino] == f"127.0.0.1:{port}"
        assert names[os.fstat(server.fileno()).st_ino] == f"listening on 127.0.0.1:{port}"
