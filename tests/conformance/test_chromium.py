"""Stretto's service records Chromium, with seven or more producers, like Perfetto's service."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

import pytest

from tests.support.oracle import Oracle
from tests.support.reference_service import ReferenceService, missing
from tests.support.system_consumer import SystemConsumer
from tests.support.traced import Daemon, daemon_environment

CHROMIUM = shutil.which("chromium") or ""
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--enable-features=EnablePerfettoSystemTracing",
    "--remote-debugging-port=0",
]
PAGE = (
    "data:text/html,<script>setInterval(()=>"
    "{let x=0;for(let i=0;i<1e5;i++)x+=i;document.title=x},10)</script>"
)
CONFIG = """
buffers { size_kb: 65536 }
data_sources { config { name: "track_event" } }
data_sources { config { name: "org.chromium.trace_metadata" } }
duration_ms: 3000
"""
SETTLED_MS = 1500
"""So long no process has come: they all are there."""
RUNS = 3
MORE_RUNS = 2
"""If the machine was busy with something else, and nothing can be said after the first."""
ENOUGH = 0.8

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.once,
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
    pytest.mark.skipif(not CHROMIUM, reason="no chromium: `tools/chromium` installs Debian's"),
    pytest.mark.xdist_group("reference"),
]


class Recorded(NamedTuple):
    """Counts and errors of one recorded session."""

    slices: int
    processes: int
    errors: set[str]


@contextmanager
def chromium(folder: Path, environment: dict[str, str]) -> Iterator[None]:
    """Run Chromium, which opens the test page, during a `with` block."""
    process = subprocess.Popen(
        [CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'profile'}", PAGE],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for_all(consumer: SystemConsumer) -> None:
    """Wait until all processes of the browser have connected to the service."""
    known, since = 0, time.monotonic()
    while known < 2 or time.monotonic() - since < SETTLED_MS / 1000:
        sources = consumer.state().data_sources
        found = sum(each.ds_descriptor.name == "track_event" for each in sources)
        if found != known:
            known, since = found, time.monotonic()
        consumer.process_events(50)


def session(folder: Path, environment: dict[str, str]) -> bytes:
    """Record some seconds of the browser with `stretto trace`."""
    consumer = SystemConsumer(environment["PERFETTO_CONSUMER_SOCK_NAME"])
    try:
        wait_for_all(consumer)
    finally:
        consumer.close()
    trace = folder / "trace.pftrace"
    command = [sys.executable, "-m", "stretto", "trace", "-c", "-", "--txt", "-o", str(trace)]
    done = subprocess.run(
        command, input=CONFIG, env=environment, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return trace.read_bytes()


def record(folder: Path, *, reference: bool) -> Recorded:
    """Record a session on Perfetto's service if `reference` is set, else on Stretto's."""
    folder.mkdir()
    environment = daemon_environment(folder)
    if reference:
        sockets = folder / "producer", folder / "consumer"
        with ReferenceService(*sockets), chromium(folder, environment):
            trace = session(folder, environment)
    else:
        daemon = Daemon(folder)
        try:
            with chromium(folder, environment):
                trace = session(folder, environment)
        finally:
            daemon.close()
    loaded = Oracle(trace)
    slices, processes = (
        loaded.query(sql)[0][0]
        for sql in (
            "select count(*) from slice",
            "select count(distinct pid) from process where pid > 0",
        )
    )
    return Recorded(slices, processes, {name for name, _, _ in loaded.errors()})


def test_stretto_service_records_as_much_as_perfetto(tmp_path: Path, oracle: object) -> None:
    ours: list[Recorded] = []
    theirs: list[Recorded] = []

    def run(times: int) -> float:
        for _ in range(times):
            theirs.append(record(tmp_path / f"theirs-{len(theirs)}", reference=True))
            ours.append(record(tmp_path / f"ours-{len(ours)}", reference=False))
        return median(r.slices for r in ours) / median(r.slices for r in theirs)

    ratio = run(RUNS)
    if ratio < ENOUGH:
        ratio = run(MORE_RUNS)
    print(f"slices: ours {[r.slices for r in ours]}, Perfetto's {[r.slices for r in theirs]}")
    assert ratio >= ENOUGH
    assert median(r.processes for r in ours) == median(r.processes for r in theirs)
    assert set.union(*(r.errors for r in ours)) <= set.union(*(r.errors for r in theirs))
