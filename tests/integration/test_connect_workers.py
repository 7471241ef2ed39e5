"""Programs with `stretto.connect()` that fork: each process is a producer of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from stretto.testing.decoded_packets import decode_packets
from tests.support.call_slices import nest, session_config, track_events
from tests.support.live_program import LiveProgram
from tests.support.polling import wait_until
from tests.support.service_process import ServiceProcess

pytestmark = pytest.mark.thorough

FORKS = """
import os, time
import stretto
app = stretto.Category("app")
stretto.connect()

def wait():
    deadline = time.monotonic() + 60
    while not app.enabled and time.monotonic() < deadline:
        time.sleep(0.001)  # sleep: polls in the recorded program

def child(depth=0):
    wait()
    app.instant(f"child {depth}")
    if depth < 2:
        fork(depth + 1)

def fork(depth=0):
    pid = os.fork()
    if pid == 0:
        child(depth)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
"""

POOL = """
import multiprocessing, sys, time
import stretto
app = stretto.Category("app")
stretto.connect()

def work(number):
    deadline = time.monotonic() + 60
    while not app.enabled and time.monotonic() < deadline:
        time.sleep(0.001)  # sleep: polls in the recorded program
    with app.slice("work"):
        pass

if __name__ == "__main__":
    work(0)
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        pool.map(work, range(20), chunksize=1)
        pool.close()
        pool.join()
"""

APPLICATION = """
import stretto
app = stretto.Category("app")
stretto.connect()

def application(environ, start_response):
    with app.slice("request"):
        start_response("200 OK", [])
        return [str(app.enabled).encode()]
"""

WORKERS = 2


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServiceProcess]:
    address = str(tmp_path / "producer.sock")
    monkeypatch.setenv("PERFETTO_PRODUCER_SOCK_NAME", address)
    with ServiceProcess(address) as service:
        yield service


def names_by_pid(trace: bytes) -> dict[int, list[str]]:
    """Return the names of the slices and instants per pid; fail if slices do not nest."""
    pids = {p.trusted_packet_sequence_id: p.trusted_pid for p in decode_packets(trace)}
    names: dict[int, list[str]] = {}
    events = track_events(trace)
    for event in events:
        if event.name:
            names.setdefault(pids[event.sequence], []).append(event.name)
    for sequence in {event.sequence for event in events}:
        nest([event for event in events if event.sequence == sequence])
    return names


def test_children_and_grandchildren_are_recorded(service: ServiceProcess) -> None:
    service.start("one", session_config("app"))
    with LiveProgram(FORKS) as program:
        program.run("wait()")
        for _ in range(3):
            program.run("fork()")
        program.run("app.instant('parent')")
        program.wait_for("len(os.listdir('/proc/self/task')) == 2")
        assert program.finish() == ""
        pid = program.process.pid
    found = names_by_pid(service.stop("one"))
    assert found.pop(pid) == ["parent"]
    assert sorted(found.values()) == [["child 0"]] * 3 + [["child 1"]] * 3 + [["child 2"]] * 3


def test_children_forked_without_a_service_connect_later(tmp_path: Path) -> None:
    address = str(tmp_path / "late.sock")
    with LiveProgram(FORKS, environment={"PERFETTO_PRODUCER_SOCK_NAME": address}) as program:
        program.run(
            "r, w = os.pipe()\npid = os.fork()\nif not pid: os.read(r, 1); child(2); os._exit(0)"
        )
        with ServiceProcess(address) as service:
            service.start("one", session_config("app"))
            pids = {producer["pid"] for producer in service.wait_for_producers(2)}
            assert program.process.pid in pids
            program.run("wait()\nos.write(w, b'x')\nos.waitpid(pid, 0)")
            found = names_by_pid(service.stop("one"))
            assert list(found.values()) == [["child 2"]]
        assert program.finish() == ""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_of_a_pool_are_recorded(
    service: ServiceProcess, tmp_path: Path, method: str
) -> None:
    script = tmp_path / "pool.py"
    script.write_text(POOL)
    service.start("one", session_config("app"))
    command = [sys.executable, "-W", "always", str(script), method]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    found = names_by_pid(service.stop("one"))
    assert 2 <= len(found) <= 1 + WORKERS
    assert sum(len(names) for names in found.values()) == 1 + 20
    assert {name for names in found.values() for name in names} == {"work"}


class Gunicorn:
    """A gunicorn server with its workers."""

    def __init__(self, folder: Path, *options: str) -> None:
        (folder / "application.py").write_text(APPLICATION)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        bind = ["-w", str(WORKERS), "-b", f"127.0.0.1:{self.port}", "--log-level", "error"]
        command = [sys.executable, "-m", "gunicorn", *bind, *options, "application"]
        self.process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)

    def get_answer(self) -> bytes:
        """Send a request; return `b"True"` if the worker that answers is recorded."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}", timeout=10) as answer:
            data: bytes = answer.read()
            return data

    def request_until_recorded(self) -> None:
        wait_until(lambda: self.get_answer() == b"True", "a recorded worker")

    def finish(self) -> str:
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.communicate(timeout=60)[1]
        finally:
            self.process.kill()


@pytest.mark.parametrize("options", [(), ("--preload",)], ids=["", "preload"])
def test_workers_of_gunicorn_are_recorded_and_replaced(
    service: ServiceProcess, tmp_path: Path, options: tuple[str, ...]
) -> None:
    server = Gunicorn(tmp_path, *options)
    try:
        count = WORKERS + len(options)  # with --preload, the master is a producer, too
        producers = service.wait_for_producers(count)
        pids = {producer["pid"] for producer in producers} - {server.process.pid}
        assert len(pids) == WORKERS
        service.start("one", session_config("app"))
        server.request_until_recorded()
        found = names_by_pid(service.stop("one"))
        assert set(found) <= pids
        assert {name for names in found.values() for name in names} == {"request"}

        killed = pids.pop()
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda: killed not in {each["pid"] for each in service.producers()})
        successors = {each["pid"] for each in service.wait_for_producers(count)}
        assert pids < successors
    finally:
        errors = server.finish()
    assert "Traceback" not in errors
    assert "Warning" not in errors
