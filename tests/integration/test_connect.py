"""Programs that are always on: a service in another process records them as it likes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.call_slices import session_config, track_events
from tests.support.live_program import LiveProgram
from tests.support.service_process import ServiceProcess

CONNECT = """
import sys, threading, time
import stretto
app = stretto.Category("app")
connection = stretto.connect()
"""


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    address = str(tmp_path / "producer.sock")
    monkeypatch.setenv("PERFETTO_PRODUCER_SOCK_NAME", address)
    return address


def names(trace: bytes) -> list[str]:
    return [event.name for event in track_events(trace) if event.name]


class TestConnection:
    def test_a_service_that_is_there(self, address: str) -> None:
        with ServiceProcess(address) as service, LiveProgram(CONNECT) as program:
            (producer,) = service.wait_for_producers(1)
            assert producer["pid"] == program.process.pid
            assert producer["sources"] == ["track_event"]
            program.wait_for("connection.connected")
            assert program.run("connection.problem") == ""

    def test_a_service_that_comes_later(self, address: str) -> None:
        with LiveProgram(CONNECT) as program:
            program.wait_for("connection.problem")
            assert "No such file" in program.run("connection.problem")
            assert not program.run("connection.connected")
            with ServiceProcess(address) as service:
                service.wait_for_producers(1)
                program.wait_for("connection.connected")
            assert program.run("stretto.connect() is connection")

    def test_a_service_that_is_killed_in_a_session_and_comes_back(self, address: str) -> None:
        with LiveProgram(CONNECT) as program:
            for _ in range(3):
                service = ServiceProcess(address)
                service.wait_for_producers(1)
                service.start("one", session_config("app", "python.functions"))
                program.wait_for("app.enabled")
                program.run("app.instant('x')")
                service.kill()
                program.wait_for("not app.enabled and not connection.connected")
            with ServiceProcess(address) as service:
                service.wait_for_producers(1)
                service.start("one", session_config("app"))
                program.wait_for("app.enabled")
                program.run("app.instant('after')")
                assert names(service.stop("one")) == ["after"]

    def test_a_session_that_runs_already(self, address: str) -> None:
        with ServiceProcess(address) as service:
            service.start("one", session_config("app"))
            with LiveProgram(CONNECT) as program:
                program.wait_for("app.enabled")
                program.run("app.instant('first')")
                assert names(service.stop("one")) == ["first"]

    @pytest.mark.parametrize("how", ["stretto.disconnect()", "connection.disconnect()"])
    def test_disconnect(self, address: str, how: str) -> None:
        with ServiceProcess(address) as service, LiveProgram(CONNECT) as program:
            service.wait_for_producers(1)
            service.start("one", session_config("app"))
            program.wait_for("app.enabled")
            program.run("app.instant('x')")
            program.run(how)
            assert not program.run("app.enabled")
            service.wait_for_producers(0)
            assert program.run("len(__import__('os').listdir('/proc/self/task'))") == 1
            program.run(how)
            assert names(service.stop("one")) == ["x"]
            program.run("connection = stretto.connect()")
            service.wait_for_producers(1)
            assert program.finish() == ""
