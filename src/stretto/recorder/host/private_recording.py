"""A recording with a service inside the recorder, for the program and its descendants only.

Everything runs on the task runner's thread, the main thread.
"""

from __future__ import annotations

import os

from stretto import _native
from stretto.base.clock import SystemClock
from stretto.base.errors import SessionError, StrettoError
from stretto.ports.producer_identity import ProducerIdentity
from stretto.ports.producer_ipc_service import ProducerIPCService
from stretto.ports.producer_memory import PAGE_SIZE, SHM_SIZE
from stretto.ports.unmatched import TRACK_EVENT, Offers
from stretto.protos.config import DataSourceDescriptor
from stretto.protos.trace import TraceStats
from stretto.recorder.host.config import make_config
from stretto.recorder.host.counters import RECORDER_PAGE_SIZE, RECORDER_SHM_SIZE
from stretto.recorder.host.fork_sockets import ForkSockets
from stretto.recorder.host.session_consumer import FLUSH_TIMEOUT_MS, SessionConsumer
from stretto.service.output.output_file import OutputFile
from stretto.service.tracing_service import SHOWN_NAME, TracingService

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from stretto.base.selector_task_runner import SelectorTaskRunner
    from stretto.client.producer_connection import ProducerConnection
    from stretto.ports.endpoints import OutOfProcessProducer, RemoteProducerEndpoint
    from stretto.recorder.host.launch import Launch
    from stretto.recorder.host.options import RecordingOptions
    from stretto.recorder.host.output import Output
    from stretto.recorder.workspace import Options
    from stretto.service.endpoints.consumer_endpoint import ConsumerEndpoint
    from stretto.service.endpoints.producer_endpoint import ProducerEndpoint

READ_BYTES = 1 << 20
MAX_TRIGGERS = 10


class PrivateRecording(SessionConsumer):
    """A recording with a service that only the recorder's descendants can connect to.

    Implements `Recording`, and `ports.endpoints.Consumer` for its service. For the arguments see
    `SessionConsumer`.
    """

    _endpoint: ConsumerEndpoint

    def __init__(self, runner: SelectorTaskRunner, on_process: Callable[[int], object]) -> None:
        super().__init__(runner, on_process)
        self._service = _Service(
            runner,
            SystemClock(_native.read_tsc),
            default_shm_size=SHM_SIZE,
            default_page_size=PAGE_SIZE,
            adopt_writers=True,
            waits_for_disk=True,
        )
        self._port = ProducerIPCService(runner, self._connect_producer, scrape_by_default=True)
        self._endpoint = self._service.connect_consumer(self, os.getuid())

    @property
    def target_options(self) -> Options:
        """Always empty: recorded processes find the service's socket in the workspace."""
        return {}

    def start(self, launch: Launch, options: RecordingOptions, output: Output) -> None:
        """Start the session, and listen in the workspace."""
        config = self._config = make_config(options, to_file=not output.direct)
        fd = None
        if options.stream:
            fd = output.fd()
            # The session ends when its file is complete or has failed.
            self._stop_timeout_ms = None
        ring_fds = {0: output.ring_fd} if output.ring_fd >= 0 else None
        self._endpoint.enable_tracing(config.encode(), fd, ring_fds=ring_fds)
        self._run_posted()
        if self.ended:
            raise SessionError(self.error)
        self._port.listen(launch.producers)
        self._fork_sockets = ForkSockets(
            launch.forks, self._runner, self._port.add_connection, self.totals.add
        )

    def _run_posted(self) -> None:
        """Run the posted tasks, because a refusal is reported by a task."""
        done: list[bool] = []
        self._runner.post(lambda: done.append(True))
        self._runner.run_until(lambda: bool(done))

    @property
    def has_descendants(self) -> bool:
        """Whether a process is connected, or holds a fork socket."""
        forks = self._fork_sockets
        return bool(self._port.connection_count or (forks and forks.count))

    @property
    def unrecorded(self) -> Mapping[int, str]:
        """Why connected processes have no shared memory: reasons by pid."""
        return self._service.memory_failures

    @property
    def unmatched(self) -> list[str]:
        """A line for each requested category that no process has, and each activated trigger."""
        offers = Offers(map(DataSourceDescriptor.decode, self._service.offered()))
        # If no process was recorded, the summary has another line about that.
        missing = offers.missing_in(self._config) if TRACK_EVENT in offers.data_sources else []
        return missing + [
            f"the program activated the trigger {name!r}, which only `stretto trace` can wait for"
            for name in sorted(self._service.triggers)
        ]

    @property
    def pids(self) -> set[int]:
        """The running recorded processes."""
        producers = self._service.producers.values()
        return {producer.identity.pid for producer in producers} - {os.getpid()}

    def refresh_pids(self) -> None:
        """Do nothing: the service is in this process."""

    def stop(self) -> None:
        """End the session, then refuse connections."""
        super().stop()
        self._port.close()

    def read(self, on_data: Callable[[bytes], object]) -> None:
        """Deliver the trace of the ring, piece by piece."""
        self._on_data = on_data
        self._complete = False
        self._endpoint.read_buffers(READ_BYTES)
        self._runner.run_until(lambda: self._complete)

    def stats(self) -> TraceStats:
        """Return the statistics of the session."""
        return TraceStats.decode(self._endpoint.trace_stats() or b"")

    def close(self) -> None:
        """Disconnect from the service, which frees the buffers."""
        self._endpoint.disconnect()
        self._run_posted()

    def snapshot(self, fd: int, on_done: Callable[[str], object]) -> None:
        """Copy the ring to `fd`, in steps."""

        def start(_flushed: bool) -> None:
            try:
                pieces = self._service.snapshot(self._endpoint.session_id)
            except StrettoError as error:
                os.close(fd)
                on_done(str(error))
                return
            SnapshotWriter(self._runner, pieces, OutputFile(fd), on_done).step()

        self._endpoint.flush(FLUSH_TIMEOUT_MS, start)

    def add_producer(self, connection: ProducerConnection) -> None:
        """Connect a producer of the recorder itself, on this thread."""
        endpoint = self._service.connect_producer(
            connection,
            ProducerIdentity(
                "stretto record",
                uid=os.getuid(),
                pid=os.getpid(),
                in_process=True,
                page_size_hint=RECORDER_PAGE_SIZE,
                shm_size_hint=RECORDER_SHM_SIZE,
            ),
        )
        connection.attach(endpoint)

    def _connect_producer(
        self, producer: OutOfProcessProducer, identity: ProducerIdentity, *, shm_fd: int
    ) -> RemoteProducerEndpoint:
        self._on_process(identity.pid)
        return self._service.connect_producer(producer, identity, shm_fd=shm_fd)


