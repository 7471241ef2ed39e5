"""Sockets opened by a service manager (systemd's LISTEN_FDS)."""

from __future__ import annotations

import os

import pytest

from stretto.base.errors import CommandError
from stretto.cli.traced.activation import activated_names, activated_sockets


def environment(**changes: str) -> dict[str, str]:
    return {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "2", "HOME": "/", **changes}


def test_socket_names_are_read_and_all_activation_variables_are_removed():
    variables = environment(LISTEN_FDNAMES="producer:consumer")
    assert activated_names(variables) == ["producer", "consumer"]
    assert variables == {"HOME": "/"}


def test_without_activation_variables_there_are_no_sockets():
    assert activated_sockets({}) == {"producer": [], "consumer": []}


def test_sockets_for_another_process_are_ignored():
    variables = environment(LISTEN_PID="1", LISTEN_FDNAMES="producer:consumer")
    assert activated_names(variables) == []


@pytest.mark.parametrize("changes", [{}, {"LISTEN_FDNAMES": "a"}, {"LISTEN_FDS": "x"}])
def test_mismatch_of_socket_names_and_count_is_refused(changes):
    with pytest.raises(CommandError, match="FileDescriptorName"):
        activated_names(environment(**changes))


@pytest.mark.parametrize("name", ["unknown", "producer-consumer"])
def test_unknown_socket_name_is_refused(name):
    variables = environment(LISTEN_FDS="1", LISTEN_FDNAMES=name)
    with pytest.raises(CommandError, match=name):
        activated_sockets(variables)
