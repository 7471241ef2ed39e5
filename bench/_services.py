"""Context managers for services and producers, and a consumer, for bench/service.py.

with Service("stretto", folder) as service, Producers(service, 4) as producers:
    consumer = Consumer(service)
    consumer.start(config(...))
    producers.begin(25, 2)
    events = producers.end()
    trace, seconds = consumer.stop()
"""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from stretto.base.selector_task_runner import SelectorTaskRunner
from stretto.ports.consumer_ipc_client import ConsumerIPCClient
from stretto.protos.config import DataSourceConfig, TraceConfig, TrackEventConfig

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent
ORACLE = Path(os.environ.get("STRETTO_ORACLE", HERE.parent.parent / "shared" / "oracle"))
REFERENCE = ORACLE / "reference_service.py"
NEWER_DEBIAN = ORACLE / "newer_debian"
DEBIAN = HERE.parent / "build" / "newer_debian"
TIMEOUT_MS = 60_000
BUFFER_KB = 256 * 1024
DROP = 1
RING_BUFFER = 1
ALL_STARTED = 2


def missing_reference() -> str:
    """Return the reason why Perfetto's own service cannot run here; "" if it can."""
    if not REFERENCE.exists():
        return f"no {REFERENCE.name} in {ORACLE}: say in STRETTO_ORACLE where it is"
    if importlib.util.find_spec("perfnetto") is None:
        return "it comes out of the package perfnetto (CPython 3.12 or 3.13, x86-64)"
    return ""


def missing_v56() -> str:
    """Return the reason why Perfetto's native programs cannot run here; "" if they can."""
    if not NEWER_DEBIAN.exists():
        return f"no {NEWER_DEBIAN.name} in {ORACLE}: say in STRETTO_ORACLE where it is"
    if (DEBIAN / ".made").exists():
        return "" if os.geteuid() == 0 else "only root enters the newer Debian"
    made = subprocess.run(
        [NEWER_DEBIAN, "make", DEBIAN], capture_output=True, text=True, check=False
    )
    return (made.stderr.strip() or "newer_debian make failed") if made.returncode else ""


def v56_command(folder: str, program: str, *arguments: str) -> list[str]:
    """Return the command that runs a native program of Perfetto with access to `folder`."""
    return ["env", f"BIND={folder}", str(NEWER_DEBIAN), "run", str(DEBIAN), program, *arguments]


def innermost(pid: int) -> int:
    """Return the process id of the native program, which nested shells have started."""
    while children := Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        pid = int(children[0])
    return pid


