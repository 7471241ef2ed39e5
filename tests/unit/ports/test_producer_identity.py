"""Identities of producers."""

from __future__ import annotations

import pytest

from stretto.ports.producer_identity import ProducerIdentity


def test_identities_with_equal_fields_are_equal() -> None:
    one = ProducerIdentity("p", uid=1, pid=2, sdk_version="v")
    assert one == ProducerIdentity("p", uid=1, pid=2, sdk_version="v")
    assert hash(one) == hash(ProducerIdentity("p", uid=1, pid=2, sdk_version="v"))
    assert one != ProducerIdentity("p", uid=1, pid=2, sdk_version="w")
    assert one != "p"


def test_repr_contains_name_uid_and_pid() -> None:
    assert repr(ProducerIdentity("p", uid=1, pid=2)) == "ProducerIdentity('p', uid=1, pid=2)"


@pytest.mark.parametrize(
    ("machine_id", "in_process", "shm_emulation", "is_remote"),
    [
        (0, False, False, False),
        (0, False, True, True),
        (9, False, False, True),
        (9, True, False, False),
    ],
)
def test_producer_is_remote_if_it_cannot_share_memory(
    *, machine_id: int, in_process: bool, shm_emulation: bool, is_remote: bool
) -> None:
    identity = ProducerIdentity(
        "p", uid=1, machine_id=machine_id, in_process=in_process, shm_emulation=shm_emulation
    )
    assert identity.is_remote is is_remote
