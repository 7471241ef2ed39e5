"""The rule that decides which peers may connect as consumers."""

from __future__ import annotations

import os

import pytest

from stretto.base.peer_credentials import PeerCredentials
from stretto.base.unix_socket import UnixSocket
from stretto.ports.peer_rule import PeerRule


def peer(uid: int, gid: int = 100, groups: tuple[int, ...] = ()) -> PeerCredentials:
    return PeerCredentials(pid=1, uid=uid, gid=gid, groups=groups)


@pytest.mark.parametrize(
    ("who", "allowed"),
    [
        (peer(0), True),
        (peer(1000), True),
        (peer(1001), False),
        (peer(1001, gid=7), True),
        (peer(1001, groups=(6, 7)), True),
        (peer(1001, gid=0, groups=(6, 8)), False),
    ],
)
def test_own_user_root_and_group_members_may_connect(
    who: PeerCredentials, *, allowed: bool
) -> None:
    assert PeerRule(group=7, uid=1000)(who) is allowed


def test_no_group_may_connect_by_default() -> None:
    assert not PeerRule(uid=1000)(peer(1001, gid=0, groups=(0, 7)))


def test_rule_applies_to_credentials_of_a_socket() -> None:
    one, other = UnixSocket.pair()
    credentials = one.peer_credentials()
    assert PeerRule()(credentials)
    assert set(credentials.groups) == set(os.getgroups())
    one.close()
    other.close()
