"""Programs that called `stretto.connect()` are recorded by a service in another process."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from stretto.protos.config import DataSourceConfig, TraceConfig
from stretto.testing.decoded_packets import decode_packets
from tests.support.call_slices import OPEN, Call, Event, nest, session_config, track_events
from tests.support.live_program import LiveProgram
from tests.support.polling import wait_until
from tests.support.service_process import ServiceProcess

CONNECT = """
import sys, threading, time
import stretto
app = stretto.Category("app")
connection = stretto.connect()
"""

SWITCHES = r"""
import glob, os, re

def switches():
    '''How often the threads but the main one have waited.'''
    others = [t for t in glob.glob("/proc/self/task/*") if not t.endswith(f"/{os.getpid()}")]
    pattern = r"\nvoluntary_ctxt_switches:\s*(\d+)"
    return [re.search(pattern, open(f"{t}/status").read())[1] for t in others]

def settled():
    before = switches()
    time.sleep(0.05)  # sleep: the program must be idle for this time
    return switches() == before
"""


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    address = str(tmp_path / "producer.sock")
    monkeypatch.setenv("PERFETTO_PRODUCER_SOCK_NAME", address)
    return address


def names(trace: bytes) -> list[str]:
    return [event.name for event in track_events(trace) if event.name]


class TestConnectedProgram:
    def test_program_connects_to_a_running_service(self, address: str) -> None:
        with ServiceProcess(address) as service, LiveProgram(CONNECT) as program:
            (producer,) = service.wait_for_producers(1)
            assert producer["pid"] == program.process.pid
            sources = {"track_event", "python.heap", "python.object_graph"}
            # They are registered one after the other.
            wait_until(lambda: set(service.producers()[0]["sources"]) == sources)
            program.wait_for("connection.connected")
            assert program.run("connection.problem") == ""

    def test_program_connects_when_the_service_starts_later(self, address: str) -> None:
        with LiveProgram(CONNECT) as program:
            program.wait_for("connection.problem")
            assert "No such file" in program.run("connection.problem")
            assert not program.run("connection.connected")
            with ServiceProcess(address) as service:
                service.wait_for_producers(1)
                program.wait_for("connection.connected")
            assert program.run("stretto.connect() is connection")

    def test_program_reconnects_after_the_service_was_killed(self, address: str) -> None:
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

    def test_program_that_connects_during_a_session_is_recorded(self, address: str) -> None:
        with ServiceProcess(address) as service:
            service.start("one", session_config("app"))
            with LiveProgram(CONNECT) as program:
                program.wait_for("app.enabled")
                program.run("app.instant('first')")
                assert names(service.stop("one")) == ["first"]

    @pytest.mark.parametrize("how", ["stretto.disconnect()", "connection.disconnect()"])
    def test_disconnect_ends_tracing_and_the_thread_of_the_connection(
        self, address: str, how: str
    ) -> None:
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

    def test_program_that_closes_its_descriptors_connects_again(self, address: str) -> None:
        with ServiceProcess(address) as service, LiveProgram(CONNECT) as program:
            service.wait_for_producers(1)
            program.wait_for("connection.connected")
            program.run("import os; os.closerange(3, 2000)")
            # A fork stops the connection's thread, whose wakeup descriptors are closed.
            program.run("pid = os.fork()\nif pid == 0: os._exit(0)\nos.waitpid(pid, 0)")
            service.start("one", session_config("app"))
            program.wait_for("app.enabled")
            program.run("app.instant('x')")
            assert names(service.stop("one")) == ["x"]
            assert program.finish() == ""

    def test_idle_connection_causes_no_context_switches(self, address: str) -> None:
        with ServiceProcess(address) as service, LiveProgram(CONNECT + SWITCHES) as program:
            service.wait_for_producers(1)
            program.wait_for("connection.connected")
            program.wait_for("len(switches()) == 1 and settled()")
            before = program.run("switches()")
            time.sleep(0.5)  # sleep: the program must be idle for this time
            assert program.run("switches()") == before

    def test_program_retries_a_service_that_closes_every_connection(self, address: str) -> None:
        with socket.socket(socket.AF_UNIX) as listener, LiveProgram(CONNECT) as program:
            listener.bind(address)
            listener.listen()
            for _ in range(3):
                end, _ = listener.accept()
                end.sendall(b"\xff" * 64)
                end.close()
            program.wait_for("connection.problem")
            assert "disconnected" in program.run("connection.problem")
            assert program.finish() == ""


LATE = """
from stretto.protos.trace import TestEvent, TracePacket

