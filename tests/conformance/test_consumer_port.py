"""Perfetto's consumer works with Stretto's service, and Stretto's with Perfetto's (v48.1)."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import pytest

import stretto
from stretto.base.selector_task_runner import SelectorTaskRunner
from stretto.client.tracing import tracing
from stretto.ports.consumer_ipc_client import ConsumerIPCClient
from stretto.protos.config import DataSourceConfig, TraceConfig
from stretto.protos.ipc import ObservableEvents
from stretto.protos.trace import TraceStats
from stretto.testing.mock_consumer import MockConsumer
from tests.support.live_program import LiveProgram
from tests.support.oracle import FOLDER, Oracle
from tests.support.reference_service import ReferenceService, missing
from tests.support.service_process import ServiceProcess

pytestmark = [
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
    pytest.mark.xdist_group("reference"),
]

TIMEOUT_S = 60
REGIONS = "select name, count(*) from slice where name like 'region%' group by 1 order by 1"
INSTANTS = "select count(*) from slice where name = 'inst'"
NUMBERS = """
select cast(int_value as int) as n, count(*) from slice join args using (arg_set_id)
where slice.name = 'e' and args.key = 'debug.n' group by 1 having count(*) != {expected}
"""
COUNT = "select count(*) from slice where name = 'e'"

CPP_PRODUCER = """
import sys
from perfnetto import _perfnetto as p
p.init(use_system_backend=True)
print("ready", flush=True)
for line in sys.stdin:
    for i in range(int(line)):
        p.start_region("region%d" % (i % 3)); p.instant("inst"); p.end_region()
    print("done", flush=True)
"""

CPP_CONSUMER = """
import sys, time
from perfnetto import _perfnetto as p
p.init(use_system_backend=True)
time.sleep(0.5)  # sleep: perfnetto connects meanwhile, and tells nobody
p.start(all_threads=False, size_kb=32768, output_path=None)
print("started", flush=True)
sys.stdin.readline()
open(sys.argv[1], "wb").write(p.stop(read_data=True))
"""

PROGRAM = """
import os, threading
import stretto
app = stretto.Category("app")
connection = stretto.connect()

def write(count):
    for number in range(count):
        app.instant("e", n=number)

