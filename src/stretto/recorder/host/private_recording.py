"""The recorder's service, with one session: from its start to the last byte of the trace.

Everything runs on the runner's thread, the main one. The calls that wait (`finish`) run the
loop meanwhile.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stretto import _native
from stretto.base.clock import SystemClock
from stretto.base.errors import SessionError, StrettoError
from stretto.base.unix_socket import UnixListener
from stretto.ports.producer_identity import ProducerIdentity
from stretto.ports.producer_ipc_service import ProducerIPCService
from stretto.protos.trace import TraceStats
from stretto.recorder.host.fork_sockets import Lifelines
from stretto.service.output.output_file import OutputFile
from stretto.service.tracing_service import TracingService

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stretto.base.selector_task_runner import SelectorTaskRunner
    from stretto.client.producer_connection import ProducerConnection
    from stretto.ports.endpoints import OutOfProcessProducer, RemoteProducerEndpoint
    from stretto.protos.config import TraceConfig
    from stretto.recorder.workspace import Workspace

SHM_SIZE = 8 << 20
PAGE_SIZE = 32 << 10
OWN_SHM_SIZE = 256 << 10
OWN_PAGE_SIZE = 4 << 10
"""Of the recorder itself, as a producer."""
FLUSH_TIMEOUT_MS = 2000
STOP_TIMEOUT_MS = 6000
READ_BYTES = 1 << 20


class Recording:
    """One session of a service for this recorder's descendants.

    Args:
        runner: runs all of it.
        on_process: called with the pid of each process that connects.
    """

    def __init__(self, runner: SelectorTaskRunner, on_process: Callable[[int], object]) -> None:
        self._runner = runner
        self._on_process = on_process
        self.service = TracingService(
            runner,
            SystemClock(_native.read_tsc),
            default_shm_size=SHM_SIZE,
            default_page_size=PAGE_SIZE,
            adopt_writers=True,
            waits_for_disk=True,
        )
        self._host = ProducerIPCService(runner, self._connect_producer, scrape_by_default=True)
        self._endpoint = self.service.connect_consumer(self, os.getuid())
        self._on_data: Callable[[bytes], object] = len
        self._lines: Lifelines | None = None
        self._complete = False
        self._stop_timeout_ms: int | None = STOP_TIMEOUT_MS
        self.ended = False
        self.error = ""

    # --- life

    def start(self, workspace: Workspace, config: TraceConfig, fd: int, ring_fd: int) -> None:
        """Listen and record.

        Args:
            workspace: where its sockets go.
            config: of the session.
            fd: where a streaming session writes, else -1.
            ring_fd: a file for the buffer, or -1.

        Raises:
            SessionError: the config is refused, or there is no room for the buffer.
        """
        ring_fds = {0: ring_fd} if ring_fd >= 0 else None
        if fd >= 0:
            self._stop_timeout_ms = None  # the session ends when its file is complete, or fails
        self._endpoint.enable_tracing(config.encode(), fd if fd >= 0 else None, ring_fds=ring_fds)
        self._settle()
        if self.ended:
            raise SessionError(self.error)
        self._host.listen(UnixListener(workspace.socket))
        self._lines = Lifelines(workspace.line, self._runner, self._host.add_connection)

    def _settle(self) -> None:
        """Run what is posted: a refusal arrives as a task."""
        done: list[bool] = []
        self._runner.post(lambda: done.append(True))
        self._runner.run_until(lambda: bool(done))

    @property
    def processes(self) -> int:
        """Recorded processes that are alive, as far as they have connected."""
        return self._host.connection_count

    @property
    def expects_more(self) -> bool:
        """Processes live that have connected, or descend from such by fork."""
        return bool(self.processes or (self._lines and self._lines.count))

    @property
    def without_memory(self) -> dict[int, str]:
        """Processes that couldn't be recorded for want of shared memory: pid, why."""
        return self.service.without_memory

    def pids(self) -> set[int]:
        """Those of the recorded processes that are alive."""
        producers = self.service.producers.values()
        return {producer.identity.pid for producer in producers} - {os.getpid()}

    @property
    def connected(self) -> set[int]:
        """The same; here it costs nothing to know it."""
        return self.pids()

    def later(self, task: Callable[[], object], delay_ms: float) -> None:
        """Run `task` in a while."""
        self._runner.post_delayed(task, delay_ms)

    def stop(self) -> None:
        """Collect what is written, and end the session; a stream's file is then complete."""
        if not self.ended:
            flushed: list[bool] = []
            self._endpoint.flush(FLUSH_TIMEOUT_MS, flushed.append)
            self._runner.run_until(lambda: bool(flushed) or self.ended, 2 * FLUSH_TIMEOUT_MS)
            self._endpoint.disable_tracing()
            self._runner.run_until(lambda: self.ended, self._stop_timeout_ms)
        self._host.close()
        if self._lines is not None:
            self._lines.close()

    def read(self, on_data: Callable[[bytes], object]) -> None:
        """Deliver the ring's trace, piece by piece."""
        self._on_data = on_data
        self._complete = False
        self._endpoint.read_buffers(READ_BYTES)
        self._runner.run_until(lambda: self._complete)

    def stats(self) -> TraceStats:
        """What the service has counted."""
        return TraceStats.decode(self._endpoint.trace_stats() or b"")

    def close(self) -> None:
        """Free everything."""
        self._endpoint.disconnect()
        self._settle()

    def snapshot(self, fd: int, on_done: Callable[[str], object]) -> None:
        """Write what the ring holds now to `fd`, in steps, while recording goes on.

        Args:
            fd: a new file; closed at the end.
            on_done: gets an error message, or "".
        """

        def start(_flushed: bool) -> None:
            try:
                pieces = self.service.snapshot(self._endpoint.session_id)
            except StrettoError as error:
                os.close(fd)
                on_done(str(error))
                return
            SnapshotWriter(self._runner, pieces, OutputFile(fd), on_done).step()

        self._endpoint.flush(FLUSH_TIMEOUT_MS, start)

    # --- producers

    def offer(self, connection: ProducerConnection) -> None:
        """Take in a producer of the recorder's own, on this thread."""
        endpoint = self.service.connect_producer(
            connection,
            ProducerIdentity(
                "stretto record",
                uid=os.getuid(),
                pid=os.getpid(),
                in_process=True,
                page_size_hint=OWN_PAGE_SIZE,
                shm_size_hint=OWN_SHM_SIZE,
            ),
        )
        connection.attach(endpoint)

    def _connect_producer(
        self, producer: OutOfProcessProducer, identity: ProducerIdentity, *, shm_fd: int
    ) -> RemoteProducerEndpoint:
        self._on_process(identity.pid)
        return self.service.connect_producer(producer, identity, shm_fd=shm_fd)

    # --- ports.endpoints.Consumer

    def on_connect(self) -> None:
        """The session's own calls follow."""

    def on_disconnect(self) -> None:
        """Our own doing."""

    def on_tracing_disabled(self, error: str) -> None:
        self.error = self.error or error
        self.ended = True

    def on_trace_data(self, data: bytes, has_more: bool) -> None:
        self._on_data(data)
        self._complete = not has_more


class SnapshotWriter:
    """Copies a snapshot into a file, a piece at a time: the service is needed meanwhile."""

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
        """Write one piece, and come back for the next."""
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
