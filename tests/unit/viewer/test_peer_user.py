from __future__ import annotations

import errno
import os
import socket
import sys
from pathlib import Path

import pytest

from stretto.base.errors import ConfigError
from stretto.viewer import peer_user
from stretto.viewer.peer_user import allowed_users, owner_in_table, socket_owner
from stretto.viewer.socket_diag import Address
from tests.support.other_user import ROOT_ONLY, as_user, can_be_another_user

HEADER = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"
ROW = " {n}: {local} {remote} {state} 00000000:00000000 00:00000000 00000000  {uid}  0 1 1 0\n"
LOOPBACK = int.from_bytes(b"\x7f\x00\x00\x01", sys.byteorder)
CLIENT, SERVER = ("127.0.0.1", 40002), ("127.0.0.1", 8037)


def place(port: int) -> str:
    return f"{LOOPBACK:08X}:{port:04X}"


def table(folder: Path, *rows: tuple[int, int, str, int]) -> str:
    text = HEADER
    for n, (local, remote, state, uid) in enumerate(rows):
        text += ROW.format(n=n, local=place(local), remote=place(remote), state=state, uid=uid)
    path = folder / "tcp"
    path.write_text(text)
    return str(path)


def test_socket_owner_is_found_in_the_row_with_both_ports(tmp_path: Path) -> None:
    rows = table(
        tmp_path, (8037, 0, "0A", 1), (8037, 40002, "01", 2), (40003, 8037, "01", 3),
        (40002, 8038, "01", 4), (40002, 8037, "01", 1000),
    )  # fmt: skip
    assert owner_in_table(CLIENT, SERVER, rows) == 1000


@pytest.mark.parametrize("state", ["06", "05", "08", "04"])
def test_closed_socket_has_no_owner(tmp_path: Path, state: str) -> None:
    # The kernel lists a closed socket with uid 0, as if root owned it.
    rows = table(tmp_path, (40002, 8037, state, 0))
    assert owner_in_table(CLIENT, SERVER, rows) is None


def test_absent_connection_has_no_owner(tmp_path: Path) -> None:
    assert owner_in_table(CLIENT, SERVER, table(tmp_path)) is None
    assert owner_in_table(CLIENT, SERVER, str(tmp_path / "absent")) is None


class TestConnectionOwners:
    """Owners of connections, from netlink or from the table of sockets."""

    @pytest.fixture(params=["netlink", "table"])
    def _method(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
        if request.param == "table":

            def no_answer(_local: Address, _remote: Address) -> int | None:
                raise OSError(errno.EPROTONOSUPPORT, "not here")

            monkeypatch.setattr(peer_user, "owner_by_netlink", no_answer)

    @pytest.mark.usefixtures("_method")
    def test_connection_has_an_owner_while_both_ends_are_open(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            far = socket.create_connection(listening.getsockname())
            near, address = listening.accept()
            with near:
                ends = (address, near.getsockname())
                assert socket_owner(*ends) == os.geteuid()
                assert socket_owner(ends[0], ("127.0.0.1", 1)) is None
                far.close()
                assert socket_owner(*ends) is None

    @pytest.mark.usefixtures("_method")
    @pytest.mark.skipif(not can_be_another_user(), reason=ROOT_ONLY)
    def test_owner_is_the_user_that_made_the_connection(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            with as_user(65534):
                far = socket.create_connection(listening.getsockname())
            near, address = listening.accept()
            with near, far:
                assert socket_owner(address, near.getsockname()) == 65534


class TestAllowedUsers:
    def test_own_user_and_root_are_allowed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("SUDO_UID", raising=False)
        assert allowed_users() == {0, os.geteuid()}

    def test_user_that_ran_sudo_is_allowed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SUDO_UID", "1234")
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        assert allowed_users() == {0, 1234}
        monkeypatch.setattr(os, "geteuid", lambda: 7)
        assert allowed_users() == {0, 7}

    def test_users_are_named_by_name_or_number(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("SUDO_UID", raising=False)
        assert allowed_users(("root", "4321")) == {0, os.geteuid(), 4321}

    def test_unknown_user_name_is_an_error(self) -> None:
        with pytest.raises(ConfigError, match="no user 'nobody-has-this-name'"):
            allowed_users(("nobody-has-this-name",))