class Service:
    """A tracing service in a process, with its sockets in `folder`.

    The kinds are `stretto` (ours), and Perfetto's services `reference` (in the package
    perfnetto) and `v56` (native).
    """

    def __init__(self, kind: str, folder: str) -> None:
        self.producers, self.consumers = f"{folder}/producer", f"{folder}/consumer"
        self.environment = {
            **os.environ,
            "PERFETTO_PRODUCER_SOCK_NAME": self.producers,
            "PERFETTO_CONSUMER_SOCK_NAME": self.consumers,
        }
        command = [sys.executable, "-m", "stretto", "traced"]
        if kind == "reference":
            command = [sys.executable, str(REFERENCE), self.producers, self.consumers]
        elif kind == "v56":
            command = v56_command(folder, "traced")
        self.process = subprocess.Popen(
            command,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if kind == "reference" else subprocess.STDOUT,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()  # the service prints a line when it listens
        if not line:
            raise SystemExit(f"service: {kind} did not start")

    def cpu_s(self) -> float:
        """Return the CPU time that all threads of the service have used."""
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdout is not None
        os.kill(innermost(self.process.pid), signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()


class Producers:
    """Connected processes of bench/_producer.py."""

    def __init__(self, service: Service, count: int) -> None:
        command = [sys.executable, str(HERE / "_producer.py")]
        self.processes = [
            subprocess.Popen(
                command,
                env=service.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(count)
        ]
        for process in self.processes:
            if self._line(process) != "connected":
                raise SystemExit("service: a producer did not connect")

    def begin(self, megabytes_a_second: float, seconds: float) -> None:
        """Command each producer process to write events at this rate for this time."""
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.write(f"{megabytes_a_second} {seconds}\n")
            process.stdin.flush()

    def end(self) -> int:
        """Wait until all producers have written; return the number of events."""
        return sum(int(self._line(process)) for process in self.processes)

    @staticmethod
    def _line(process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        return process.stdout.readline().strip()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                pipe.close()


def config(
    category: str, flushed: str, producers: set[str], shm_kb: int, page_kb: int
) -> TraceConfig:
    """Return the config of a track event session with the drop policy.

    Args:
        category: The category of the events.
        flushed: The name of another data source.
        producers: The names of the producers to configure.
        shm_kb: The size of the producers' shared memory, in KiB.
        page_kb: The size of the shared memory's pages, in KiB.
    """
    events = TrackEventConfig(enabled_categories=[category], disabled_categories=["*"])
    source = DataSourceConfig(
        name="track_event", track_event_config=events, buffer_exhausted_policy=DROP
    )
    return TraceConfig(
        buffers=[TraceConfig.BufferConfig(size_kb=BUFFER_KB, fill_policy=RING_BUFFER)],
        data_sources=[
            TraceConfig.DataSource(config=source),
            TraceConfig.DataSource(config=DataSourceConfig(name=flushed)),
        ],
        producers=[
            TraceConfig.ProducerConfig(producer_name=name, shm_size_kb=shm_kb, page_size_kb=page_kb)
            for name in producers
        ],
    )


class ConsumerConnection:
    """A consumer connection with one session; each request waits for its reply."""

    def __init__(self, address: str) -> None:
        self.runner = SelectorTaskRunner()
        self.connected = self.ended = self.all_read = False
        self.error = ""
        self.pieces: list[bytes] = []
        self.endpoint = ConsumerIPCClient.connect(address, self, self.runner)
        self.wait(lambda: self.connected)

    def on_connect(self) -> None:
        self.connected = True

    def on_disconnect(self) -> None:
        self.on_tracing_disabled(self.endpoint.error or "the service has closed the connection")

    def on_tracing_disabled(self, error: str) -> None:
        self.error, self.ended = error, True

    def on_trace_data(self, data: bytes, has_more: bool) -> None:
        self.pieces.append(data)
        self.all_read = not has_more

    def wait(self, condition: Callable[[], bool]) -> None:
        if not self.runner.run_until(condition, TIMEOUT_MS):
            raise SystemExit("service: a request timed out")
        if self.error:
            raise SystemExit(f"service: {self.error}")

    def sleep(self, seconds: float) -> None:
        self.runner.run_until(lambda: False, seconds * 1000)

    def ask(self, question: Callable[[Callable[[Any], None]], object]) -> Any:
        """Send a request whose method takes a callback; return the reply."""
        answers: list[Any] = []
        question(answers.append)
        self.wait(lambda: bool(answers))
        return answers[0]

    def answer_s(self, patience_s: float) -> float:
        """Return the latency of a small request in seconds; wait at most `patience_s` seconds."""
        answers: list[object] = []
        begin = time.perf_counter()
        self.endpoint.query_capabilities(answers.append)
        self.runner.run_until(lambda: bool(answers), patience_s * 1000)
        return time.perf_counter() - begin

    def wait_for_producers(self, name: str, count: int) -> set[str]:
        """Wait until `count` producers have a data source `name`; return the producers' names."""
        while True:
            state = self.ask(self.endpoint.query_service_state)
            offers = {
                source.producer_id
                for source in state.data_sources
                if source.ds_descriptor is not None and source.ds_descriptor.name == name
            }
            if len(offers) == count:
                return {each.name for each in state.producers if each.id in offers}
            self.sleep(0.01)

    def start(self, trace_config: TraceConfig) -> None:
        """Start tracing, and wait until all data sources run."""
        events: list[object] = []
        self.endpoint.observe_events(ALL_STARTED, events.append)
        self.endpoint.enable_tracing(trace_config.encode())
        self.wait(lambda: bool(events))

    def flush_s(self) -> float:
        """Return the latency of a flush in seconds."""
        begin = time.perf_counter()
        if not self.ask(lambda callback: self.endpoint.flush(TIMEOUT_MS, callback)):
            raise SystemExit("service: a flush failed")
        return time.perf_counter() - begin

    def stop(self) -> tuple[bytes, float]:
        """Stop tracing; return the trace and the seconds of its transfer."""
        self.endpoint.disable_tracing()
        self.wait(lambda: self.ended)
        begin = time.perf_counter()
        self.endpoint.read_buffers()
        self.wait(lambda: self.all_read)
        elapsed = time.perf_counter() - begin
        self.endpoint.disconnect()
        return b"".join(self.pieces), elapsed


class Consumer(ConsumerConnection):
    """A consumer connection to a `Service`."""

    def __init__(self, service: Service) -> None:
        super().__init__(service.consumers)
