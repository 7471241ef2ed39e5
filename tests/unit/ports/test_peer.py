"""Who a peer is: by the kernel, by its own word, by the address it came to."""

from __future__ import annotations

import os

import pytest

from stretto.base.unix_socket import UnixSocket
from stretto.ports.peer import (
    MAX_NAME_CHARACTERS,
    Peer,
    machine_hint,
    machine_id,
    machine_name,
    own_identity,
    peer_of,
)
from stretto.protos.ipc import IPCFrame

Identity = IPCFrame.SetPeerIdentity


def identity(**fields: object) -> IPCFrame.SetPeerIdentity:
    given: dict[str, object] = {"pid": 7, "uid": 8, "machine_id_hint": "box", "machine_name": "Box"}
    return Identity(**(given | fields))  # type: ignore[arg-type]


def test_unix_peers_are_who_the_kernel_says() -> None:
    one, other = UnixSocket.pair()
    peer = peer_of(one)
    peer.introduce(identity())
    assert (peer.uid, peer.pid, peer.machine_id) == (os.getuid(), os.getpid(), 0)
    assert not peer.is_remote
    one.close()
    other.close()


def test_remote_peers_say_it_themselves_once() -> None:
    peer = Peer(address="192.0.2.1:10")
    assert (peer.uid, peer.pid, peer.machine_id, peer.is_remote) == (0, 0, 0, True)
    peer.introduce(identity())
    peer.introduce(identity(pid=9, machine_id_hint="another"))
    assert (peer.uid, peer.pid) == (8, 7)
    assert (peer.machine_id, peer.machine_name) == (machine_id("box", ""), "Box")


def test_what_they_say_is_bounded() -> None:
    peer = Peer(address="192.0.2.1:10")
    peer.introduce(identity(uid=-2, machine_name="x" * 10_000))
    assert peer.uid == 2**32 - 2
    assert len(peer.machine_name) == MAX_NAME_CHARACTERS


@pytest.mark.parametrize(
    ("hint", "address", "expected"),
    [
        # FNV-1a 64 of "a" is af63dc4c8601ec8c, of "foobar" 85944171f73967e8.
        ("a", "1.2.3.4:5", 0x8601EC8C),
        ("", "foobar:5", 0xF73967E8),
        ("", "[::1]:5", machine_id("[::1]", "")),
        ("", "vsock://2:5", machine_id("vsock://2", "")),
    ],
)
def test_machine_id(hint: str, address: str, expected: int) -> None:
    assert machine_id(hint, address) == expected


def test_own_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFETTO_MACHINE_NAME", "here")
    own = own_identity()
    assert (own.pid, own.uid) == (os.getpid(), os.geteuid())
    assert own.machine_id_hint == machine_hint() == machine_hint().strip()
    assert own.machine_name == "here"


def test_a_machine_without_a_name_is_called_by_its_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PERFETTO_MACHINE_NAME", raising=False)
    assert machine_name() == os.uname().sysname
