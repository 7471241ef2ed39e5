"""The daemon's event loop, run in this process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stretto.base.errors import SessionError
from stretto.base.peer_credentials import PeerCredentials
from stretto.cli.traced import daemon as module
from stretto.cli.traced.daemon import Daemon
from stretto.cli.traced.log import Log
from stretto.cli.traced.permissions import default_permissions
from stretto.cli.traced.sockets import open_sockets
from stretto.ports.producer_identity import ProducerIdentity

LOADS = """
import sys
import stretto.cli.main, stretto.cli.traced.command, stretto.cli.traced.daemon
print(*sorted(sys.modules))
"""


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture
def daemon(tmp_path: Path, lines: list[str]):
    producers, consumers = default_permissions()
    sockets = open_sockets(
        {}, ([str(tmp_path / "p")], producers), ([str(tmp_path / "c")], consumers)
    )
    daemon = Daemon(sockets, Log(lines.append), may_consume=lambda peer: peer.uid == 1)
    yield daemon
    daemon.close()
    assert list(tmp_path.iterdir()) == []


def fail() -> None:
    raise ZeroDivisionError("of a test")


def test_failed_task_is_logged_and_other_tasks_run(daemon, lines):
    done: list[int] = []
    daemon._runner.post(lambda: done.append(1))
    daemon._runner.post(fail)
    daemon._runner.post(lambda: done.append(2))
    daemon._run_until(lambda: len(done) == 2)
    assert [line for line in lines if "a bug" in line and "ZeroDivisionError" in line]


def test_daemon_pauses_after_repeated_task_errors(daemon, lines, monkeypatch):
    pauses: list[float] = []
    monkeypatch.setattr(module.time, "sleep", pauses.append)
    for _ in range(module.MAX_ERRORS + 3):
        daemon._runner.post(fail)
    done: list[int] = []
    daemon._runner.post(lambda: done.append(1))
    daemon._run_until(lambda: bool(done))
    assert pauses == [module.ERROR_PAUSE_S] * 3


def test_refused_consumer_is_logged(daemon, lines):
    assert daemon._may_connect(PeerCredentials(7, 1, 1))
    assert not daemon._may_connect(PeerCredentials(7, 2, 2))
    assert "refused a consumer (pid 7, uid 2)" in lines[-1]


def test_refused_producer_is_logged(daemon, lines):
    daemon._service.registry.lockdown = True
    with pytest.raises(SessionError):
        daemon._connect_producer(
            None, ProducerIdentity("x" * 1000, uid=os.getuid() + 1, pid=9), shm_fd=-1
        )
    assert "refused the producer 'xxx" in lines[-1]
    assert "locked down" in lines[-1]
    assert len(lines[-1]) < 300


def test_connections_are_refused_after_the_end_signal(daemon):
    daemon._on_signal()
    assert not daemon._may_connect(PeerCredentials(7, 1, 1))


def test_daemon_does_not_load_slowly_imported_modules():
    done = subprocess.run(
        [sys.executable, "-c", LOADS], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = set(done.stdout.split())
    heavy = {"asyncio", "dataclasses", "google.protobuf", "inspect", "logging", "perfetto"}
    assert not loaded & heavy
