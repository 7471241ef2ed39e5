"""Sockets that a service manager has opened."""

from __future__ import annotations

import os

import pytest

from stretto.base.errors import CommandError
from stretto.cli.traced.activation import activated_names, activated_sockets


def environment(**changes: str) -> dict[str, str]:
    return {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "2", "HOME": "/", **changes}


def test_names_are_read_and_the_variables_removed():
    variables = environment(LISTEN_FDNAMES="producer:consumer")
    assert activated_names(variables) == ["producer", "consumer"]
    assert variables == {"HOME": "/"}


def test_nothing_was_passed():
    assert activated_sockets({}) == {"producer": [], "consumer": []}


def test_what_was_passed_to_another_process_is_not_ours():
    variables = environment(LISTEN_PID="1", LISTEN_FDNAMES="producer:consumer")
    assert activated_names(variables) == []


@pytest.mark.parametrize("changes", [{}, {"LISTEN_FDNAMES": "a"}, {"LISTEN_FDS": "x"}])
def test_numbers_that_do_not_agree(changes):
    with pytest.raises(CommandError, match="FileDescriptorName"):
        activated_names(environment(**changes))


@pytest.mark.parametrize("name", ["unknown", "producer-consumer"])
def test_a_name_that_says_nothing(name):
    variables = environment(LISTEN_FDS="1", LISTEN_FDNAMES=name)
    with pytest.raises(CommandError, match=name):
        activated_sockets(variables)
