"""Tests of FIDL flows when a forked child, or another network namespace, has a channel end."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from fidl_support import fork as fidl_fork
from fidl_support.arrows import read
from fidl_support.child import accept_from
from fidl_support.flow import Flow, ask, flow, padding
from fidl_support.fork import CHILD, FORK_AT
from stretto import flows
from stretto_fidl.transport import Client, Listener, Server, connect
from tests.support.flow_points import Point, expected
from tests.support.oracle import missing
from tests.support.recorded import record as record_program
from tests.support.recorded_events import record
from tests.support.sources import ROOT
from tests.support.traced_greeter import flows_installed

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


def serial(point: Point) -> int:
    """Return the serial number that the length of a one-way message or event encodes."""
    return (point[2] - 32) // 8


BEFORE = {("one-way", 1), ("one-way", 2), ("one-way", 3), ("event", 3)}
AROUND = {("one-way", FORK_AT), ("event", FORK_AT)} | {
    *(("one-way", number) for number in (11, 12, 13)),
    ("event", 13),
}
AFTER = {("one-way", 21), ("one-way", 22), ("one-way", 23), ("event", 23)}


@pytest.mark.parametrize(
    ("mode", "arrows_of", "calls"),
    [
        # The senders of messages are unknown after a forked child has used the channel.
        ("client", BEFORE, 1),
        ("later", BEFORE | AFTER, 2),
        ("server", BEFORE | {("one-way", FORK_AT)}, 1),
        # The child sends nothing, but only a call shows this: earlier messages have no arrow.
        ("idle", BEFORE | AFTER, 3),
        ("worker", BEFORE | AROUND | AFTER, 3),
    ],
)
def test_forked_channel_has_arrows_only_where_the_sender_is_certain(
    tmp_path: Path, mode: str, arrows_of: set[tuple[str, int]], calls: int
) -> None:
    run = record_program(
        tmp_path / "trace.pftrace",
        *("--no-functions", "--", fidl_fork.__file__, str(tmp_path / "sock"), mode),
        PYTHONPATH=":".join(sys.path),
    )
    assert run.status == 0, run.stderr
    points, arrows = read(run.trace)
    # If the sender has no arrows, a call has one arrow: from its request to its reply.
    calls_of = {point[2] for point in points if point[1] == "request"}
    short = {(("send", "request", txid, 0), ("receive", "reply", txid, 0)) for txid in calls_of}
    assert set(arrows) <= set(expected(points)) | short
    assert len(set(arrows)) == len(arrows)
    with_arrows = {(out[1], serial(out)) for out, _ in arrows if out[1] in ("one-way", "event")}
    sent = {(p[1], serial(p)) for p in points if p[0] == "send" and p[1] in ("one-way", "event")}
    # Messages of a forked child are in the trace, but have no arrows.
    of_child = {each for each in sent if each[1] >= CHILD}
    by_client = {("one-way", CHILD + number) for number in range(3)}
    expected_of_child = {"client": by_client, "later": by_client, "server": {("event", CHILD)}}
    assert of_child == expected_of_child.get(mode, set())
    assert sent >= BEFORE | AROUND | AFTER
    assert with_arrows == arrows_of
    # If the receiver has no arrows, a call has one arrow: from its handler to its reply.
    complete = sum(out[:2] == ("send", "reply") for out, _ in arrows)
    assert complete == calls


class TestConnectionNames:
    """Tests of connections whose socket names are read late, at the first traced message."""

    def test_messages_sent_before_accept_have_arrows(self, tmp_path: Path) -> None:
        path = str(tmp_path / "sock")
        with flows_installed():
            with record() as recorded, Listener(path) as listener:
                client = Client(flow.Flow, connect(path))
                client.Tell(padding=padding(1))
                server = Server(flow.Flow, listener.accept(), Flow())
                serving = threading.Thread(target=server.serve)
                serving.start()
                client.Tell(padding=padding(2))
                ask(client, 1)
                client.close()
                serving.join()
            assert flows.stats() == {}
        points, arrows = read(recorded.trace)
        assert sorted(arrows) == sorted(expected(points))
        assert len(arrows) == 5

    def test_messages_of_a_recording_started_after_the_connection_have_arrows(
        self, tmp_path: Path
    ) -> None:
        path = str(tmp_path / "sock")
        with flows_installed(), Listener(path) as listener:
            client = Client(flow.Flow, connect(path))
            received = threading.Semaphore(0)
            server = Server(flow.Flow, listener.accept(), Flow(lambda _size: received.release()))
            serving = threading.Thread(target=server.serve)
            serving.start()
            for number in range(500):
                client.Tell(padding=padding(number % 7))
            for _ in range(500):
                assert received.acquire(timeout=60)
            with record() as recorded:
                for number in range(1, 4):
                    client.Tell(padding=padding(100 + number))
                ask(client, 1)
                client.close()
                serving.join()
            assert flows.stats() == {}
        points, arrows = read_complete_messages(recorded.trace)
        assert sorted(arrows) == sorted(expected(points))
        assert len(arrows) == 6

    @pytest.mark.parametrize("accepted", ["in time", "too late"])
    def test_messages_have_arrows_if_the_server_accepted_the_client_before_the_client_closed(
        self, tmp_path: Path, accepted: str
    ) -> None:
        path = str(tmp_path / "sock")
        with flows_installed():
            with record() as recorded, Listener(path) as listener:
                client = Client(flow.Flow, connect(path))
                if accepted == "in time":
                    server = Server(flow.Flow, listener.accept(), Flow())
                for number in range(1, 4):
                    client.Tell(padding=padding(number))
                client.close()
                if accepted == "too late":
                    server = Server(flow.Flow, listener.accept(), Flow())
                server.serve()
            assert flows.stats() == ({} if accepted == "in time" else {"peer gone": 3})
        points, arrows = read(recorded.trace)
        assert len(points) == 6
        assert sorted(arrows) == (sorted(expected(points)) if accepted == "in time" else [])


def read_complete_messages(trace: bytes) -> tuple[list[Point], list[tuple[Point, Point]]]:
    """Return the points and arrows of a trace that began after messages had been sent.

    Points of messages sent before the trace began are left out.
    """
    points, arrows = read(trace)
    sent = {point[2] for point in points if point[0] == "send"}
    return [point for point in points if point[2] in sent], arrows


CLIENT = """
import sys
from stretto import flows
from stretto_fidl.transport import Client, connect
from fidl_support.flow import ask, flow
flows.install()
with Client(flow.Flow, connect(sys.argv[1])) as client:
    client.Tell(padding=[])
    ask(client, 1)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes network namespaces")
def test_messages_of_a_client_in_another_network_namespace_have_no_arrows(tmp_path: Path) -> None:
    if subprocess.run(["unshare", "-n", "true"], capture_output=True, check=False).returncode:
        pytest.skip("network namespaces can't be made here")
    path = str(tmp_path / "sock")
    environment: dict[str, Any] = {**os.environ, "PYTHONPATH": ":".join([str(ROOT), *sys.path])}
    with flows_installed(), record() as recorded, Listener(path) as listener:
        command = ["unshare", "-n", sys.executable, "-c", CLIENT, path]
        with subprocess.Popen(command, env=environment) as client:
            Server(flow.Flow, accept_from(listener, client), Flow()).serve()
        assert client.returncode == 0
        # The trace has the one-way message, the request and the reply, all without arrows.
        assert flows.stats() == {"peer not found": 3}
    points, arrows = read(recorded.trace)
    assert [point[:2] for point in points] == [
        ("receive", "one-way"), ("receive", "request"), ("send", "reply"),
    ]  # fmt: skip
    assert arrows == []
