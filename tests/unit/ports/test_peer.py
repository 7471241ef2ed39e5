"""Identity of a peer: from the kernel, from its own message, or from its address."""

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


def test_unix_peer_has_the_credentials_of_the_kernel() -> None:
    one, other = UnixSocket.pair()
    peer = peer_of(one)
    peer.set_identity(identity())
    assert (peer.uid, peer.pid, peer.machine_id) == (os.getuid(), os.getpid(), 0)
    assert not peer.is_remote
    one.close()
    other.close()


def test_only_the_first_identity_of_a_remote_peer_is_used() -> None:
    peer = Peer(address="192.0.2.1:10")
    assert (peer.uid, peer.pid, peer.machine_id, peer.is_remote) == (0, 0, 0, True)
    peer.set_identity(identity())
    peer.set_identity(identity(pid=9, machine_id_hint="another"))
    assert (peer.uid, peer.pid) == (8, 7)
    assert (peer.machine_id, peer.machine_name) == (machine_id("box", ""), "Box")


def test_length_of_machine_names_is_limited() -> None:
    peer = Peer(address="192.0.2.1:10")
    peer.set_identity(identity(uid=-2, machine_name="x" * 10_000))
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
def test_machine_id_is_derived_from_the_hint_or_the_address(
    hint: str, address: str, expected: int
) -> None:
    assert machine_id(hint, address) == expected


def test_own_identity_has_process_user_and_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFETTO_MACHINE_NAME", "here")
    own = own_identity()
    assert (own.pid, own.uid) == (os.getpid(), os.geteuid())
    assert own.machine_id_hint == machine_hint() == machine_hint().strip()
    assert own.machine_name == "here"


def test_default_machine_name_is_the_name_of_the_operating_system(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PERFETTO_MACHINE_NAME", raising=False)
    assert machine_name() == os.uname().sysname
