"""A process that traces its own conversation with the tracing service comes to rest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import stretto
from stretto.client.tracing import tracing
from tests.support.recorded_events import END, Event, config, events_of
from tests.support.service_process import ServiceProcess
from tests.support.traced_greeter import flows_installed

pytestmark = pytest.mark.xdist_group("system session")  # one service for all


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    addresses = (str(tmp_path / "producer.sock"), str(tmp_path / "consumer.sock"))
    monkeypatch.setenv("PERFETTO_PRODUCER_SOCK_NAME", addresses[0])
    monkeypatch.setenv("PERFETTO_CONSUMER_SOCK_NAME", addresses[1])
    process = ServiceProcess(*addresses)
    yield
    backend = tracing.connected("system")
    if backend is not None:
        backend.close()  # type: ignore[attr-defined]
        tracing.forget("system")
    process.close()


def record(flushes: int) -> list[Event]:
    """What the process says to the service in a session that is flushed so often."""
    with stretto.TracingSession(config(enabled=["stretto.ipc"]), backend="system") as session:
        for _ in range(flushes):
            session.flush()
        session.stop()
        return [event for event in events_of(session.read()) if event.category == "stretto.ipc"]


@pytest.mark.usefixtures("service")
def test_own_ports_are_traced_and_make_no_more_of_themselves() -> None:
    with flows_installed(own_ports=True):
        record(1)  # connects
        few, many = record(2), record(40)
    methods = {event.args["method"] for event in many if event.kind != END}
    assert {"GetAsyncCommand", "Flush"} & methods
    assert not {"CommitData", "ReadBuffers"} & methods
    # What tracing itself costs: a few events each flush, never more with each event.
    assert 0 < len(few) < 40
    assert len(many) < 40 * 8


@pytest.mark.usefixtures("service")
def test_own_ports_are_silent_by_default() -> None:
    with flows_installed():
        record(1)
        assert record(3) == []