def write_in_threads(threads, count):
    threads = [threading.Thread(target=write, args=(count,)) for _ in range(threads)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
"""


@pytest.fixture
def addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, Path]]:
    """Paths of the service's sockets, also set in the environment of all processes of a test."""
    producers, consumers = tmp_path / "producer.sock", tmp_path / "consumer.sock"
    monkeypatch.setenv("PERFETTO_PRODUCER_SOCK_NAME", str(producers))
    monkeypatch.setenv("PERFETTO_CONSUMER_SOCK_NAME", str(consumers))
    yield producers, consumers
    backend = tracing.connected("system")
    if backend is not None:
        backend.close()  # type: ignore[attr-defined]
        tracing.forget("system")


def config(size_kb: int = 32 << 10) -> TraceConfig:
    source = TraceConfig.DataSource(config=DataSourceConfig(name="track_event"))
    buffer = TraceConfig.BufferConfig(size_kb=size_kb)
    return TraceConfig(buffers=[buffer], data_sources=[source])


class LineProcess:
    """A program that prints one line for each line of its input."""

    def __init__(self, program: str, *arguments: object) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def read_line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def write_line(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        try:
            self.process.wait(TIMEOUT_S)
        finally:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()


class TestPerfettoConsumer:
    """Tests in which the C++ SDK starts, stops and reads sessions of Stretto's service."""

    @pytest.fixture
    def service(self, addresses: tuple[Path, Path]) -> Iterator[ServiceProcess]:
        with ServiceProcess(*addresses) as service:
            yield service

    def test_events_of_the_consumer_process_arrive_complete(
        self, service: ServiceProcess, tmp_path: Path, oracle: Callable[[bytes], Oracle]
    ) -> None:
        out = tmp_path / "out.pftrace"
        command = [sys.executable, str(FOLDER / "reference_client.py"), str(out)]
        subprocess.run(command, check=True, timeout=TIMEOUT_S, capture_output=True)
        judge = oracle(out.read_bytes())
        assert judge.query(REGIONS) == [("region0", 34), ("region1", 33), ("region2", 33)]
        assert judge.query(INSTANTS) == [(100,)]
        assert judge.errors() == []

    def test_megabytes_of_another_producer_are_read_completely(
        self, service: ServiceProcess, tmp_path: Path, oracle: Callable[[bytes], Oracle]
    ) -> None:
        out = tmp_path / "out.pftrace"
        with LiveProgram(PROGRAM) as program:
            with LineProcess(CPP_CONSUMER, out) as consumer:
                assert consumer.read_line() == "started"
                program.wait_for("app.enabled")
                program.run("write_in_threads(4, 25_000)")
                consumer.write_line("stop")
            assert consumer.process.returncode == 0
        judge = oracle(out.read_bytes())
        assert out.stat().st_size > 2_000_000
        assert judge.query(COUNT) == [(100_000,)]
        assert judge.query(NUMBERS.format(expected=4)) == []
        assert judge.errors() == []


class TestPerfettoService:
    """Tests in which Stretto's consumer uses the C++ service."""

    @pytest.fixture
    def service(self, addresses: tuple[Path, Path]) -> Iterator[ReferenceService]:
        with ReferenceService(*addresses) as service:
            yield service

    def test_session_is_cloned_by_name(self, service: ReferenceService, tmp_path: Path) -> None:
        """Perfetto v48.1 clones sessions only by id, so Stretto's command looks up the id."""
        made = config()
        made.unique_session_name = "mine"
        out = tmp_path / "copy"
        command = [sys.executable, "-m", "stretto", "trace", "--clone-by-name", "mine", "-o", out]
        with stretto.TracingSession(made, backend="system"):
            subprocess.run(command, check=True, timeout=TIMEOUT_S, capture_output=True)
        assert out.stat().st_size > 0

    def test_events_of_the_cpp_producer_arrive_complete(
        self, service: ReferenceService, oracle: Callable[[bytes], Oracle]
    ) -> None:
        with LineProcess(CPP_PRODUCER) as producer:
            assert producer.read_line() == "ready"
            with stretto.TracingSession(config(), backend="system") as session:
                wait_for_producers(session, 2)
                for _ in range(
                    8
                ):  # 500 events per flush: about 5000 fit into the producer's memory
                    producer.write_line("500")
                    assert producer.read_line() == "done"
                    assert session.flush()
                session.stop()
                trace = session.read()
        judge = oracle(trace)
        counts = Counter(dict(judge.query(REGIONS)))
        assert counts == {"region0": 8 * 167, "region1": 8 * 167, "region2": 8 * 166}
        assert judge.query(INSTANTS) == [(4000,)]
        assert judge.errors() == []

    @pytest.mark.parametrize("end", ["goes on", "exits", "is killed"])
    def test_events_of_a_stretto_producer_arrive_complete(
        self, service: ReferenceService, end: str, oracle: Callable[[bytes], Oracle]
    ) -> None:
        with (
            LiveProgram(PROGRAM) as program,
            stretto.TracingSession(config(), backend="system") as session,
        ):
            program.wait_for("app.enabled")
            program.run("write_in_threads(4, 5_000)")
            if end == "exits":
                program.finish()
            elif end == "is killed":
                program.kill()
            if end != "goes on":
                wait_for_producers(session, 1)
            session.stop()
            trace = session.read()
            stats = session.stats()
        judge = oracle(trace)
        assert judge.query(COUNT) == [(20_000,)]
        assert judge.query(NUMBERS.format(expected=4)) == []
        assert judge.errors() == []
        (buffer,) = stats.buffer_stats
        assert (buffer.abi_violations, buffer.chunks_overwritten, stats.invalid_packets) == (
            0,
            0,
            0,
        )

    def test_sessions_work_again_after_the_service_was_killed(
        self, addresses: tuple[Path, Path], oracle: Callable[[bytes], Oracle]
    ) -> None:
        with LiveProgram(PROGRAM) as program:
            for _ in range(2):
                with ReferenceService(*addresses):
                    program.wait_for("connection.connected")
                    with stretto.TracingSession(config(), backend="system") as session:
                        program.wait_for("app.enabled")
                        program.run("write(3000)")
                        session.stop()
                        assert oracle(session.read()).query(COUNT) == [(3000,)]
                program.wait_for("not connection.connected and not app.enabled")


def wait_for_producers(session: stretto.TracingSession, count: int) -> None:
    """Wait until the service has this number of producers."""
    for _ in range(TIMEOUT_S * 100):
        if session.stats().producers_connected == count:
            return
        session.flush()
    raise AssertionError(f"there are never {count} producers")


class World:
    """Creates consumers that are connected to Perfetto's service."""

    def __init__(self, address: Path) -> None:
        self.address = str(address)
        self.runner = SelectorTaskRunner()
        self.consumers: list[MockConsumer] = []

    def connect_consumer(self, consumer: Any, uid: int) -> ConsumerIPCClient:
        """Connect a consumer to Perfetto's service. MockConsumer calls this method."""
        return ConsumerIPCClient.connect(self.address, consumer, self.runner)

    def consumer(self) -> MockConsumer:
        self.consumers.append(MockConsumer(self))  # type: ignore[arg-type]
        return self.consumers[-1]

    def until(self, condition: Callable[[], object]) -> None:
        assert self.runner.run_until(lambda: bool(condition()), TIMEOUT_S * 1000)

    def answer(self, ask: Callable[[Callable[[Any], None]], object]) -> Any:
        answers: list[Any] = []
        ask(answers.append)
        self.until(lambda: answers)
        return answers[0]

    def close(self) -> None:
        for consumer in self.consumers:
            consumer.endpoint.disconnect()
        self.runner.close()


class TestConsumerPortMethods:
    """Tests that call each method of the consumer port of the C++ service."""

    @pytest.fixture
    def world(self, addresses: tuple[Path, Path]) -> Iterator[World]:
        with ReferenceService(*addresses):
            world = World(addresses[1])
            yield world
            world.close()

    def test_service_answers_queries_of_its_state(self, world: World) -> None:
        endpoint = world.consumer().endpoint
        told = world.answer(endpoint.query_capabilities)
        assert told.has_query_capabilities
        assert told.has_trace_config_output_path
        state = world.answer(endpoint.query_service_state)
        assert "Perfetto" in state.tracing_service_version
        assert state.num_sessions == 0
        assert world.answer(endpoint.get_trace_stats) is None

    def test_session_is_changed_started_flushed_and_read(self, world: World) -> None:
        consumer = world.consumer()
        consumer.observe(ObservableEvents.TYPE_ALL_DATA_SOURCES_STARTED)
        made = config(1024)
        made.deferred_start = True
        made.unique_session_name = "mine"
        consumer.enable(made)
        consumer.endpoint.change_trace_config(made.encode())
        consumer.endpoint.start_tracing()
        world.until(lambda: consumer.events)
        assert consumer.events[0].all_data_sources_started
        consumer.flush(5000)
        world.until(lambda: consumer.flushes)
        assert consumer.flushes == [True]
        stats = TraceStats.decode(world.answer(consumer.endpoint.get_trace_stats))
        assert stats.tracing_sessions == 1
        state = world.answer(world.consumer().endpoint.query_service_state)
        assert [each.unique_session_name for each in state.tracing_sessions] == ["mine"]
        consumer.endpoint.disable_tracing()
        world.until(lambda: consumer.disabled)
        assert consumer.disabled == [""]
        consumer.endpoint.read_buffers()
        world.until(lambda: consumer.reads and not consumer.reads[-1][1])
        assert any(packet.has("trace_config") for packet in consumer.packets())
        consumer.endpoint.free_buffers()
        world.until(lambda: self.sessions(world) == 0)

    def sessions(self, world: World) -> int:
        state = world.answer(world.consumers[0].endpoint.query_service_state)
        count: int = state.num_sessions
        return count

    def test_config_refused_by_the_service_is_reported(self, world: World) -> None:
        consumer = world.consumer()
        source = TraceConfig.DataSource(config=DataSourceConfig(name="x", target_buffer=3))
        consumer.enable(TraceConfig(data_sources=[source]))
        world.until(lambda: consumer.disabled)
        assert consumer.disabled[0]

    def test_service_writes_into_a_file(self, world: World, tmp_path: Path) -> None:
        consumer = world.consumer()
        made = config(1024)
        made.write_into_file = True
        made.duration_ms = 50
        with (tmp_path / "trace").open("wb") as file:
            consumer.enable(made, file.fileno())
            world.until(lambda: consumer.disabled)
        assert consumer.disabled == [""]
        assert (tmp_path / "trace").stat().st_size > 0

    def test_detached_session_can_be_attached(self, world: World) -> None:
        consumer = world.consumer()
        consumer.enable(config(1024))
        assert world.answer(lambda done: consumer.endpoint.detach("key", done)) is True
        consumer.endpoint.disconnect()
        heir = world.consumer()
        assert world.answer(lambda done: heir.endpoint.attach("other", done)) is None
        found = world.answer(lambda done: heir.endpoint.attach("key", done))
        assert TraceConfig.decode(found).buffers[0].size_kb == 1024
        heir.endpoint.disable_tracing()
        world.until(lambda: heir.disabled)

    def test_session_is_cloned_by_id(self, world: World) -> None:
        consumer = world.consumer()
        made = config(1024)
        made.unique_session_name = "cloned"
        consumer.enable(made)
        world.answer(consumer.endpoint.query_capabilities)
        cloner, other = world.consumer(), world.consumer()
        state = world.answer(cloner.endpoint.query_service_state)
        cloner.clone(session_id=state.tracing_sessions[0].id)
        other.clone(session_id=99)
        world.until(lambda: cloner.clones and other.clones)
        assert cloner.clones[0].success
        assert not other.clones[0].success
        cloner.endpoint.read_buffers()
        world.until(lambda: cloner.reads and not cloner.reads[-1][1])
        assert cloner.packets()