class _Service(TracingService):
    """A service that also knows the data sources of producers that have ended.

    Attributes:
        triggers: names of triggers that producers have activated, at most `MAX_TRIGGERS`.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._ended: set[bytes] = set()
        self.triggers: set[str] = set()

    def disconnect_producer(self, producer: ProducerEndpoint) -> None:
        """Keep what the producer offers, and remove the producer."""
        self._ended.update(each.descriptor for each in self.data_sources.of_producer(producer))
        super().disconnect_producer(producer)

    def activate_triggers(self, producer: ProducerEndpoint, names: Sequence[str]) -> None:
        """Keep the names for the summary: the session waits for no trigger."""
        self.triggers.update(name[:SHOWN_NAME] for name in names[:MAX_TRIGGERS])
        self.triggers = set(sorted(self.triggers)[:MAX_TRIGGERS])

    def offered(self) -> set[bytes]:
        """Return the encoded descriptors of all data sources."""
        return self._ended.union(each.descriptor for each in self.data_sources)


class SnapshotWriter:
    """Copies a snapshot into a file, one piece per task, so that other tasks run in between.

    Args:
        runner: the task runner of the steps.
        pieces: the trace bytes.
        file: closed at the end.
        on_done: called with an error message, or "".
    """

    def __init__(
        self,
        runner: SelectorTaskRunner,
        pieces: Iterator[bytes],
        file: OutputFile,
        on_done: Callable[[str], object],
    ) -> None:
        self._runner = runner
        self._pieces = pieces
        self._file = file
        self._on_done = on_done

    def step(self) -> None:
        """Write one piece, and post the next step."""
        try:
            data = next(self._pieces, None)
            if data is not None:
                self._file.write(data)
                self._runner.post(self.step)
                return
        except StrettoError as error:
            self._on_done(str(error))
            return
        self._file.close()
        self._on_done("")
