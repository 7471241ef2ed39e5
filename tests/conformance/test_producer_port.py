"""Perfetto's service (v48.1) receives all packets of Stretto's producer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stretto.protos.config import TraceConfig
from tests.support.call_slices import session_config, track_events
from tests.support.live_program import LiveProgram
from tests.support.oracle import Oracle
from tests.support.reference_service import ReferenceService, missing
from tests.support.system_consumer import SystemConsumer

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
    pytest.mark.xdist_group("reference"),
]

THREADS = 4
EVENTS = 100_000

PROGRAM = """
import threading
import stretto
app = stretto.Category("app")
connection = stretto.connect()

def write(first, last):
    for number in range(first, last):
        app.instant("e", n=number)

def write_all(threads, events):
    each = events // threads
    running = [threading.Thread(target=write, args=(n * each, (n + 1) * each), name=f"writer {n}")
               for n in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
"""

COUNT = "select count(*) from slice where name = 'e'"
NUMBERS = """
select count(distinct int_value) from slice join args using (arg_set_id)
where slice.name = 'e' and args.key = 'debug.n'
"""
BY_THREAD = """
select thread.name, count(*) from slice join thread_track on slice.track_id = thread_track.id
join thread using (utid) where slice.name = 'e' group by 1 order by 1
"""


@pytest.fixture
def sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    producers, consumers = tmp_path / "producer.sock", tmp_path / "consumer.sock"
    monkeypatch.setenv("PERFETTO_PRODUCER_SOCK_NAME", str(producers))
    return producers, consumers


@pytest.fixture
def program(sockets: tuple[Path, Path]) -> Iterator[LiveProgram]:
    with LiveProgram(PROGRAM) as program:
        yield program
        assert program.finish() == ""


def config(**fields: object) -> TraceConfig:
    config = session_config("app")
    config.buffers[0].size_kb = 64 * 1024
    for name, value in fields.items():
        setattr(config, name, value)
    return config


class Session:
    """A tracing session of a consumer that records a program."""

    def __init__(self, program: LiveProgram, consumers: Path, config: TraceConfig) -> None:
        self.program = program
        self.consumer = SystemConsumer(str(consumers))
        self.consumer.enable(config)
        program.wait_for("app.enabled")

    def finish(self, *, flush: bool = True) -> bytes:
        """End the session; return its trace."""
        if flush:
            assert self.consumer.flush()
        self.consumer.stop()
        trace = self.consumer.read()
        assert self.consumer.error == ""
        self.program.wait_for("not app.enabled")
        self.consumer.close()
        return trace


def test_many_events_of_many_threads_arrive(
    sockets: tuple[Path, Path], program: LiveProgram, oracle: Callable[[bytes], Oracle]
) -> None:
    with ReferenceService(*sockets):
        session = Session(program, sockets[1], config())
        program.run(f"write_all({THREADS}, {EVENTS})")
        loaded = oracle(session.finish())
    assert loaded.errors() == []
    assert loaded.query(COUNT) == [(EVENTS,)]
    assert loaded.query(NUMBERS) == [(EVENTS,)]
    names = [f"writer {number}" for number in range(THREADS)]
    assert loaded.query(BY_THREAD) == [(name, EVENTS // THREADS) for name in names]


def test_events_before_the_stop_arrive_without_a_flush(
    sockets: tuple[Path, Path], program: LiveProgram
) -> None:
    with ReferenceService(*sockets):
        session = Session(program, sockets[1], config())
        program.run("write_all(4, 20_000)")
        assert len(track_events(session.finish(flush=False))) == 20_000


@pytest.mark.parametrize("page_size_kb", [4, 8, 16, 32])
def test_events_in_pages_of_all_sizes_arrive(
    sockets: tuple[Path, Path], program: LiveProgram, page_size_kb: int
) -> None:
    wish = TraceConfig.ProducerConfig(
        producer_name="python", shm_size_kb=4096, page_size_kb=page_size_kb
    )
    with ReferenceService(*sockets):
        session = Session(program, sockets[1], config(producers=[wish]))
        (producer,) = session.consumer.state().producers
        assert producer.name == wish.producer_name
        program.run("write_all(8, 20_000)")
        events = track_events(session.finish())
    assert Counter(event.name for event in events) == {"e": 20_000}


def test_producer_reconnects_after_the_service_was_killed(
    sockets: tuple[Path, Path], program: LiveProgram
) -> None:
    with ReferenceService(*sockets):
        session = Session(program, sockets[1], config())
        program.run("app.instant('lost')")
    program.wait_for("not app.enabled and not connection.connected")
    session.consumer.close()
    program.run("app.instant('nowhere')")
    with ReferenceService(*sockets):
        session = Session(program, sockets[1], config())
        program.run("write_all(4, 20_000)")
        events = track_events(session.finish())
    assert Counter(event.name for event in events) == {"e": 20_000}


def test_successive_sessions_get_their_own_events(
    sockets: tuple[Path, Path], program: LiveProgram
) -> None:
    with ReferenceService(*sockets):
        for number in range(3):
            session = Session(program, sockets[1], config())
            program.run(f"app.instant('session {number}')")
            events = track_events(session.finish())
            assert [event.name for event in events] == [f"session {number}"]


@pytest.mark.parametrize("comes", ["before", "later"])
def test_startup_events_are_adopted(
    sockets: tuple[Path, Path], oracle: Callable[[bytes], Oracle], comes: str
) -> None:
    """The session has the events that the producer wrote before the session began."""
    wanted = config()
    start = f"import stretto; startup = bytes.fromhex('{wanted.encode().hex()}')\n"
    start += "session = stretto.setup_startup_tracing(startup, timeout_ms=60_000)\n"
    with ReferenceService(*sockets):
        consumer = SystemConsumer(str(sockets[1]))
        if comes == "before":
            consumer.enable(wanted)
        with LiveProgram(start + PROGRAM + "write_all(4, 8_000)\n") as program:
            program.wait_for("connection.connected")
            if comes == "later":
                consumer.enable(wanted)
            program.wait_for("session.state == 'adopted'")
            program.run("write(8_000, 10_000)")
            assert consumer.flush()
            consumer.stop()
            loaded = oracle(consumer.read())
            consumer.close()
            assert program.finish() == ""
    assert loaded.errors() == []
    assert loaded.query(COUNT) == [(10_000,)]
    assert loaded.query(NUMBERS) == [(10_000,)]
