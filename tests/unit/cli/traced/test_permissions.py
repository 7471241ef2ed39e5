"""Permissions of the daemon's sockets."""

from __future__ import annotations

import grp
import os

import pytest

from stretto.base.errors import CommandError
from stretto.cli.traced.permissions import Permissions, default_permissions, parse_permissions

GROUP = grp.getgrgid(0)


def test_default_permissions_allow_all_producers_and_own_consumers():
    producers, consumers = default_permissions()
    assert (producers.mode, producers.group) == (0o666, None)
    assert (consumers.mode, consumers.group, consumers.effective_group) == (0o600, None, None)


def test_groups_are_parsed_from_names_and_numbers():
    producers, consumers = parse_permissions(f"{GROUP.gr_name}:0660:1234:0620")
    assert (producers.group, producers.mode) == (0, 0o660)
    assert (consumers.group, consumers.mode) == (1234, 0o620)
    assert consumers.effective_group == 1234


def test_empty_group_name_is_the_group_of_the_daemon():
    producers, consumers = parse_permissions(":0666::0660")
    assert producers.group is None
    assert consumers.group is None
    assert consumers.effective_group == os.getegid()


def test_mode_without_group_bits_has_no_effective_group():
    assert Permissions(0o600).effective_group is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "needs a group and a mode"),
        ("a:0660:b", "needs a group and a mode"),
        (":0660::0660:", "needs a group and a mode"),
        (":rw::0600", "isn't an octal mode"),
        (":0680::0600", "isn't an octal mode"),
        (":-1::0600", "isn't an octal mode"),
        (":7777::0600", "isn't an octal mode"),
        (":0666:no such group:0660", "there is no group 'no such group'"),
        (":0666::0666", "all users"),
        (":0666::0604", "all users"),
    ],
)
def test_invalid_permissions_are_refused(text, why):
    with pytest.raises(CommandError, match=why) as raised:
        parse_permissions(text)
    assert raised.value.exit_code == 2