def packet(text):
    return TracePacket(for_testing=TestEvent(str=text))

class Late(stretto.DataSource):
    name = "test.late"
    def on_start(self): self.write(packet("start"))
    def on_stop(self): self.write(packet("stop"))

Late.register()
"""

ODD = """
import os, warnings

class Odd(stretto.DataSource):
    name = "test.odd"
    def on_start(self):
        warnings.filterwarnings("ignore", "This process .* is multi-threaded")
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
        stretto.disconnect()

Odd.register()
"""


def source_config(name: str) -> TraceConfig:
    source = TraceConfig.DataSource(config=DataSourceConfig(name=name))
    return TraceConfig(buffers=[TraceConfig.BufferConfig(size_kb=64)], data_sources=[source])


class TestDataSourcesOfConnectedPrograms:
    def test_data_source_registered_after_connecting_is_started(self, address: str) -> None:
        with ServiceProcess(address) as service, LiveProgram(CONNECT) as program:
            service.wait_for_producers(1)
            program.wait_for("connection.connected")
            program.run(LATE)
            wait_until(lambda: "test.late" in service.producers()[0]["sources"])
            service.start("one", source_config("test.late"))
            program.wait_for("Late.instances()")
            packets = decode_packets(service.stop("one"))
            texts = [packet.for_testing.str for packet in packets if packet.has("for_testing")]
            assert texts == ["start", "stop"]
            assert program.finish() == ""

    def test_categories_created_after_connecting_are_enabled(self, address: str) -> None:
        with ServiceProcess(address) as service, LiveProgram(CONNECT) as program:
            service.wait_for_producers(1)
            program.wait_for("connection.connected")
            program.run("late = [stretto.Category(f'late.{n}') for n in range(500)]")
            wait_until(lambda: service.categories() >= 500)
            service.start("one", session_config("late.499"))
            program.wait_for("late[-1].enabled and not late[-2].enabled")

    def test_data_source_can_fork_and_disconnect_in_its_callback(self, address: str) -> None:
        with ServiceProcess(address) as service, LiveProgram(CONNECT + ODD) as program:
            service.wait_for_producers(1)
            service.start("one", source_config("test.odd"))
            service.wait_for_producers(0)
            program.wait_for("not connection.connected")
            service.stop("one")  # a session that still runs would call the callback
            program.run("connection = stretto.connect()")
            service.wait_for_producers(1)
            assert program.finish() == ""


WORK = (
    CONNECT
    + """
go, done = threading.Event(), threading.Event()

def leaf():
    pass

def inner():
    leaf()

def blocked():
    inner()
    go.wait()
    inner()

def spin():
    while not done.is_set():
        inner()
        for _ in range(10_000):  # busy, but few events
            pass

def start(function):
    thread = threading.Thread(target=function, name=function.__name__)
    thread.start()
    return thread

def hooks():
    '''What the interpreter is asked to tell, and whom.'''
    if sys.version_info < (3, 12):
        return [sys.getprofile()] if sys.getprofile() else []
    return [m.get_tool(id) for m in [sys.monitoring] for id in (3, 4) if m.get_tool(id)]

def events():
    if sys.version_info < (3, 12):
        return 0
    return sum(sys.monitoring.get_events(id) for id in (3, 4) if sys.monitoring.get_tool(id))
