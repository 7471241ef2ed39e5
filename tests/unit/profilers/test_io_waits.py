"""Waits for files, peers and timers are slices; results and errors are as without a recording."""

from __future__ import annotations

import builtins
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stretto._pyhooks import observe_io_waits
from stretto.profilers import io_waits
from tests.support.call_slices import BEGIN, Event, recorded

SHORT_S = 0.005


@pytest.fixture(autouse=True)
def installed() -> None:
    io_waits.install()


def only(events: list[Event], name: str) -> dict[str, object]:
    """Return the arguments of the only wait in a function."""
    (wait,) = (event for event in events if event.type == BEGIN and event.name == name)
    return wait.args


@contextmanager
def later(function: Callable[..., object], *arguments: object) -> Iterator[None]:
    """Call a function while the body waits for it."""
    timer = threading.Timer(SHORT_S, function, arguments)
    timer.start()
    try:
        yield
    finally:
        timer.join()


@contextmanager
def connected() -> Iterator[tuple[socket.socket, socket.socket]]:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
        server.accept()[0] as accepted,
    ):
        yield client, accepted


def test_wait_for_a_peer_has_its_address() -> None:
    with connected() as (client, accepted), recorded("python.io_waits") as result:
        with later(accepted.send, b"answer"):
            assert client.recv(10) == b"answer"
        with later(accepted.send, b"more"):
            assert client.recv_into(bytearray(10)) == 4
        address = "{}:{}".format(*client.getpeername())
    for name in ("socket.recv", "socket.recv_into"):
        assert only(result.events, name) == {"peer": address}


def test_error_of_a_wait_is_raised() -> None:
    with connected() as (client, _), recorded("python.io_waits") as result:
        client.settimeout(SHORT_S)
        with pytest.raises(TimeoutError, match="timed out"):
            client.recv(10)
    assert only(result.events, "socket.recv")["peer"]


def test_wait_of_a_listening_socket_has_its_own_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, recorded("python.io_waits") as result:
        server.settimeout(SHORT_S)
        with pytest.raises(TimeoutError):
            server.accept()
        address = "{}:{}".format(*server.getsockname())
    assert only(result.events, "socket._accept") == {"peer": f"listening on {address}"}


def test_wait_for_a_file_has_its_path(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)

    def write() -> None:
        fd = os.open(fifo, os.O_WRONLY)
        os.write(fd, b"x")
        os.close(fd)

    with (
        recorded("python.io_waits") as result,
        later(write),
        builtins.open(fifo, "rb", 0) as file,
    ):
        assert file.read(1) == b"x"
    assert only(result.events, "io.open") == {"file": str(fifo)}


def test_wait_for_a_descriptor_has_what_the_kernel_calls_it() -> None:
    read_end, write_end = os.pipe()
    with recorded("python.io_waits") as result, later(os.write, write_end, b"x"):
        assert os.read(read_end, 1) == b"x"
    name = os.readlink(f"/proc/self/fd/{read_end}")
    os.close(read_end)
    os.close(write_end)
    assert only(result.events, "read") == {"file": name}


def test_sleep_has_no_name_and_a_short_one_no_slice() -> None:
    with recorded("python.io_waits") as result:
        time.sleep(SHORT_S)  # sleep: the wait to be recorded
        begin = time.perf_counter()
        time.sleep(0)
        took_s = time.perf_counter() - begin
    if took_s < SHORT_S / 10:  # else the machine is busy
        assert only(result.events, "time.sleep") == {}


def test_functions_are_as_before_after_the_session() -> None:
    names = [repr(each) for each in (time.sleep, os.read, socket.socket.recv)]
    with recorded("python.io_waits"):
        assert [repr(each) for each in (time.sleep, os.read, socket.socket.recv)] == names
    with recorded("python.gc") as result:
        time.sleep(SHORT_S)  # sleep: the wait that is not recorded
    assert not [event for event in result.events if event.name == "time.sleep"]
    with recorded("python.io_waits") as result:
        time.sleep(SHORT_S)  # sleep: the wait to be recorded
    assert only(result.events, "time.sleep") == {}


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        ("/run/fifo", ("/run/fifo", None)),
        (b"/run/fifo", ("/run/fifo", None)),
        (Path("/run/fifo"), ("/run/fifo", None)),
        ([], (None, None)),
        (["/run/fifo"], ("/run/fifo", None)),
        (["/a", "/b"], (None, None)),
    ],
)
def test_subject_is_described(subject: object, expected: tuple[str | None, str | None]) -> None:
    assert io_waits.describe(subject) == expected


def test_sockets_are_described() -> None:
    first, second = socket.socketpair()
    with first, second:
        assert io_waits.describe(first) == (None, "unix socket")
    assert io_waits._address(("fe80::1", 80, 0, 0)) == "[fe80::1]:80"
    assert io_waits._address(b"\0name") == "@name"


def test_subject_that_cannot_be_described_leaves_a_slice(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    with recorded("python.io_waits") as result:
        assert observe_io_waits(time.sleep, io_waits.category.template("s", "file", "peer"), 2)
        time.sleep(SHORT_S)  # sleep: the wait to be recorded; a float is no file
    assert only(result.events, "s") == {}


def test_only_c_functions_are_observed_while_a_session_records() -> None:
    template = io_waits.category.template("x", "file", "peer")
    assert not observe_io_waits(time.sleep, template, 0)
    with recorded("python.io_waits"):
        assert not observe_io_waits(os.path.join, template, 0)
