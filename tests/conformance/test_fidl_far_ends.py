"""FIDL flows where ends of channels are in the hands of forked children, or of another network."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stretto import flows
from stretto.fidl.transport import Listener, Server
from tests.conformance.test_fidl_flows import read
from tests.conformance.test_flows import Point, expected
from tests.support import fidl_fork
from tests.support.fidl_flow import Flow, flow
from tests.support.fidl_fork import CHILD, FORK_AT
from tests.support.oracle import missing
from tests.support.recorded import record as record_program
from tests.support.recorded_events import record
from tests.support.sources import ROOT
from tests.support.traced_greeter import flows_installed

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


LATER_EVENTS = {("event", FORK_AT), ("event", 13)}


def serial(point: Point) -> int:
    """Of a one-way message or an event, which is as long as its number says."""
    return (point[2] - 32) // 8


@pytest.mark.parametrize("who_forks", ["client", "server", "worker"])
def test_a_fork(tmp_path: Path, who_forks: str) -> None:
    run = record_program(
        tmp_path / "trace.pftrace",
        *("--no-functions", "--", fidl_fork.__file__, str(tmp_path / "sock"), who_forks),
        PYTHONPATH=":".join(sys.path),
    )
    assert run.status == 0, run.stderr
    points, arrows = read(run.trace)
    assert set(arrows) <= set(expected(points))
    assert len(set(arrows)) == len(arrows)
    told = {(out[1], serial(out)) for out, _ in arrows if out[1] in ("one-way", "event")}
    sent = {(p[1], serial(p)) for p in points if p[0] == "send" and p[1] in ("one-way", "event")}
    # What the child says is in the trace and on the wire, and has no arrow.
    theirs = {
        "client": {("one-way", CHILD + number) for number in range(3)},
        "server": {("event", CHILD)},
        "worker": set(),
    }[who_forks]
    assert {each for each in sent if each[1] >= CHILD} == theirs
    # Both have the channel then: one-way messages wait for the next call, in both directions.
    waiting = {
        "client": {("one-way", n) for n in (FORK_AT, 11, 12, 13)} | LATER_EVENTS,
        "server": {("one-way", n) for n in (11, 12, 13)} | LATER_EVENTS,
        "worker": set(),
    }[who_forks]
    assert told == sent - theirs - waiting
    assert {("one-way", 21), ("event", 23)} <= told
    assert sum(out[1] not in ("one-way", "event") for out, _ in arrows) == 9


CLIENT = """
import sys
from stretto import flows
from stretto.fidl.transport import Client, connect
from tests.support.fidl_flow import ask, flow
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
            Server(flow.Flow, listener.accept(), Flow()).serve()
        assert client.returncode == 0
        # Tell, Ask and its reply: all are there, and none has an arrow.
        assert flows.stats() == {"peer not found": 3}
    points, arrows = read(recorded.trace)
    assert [point[:2] for point in points] == [
        ("receive", "one-way"), ("receive", "request"), ("send", "reply"),
    ]  # fmt: skip
    assert arrows == []