"""
)

# The exceptions and generators of this program enter and leave frames in an unusual order.
MIXED = """
def numbers(count):
    for number in range(count):
        leaf()
        yield number

def recursive(depth):
    if depth == 0:
        raise KeyError
    try:
        recursive(depth - 1)
    finally:
        leaf()

def mixed():
    for _ in numbers(2):
        inner()
    try:
        recursive(3)
    except KeyError:
        pass

def mix():
    while not done.is_set():
        mixed()
        for _ in range(200_000):
            pass
"""

INNER = ("inner", [("leaf", [])])


def recursive(depth: int) -> Call:
    if depth == 0:
        return ("recursive", [])
    return ("recursive", [recursive(depth - 1), ("leaf", [])])


STEP = ("numbers", [("leaf", [])])
MIXED_CALL = ("mixed", [STEP, INNER, STEP, INNER, ("numbers", []), recursive(3)])


@pytest.fixture
def service(address: str) -> Iterator[ServiceProcess]:
    with ServiceProcess(address) as service:
        yield service


@pytest.fixture
def program(service: ServiceProcess) -> Iterator[LiveProgram]:
    with LiveProgram(WORK) as program:
        service.wait_for_producers(1)
        yield program
        assert program.finish() == ""


def calls_by_thread(trace: bytes) -> list[list[Call]]:
    """Return the slices of each thread; fail if an END has no BEGIN."""
    by_sequence: dict[int, list[Event]] = {}
    for event in track_events(trace):
        by_sequence.setdefault(event.sequence, []).append(event)
    return [nest(events) for events in by_sequence.values()]


def flat(calls: list[Call]) -> Iterator[str]:
    for name, inside in calls:
        yield name
        yield from flat([call for call in inside if call[0] != OPEN])


def holds(calls: list[Call], wanted: Call) -> bool:
    return any(call == wanted or holds(call[1], wanted) for call in calls)


class TestFunctionTracing:
    """`python.functions` can be switched on and off in running threads."""

    def record(self, service: ServiceProcess, program: LiveProgram) -> None:
        service.start("functions", session_config("python.functions"))
        program.wait_for("hooks()")

    def test_thread_blocked_in_c_is_traced_when_it_returns(
        self, service: ServiceProcess, program: LiveProgram
    ) -> None:
        program.run("thread = start(blocked)")
        self.record(service, program)
        program.run("go.set(); thread.join()")
        (calls,) = [each for each in calls_by_thread(service.stop("functions")) if INNER in each]
        # Neither BEGIN nor END of a call that began before the session is recorded.
        assert calls.count(INNER) == 1
        assert "blocked" not in flat(calls)

    def test_running_thread_is_traced_while_sessions_last(
        self, service: ServiceProcess, program: LiveProgram
    ) -> None:
        program.run("thread = start(spin)")
        for _ in range(3):
            self.record(service, program)
            program.run("time.sleep(0.05)")  # sleep: the session records calls in this time
            trace = service.stop("functions")
            program.wait_for("not hooks()")
            threads = [each for each in calls_by_thread(trace) if INNER in each]
            assert len(threads) == 1
            # One call may be cut off at the start of the session, and one at the end.
            whole = [call for call in threads[0] if call == INNER]
            assert len(whole) > 3
            assert len([call for call in threads[0] if call[0] == "inner"]) <= len(whole) + 2
            assert "spin" not in flat(threads[0])
        program.run("done.set(); thread.join()")

    def test_calls_of_every_kind_nest_whenever_tracing_starts(
        self, service: ServiceProcess, program: LiveProgram
    ) -> None:
        program.run(MIXED)
        program.run("started = [start(mix) for _ in range(3)]")
        whole = 0
        for _ in range(5):
            self.record(service, program)
            program.run("time.sleep(0.05)")  # sleep: the session records calls in this time
            trace = service.stop("functions")
            program.wait_for("not hooks()")
            for calls in calls_by_thread(trace):
                for call in calls:
                    if call[0] == "mixed" and call[1][-1:] != [(OPEN, [])]:
                        assert call == MIXED_CALL
                        whole += 1
        program.run("done.set()\nfor thread in started: thread.join()")
        assert whole > 0

    def test_no_profiling_hook_remains_after_the_session(
        self, service: ServiceProcess, program: LiveProgram
    ) -> None:
        self.record(service, program)
        assert program.run("len(hooks())") == 1
        service.stop("functions")
        program.wait_for("not hooks()")
        assert program.run("sys.getprofile()") is None
        assert program.run("events()") == 0
        assert not program.run("stretto.Category('python.functions').enabled")

    def test_functions_are_recorded_only_in_the_session_that_names_them(
        self, service: ServiceProcess, program: LiveProgram
    ) -> None:
        service.start("plain", session_config("app"))
        program.wait_for("app.enabled")
        assert program.run("hooks()") == []
        self.record(service, program)
        program.run("thread = start(inner); thread.join(); app.instant('both')")
        functions = service.stop("functions")
        program.wait_for("not hooks()")
        program.run("inner(); app.instant('one')")
        plain = service.stop("plain")
        assert any(holds(calls, INNER) for calls in calls_by_thread(functions))
        assert names(plain) == ["both", "one"]
        assert "both" not in names(functions)

    def test_second_session_continues_after_the_first_has_ended(
        self, service: ServiceProcess, program: LiveProgram
    ) -> None:
        self.record(service, program)
        program.run("thread = start(blocked)")
        service.start("more", session_config("python.functions"))
        program.wait_for("thread.is_alive()")
        first = service.stop("functions")
        program.run("go.set(); thread.join()")
        second = service.stop("more")
        assert "blocked" in {name for calls in calls_by_thread(first) for name in flat(calls)}
        late = [list(flat(calls)) for calls in calls_by_thread(second)]
        assert any("inner" in names and "blocked" not in names for names in late)
        program.wait_for("not hooks()")


class TestBuiltInCategories:
    @pytest.mark.parametrize(
        ("category", "order", "name"),
        [
            ("python.gc", "__import__('gc').collect()", "garbage collection"),
            ("python.log", "__import__('logging').getLogger().error('oh')", "oh"),
            ("python.asyncio", "asyncio.run(task())", "task"),
        ],
    )
    def test_hooks_are_installed_only_while_their_category_is_enabled(
        self, service: ServiceProcess, program: LiveProgram, category: str, order: str, name: str
    ) -> None:
        program.run("async def task(): await asyncio.sleep(0)\nimport asyncio, gc, logging")
        program.run("logging.getLogger().addHandler(logging.NullHandler())")
        create = "asyncio.BaseEventLoop.create_task"
        hooks = f"([*gc.callbacks], logging.Logger.callHandlers, {create})"
        program.run(f"before = {hooks}")
        for _ in range(2):
            service.start("one", session_config(category))
            # The category is enabled a moment before its hooks are there.
            program.wait_for(f"{hooks} != before")
            program.run(order)
            assert name in names(service.stop("one"))
            program.wait_for(f"not stretto.Category({category!r}).enabled")
            program.run(order)
            program.wait_for(f"{hooks} == before")

    def test_running_event_loop_is_traced(
        self, service: ServiceProcess, program: LiveProgram
    ) -> None:
        program.run(
            "import asyncio\n"
            "async def step(): await asyncio.sleep(0.001)\n"  # sleep: each recorded task waits
            "async def serve():\n"
            "    while not done.is_set():\n"
            "        await asyncio.create_task(step())\n"
        )
        program.run("thread = start(lambda: asyncio.run(serve()))")
        service.start("one", session_config("python.asyncio"))
        program.wait_for("stretto.Category('python.asyncio').enabled")
        program.run("time.sleep(0.05)")  # sleep: the session records the event loop in this time
        found = names(service.stop("one"))
        assert {"create task", "step", "serve"} <= set(found)
        program.run("done.set(); thread.join()")
