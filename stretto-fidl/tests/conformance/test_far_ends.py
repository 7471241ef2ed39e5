"""FIDL flows where ends of channels are in the hands of forked children, or of another network."""

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
    """Of a one-way message or an event, which is as long as its number says."""
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
        # Once a child has used the channel nobody knows who says what.
        ("client", BEFORE, 1),
        ("later", BEFORE | AFTER, 2),
        ("server", BEFORE | {("one-way", FORK_AT)}, 1),
        # Until the parent knows that it doesn't, one-way messages wait for the next call.
        ("idle", BEFORE | AFTER, 3),
        ("worker", BEFORE | AROUND | AFTER, 3),
    ],
)
def test_a_fork(tmp_path: Path, mode: str, arrows_of: set[tuple[str, int]], calls: int) -> None:
    run = record_program(
        tmp_path / "trace.pftrace",
        *("--no-functions", "--", fidl_fork.__file__, str(tmp_path / "sock"), mode),
        PYTHONPATH=":".join(sys.path),
    )
    assert run.status == 0, run.stderr
    points, arrows = read(run.trace)
    # A call to who is silent goes right on to its reply.
    calls_of = {point[2] for point in points if point[1] == "request"}
    short = {(("send", "request", txid, 0), ("receive", "reply", txid, 0)) for txid in calls_of}
    assert set(arrows) <= set(expected(points)) | short
    assert len(set(arrows)) == len(arrows)
    told = {(out[1], serial(out)) for out, _ in arrows if out[1] in ("one-way", "event")}
    sent = {(p[1], serial(p)) for p in points if p[0] == "send" and p[1] in ("one-way", "event")}
    # What the child says is in the trace and on the wire, and has no arrow.
    theirs = {each for each in sent if each[1] >= CHILD}
    by_client = {("one-way", CHILD + number) for number in range(3)}
    spoken = {"client": by_client, "later": by_client, "server": {("event", CHILD)}}
    assert theirs == spoken.get(mode, set())
    assert sent >= BEFORE | AROUND | AFTER
    assert told == arrows_of
    # Of calls whose caller is silent the callee has its own arrow, from handler to reply.
    whole = sum(out[:2] == ("send", "reply") for out, _ in arrows)
    assert whole == calls


class TestKeysThatComeLate:
    """What names a connection is asked for when the first of its messages is traced."""

    def test_a_client_speaks_before_it_is_accepted(self, tmp_path: Path) -> None:
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

    def test_much_was_said_before_anybody_recorded(self, tmp_path: Path) -> None:
        path = str(tmp_path / "sock")
        with flows_installed(), Listener(path) as listener:
            client = Client(flow.Flow, connect(path))
            heard = threading.Semaphore(0)
            server = Server(flow.Flow, listener.accept(), Flow(lambda _size: heard.release()))
            serving = threading.Thread(target=server.serve)
            serving.start()
            for number in range(500):
                client.Tell(padding=padding(number % 7))
            for _ in range(500):
                assert heard.acquire(timeout=60)
            with record() as recorded:
                for number in range(1, 4):
                    client.Tell(padding=padding(100 + number))
                ask(client, 1)
                client.close()
                serving.join()
            assert flows.stats() == {}
        points, arrows = read_sent_too(recorded.trace)
        assert sorted(arrows) == sorted(expected(points))
        assert len(arrows) == 6

    @pytest.mark.parametrize("accepted", ["in time", "too late"])
    def test_a_client_that_is_gone_before_its_messages_are_read(
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


def read_sent_too(trace: bytes) -> tuple[list[Point], list[tuple[Point, Point]]]:
    """As `read`, of a trace that begins while messages are under way: only those with both ends."""
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
def test_a_client_in_another_network_namespace(tmp_path: Path) -> None:
    if subprocess.run(["unshare", "-n", "true"], capture_output=True, check=False).returncode:
        pytest.skip("network namespaces can't be made here")
    path = str(tmp_path / "sock")
    environment: dict[str, Any] = {**os.environ, "PYTHONPATH": ":".join([str(ROOT), *sys.path])}
    with flows_installed(), record() as recorded, Listener(path) as listener:
        command = ["unshare", "-n", sys.executable, "-c", CLIENT, path]
        with subprocess.Popen(command, env=environment) as client:
            Server(flow.Flow, accept_from(listener, client), Flow()).serve()
        assert client.returncode == 0
        # Tell, Ask and its reply: all are there, and none has an arrow.
        assert flows.stats() == {"peer not found": 3}
    points, arrows = read(recorded.trace)
    assert [point[:2] for point in points] == [
        ("receive", "one-way"), ("receive", "request"), ("send", "reply"),
    ]  # fmt: skip
    assert arrows == []
