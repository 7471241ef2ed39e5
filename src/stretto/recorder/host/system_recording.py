"""A recording by the machine's tracing service: what `Recording` is with one of our own.

    program's processes --producers-->  stretto traced  --trace--> recorder, its consumer
    everybody else      --producers-->        |
                                              +--lines: who lives--- (program's processes)

Which processes are the program's is known by the name that they give as producers; the
recorder asks the service for them from time to time. Everything runs on the runner's thread.
When the service ends, so does the recording; what it held in memory is gone with it.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from stretto.base.errors import CommandError, SessionError, StrettoError, TransportError
from stretto.base.socket_names import consumer_socket, producer_sockets
from stretto.ports.consumer_ipc_client import ConsumerIPCClient
from stretto.ports.producer_ipc_client import ProducerHints, ProducerIPCClient
from stretto.ports.session_lookup import session_named
from stretto.protos.ipc import CloneSessionRequest
from stretto.protos.trace import TraceStats
from stretto.recorder.host.fork_sockets import Lifelines
from stretto.recorder.host.private_recording import (
    FLUSH_TIMEOUT_MS,
    OWN_PAGE_SIZE,
    OWN_SHM_SIZE,
    STOP_TIMEOUT_MS,
)
from stretto.service.output.output_file import OutputFile

if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.base.selector_task_runner import SelectorTaskRunner
    from stretto.base.stream_socket import StreamSocket
    from stretto.client.producer_connection import ProducerConnection
    from stretto.protos.config import TraceConfig
    from stretto.protos.ipc import CloneSessionResponse
    from stretto.protos.trace import TracingServiceState
    from stretto.recorder.workspace import Workspace

ANSWER_TIMEOUT_MS = 10_000
"""For the service to answer a question."""


class SystemRecording:
    """One session of the machine's tracing service.

    Args:
        runner: runs all of it.
        name: of the session, and of the program's producers.
        on_process: called with the pid of each process that connects.

    Raises:
        CommandError: there is no service, or it isn't for us.
    """

    def __init__(
        self, runner: SelectorTaskRunner, name: str, on_process: Callable[[int], object]
    ) -> None:
        self._runner = runner
        self._name = name
        self._on_process = on_process
        self._lines: Lifelines | None = None
        self._pids: set[int] = set()
        self._stats = TraceStats()
        self._on_data: Callable[[bytes], object] = len
        self._complete = self._gone = False
        self._counters: ProducerIPCClient | None = None
        self.ended = False
        self.error = ""
        self.producer_socket = _absolute(producer_sockets()[0])
        self._endpoint = _connect(self, runner)

    # --- life

    def start(self, workspace: Workspace, config: TraceConfig, fd: int, ring_fd: int) -> None:
        """Record.

        Args:
            workspace: where the lines go.
            config: of the session.
            fd: where a streaming session writes, else -1.
            ring_fd: none: the buffer is the service's.

        Raises:
            SessionError: the service refuses the session, or hung up.
        """
        del ring_fd
        self._endpoint.enable_tracing(config.encode(), fd if fd >= 0 else None)
        self._ask_for_stats()
        if self.ended:
            raise SessionError(self.error)
        self._lines = Lifelines(
            workspace.line, self._runner, on_connection=lambda end: end.close(), on_line=self._met
        )

    def offer(self, connection: ProducerConnection) -> None:
        """Make a producer of the recorder itself: of what it knows about the program.

        Raises:
            StrettoError: the service isn't for us.
        """
        hints = ProducerHints(self._name, page_size=OWN_PAGE_SIZE, shm_size=OWN_SHM_SIZE)
        client = ProducerIPCClient.connect(self.producer_socket, connection, hints)
        connection.attach(client)
        client.connect_and_wait()
        self._counters = client

    @property
    def expects_more(self) -> bool:
        """Processes of the program live that have connected, or descend from such by fork."""
        return bool(self._lines and self._lines.count)

    @property
    def without_memory(self) -> dict[int, str]:
        """The service doesn't tell."""
        return {}

    def pids(self) -> set[int]:
        """Those of the recorded processes that lived when the service was last asked."""
        self._endpoint.query_service_state(self._on_state)
        return self._pids

    @property
    def connected(self) -> set[int]:
        """The same, without asking again."""
        return self._pids

    def _on_state(self, state: TracingServiceState) -> None:
        pids = {producer.pid for producer in state.producers if producer.name == self._name}
        pids.discard(os.getpid())
        new = pids - self._pids
        self._pids = pids
        for pid in sorted(new):
            self._on_process(pid)

    def _met(self, line: StreamSocket) -> None:
        peer = line.peer_credentials()
        if peer is not None and peer.pid not in self._pids:
            self._pids.add(peer.pid)
            self._on_process(peer.pid)

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
            self._runner.run_until(lambda: self.ended, STOP_TIMEOUT_MS)
        if self._lines is not None:
            self._lines.close()

    def read(self, on_data: Callable[[bytes], object]) -> None:
        """Deliver the ring's trace, piece by piece.

        Raises:
            SessionError: the service has gone, and the trace with it.
        """
        self._on_data = on_data
        self._complete = False
        if not self._gone:
            self._endpoint.read_buffers()
            self._runner.run_until(lambda: self._complete or self._gone)
        if not self._complete:
            raise SessionError(f"The trace is lost: {self._endpoint.error}.")

    def stats(self) -> TraceStats:
        """What the service has counted: its last word if it has gone."""
        if self.ended:
            self._ask_for_stats()
        else:
            self._endpoint.get_trace_stats(self._on_stats)
        return self._stats

    def _ask_for_stats(self) -> None:
        answered: list[bytes | None] = []
        self._endpoint.get_trace_stats(answered.append)
        self._runner.run_until(lambda: bool(answered) or self._gone, ANSWER_TIMEOUT_MS)
        if answered and answered[0] is not None:
            self._on_stats(answered[0])
        else:  # there is no session: it was refused, and that is on its way
            self._runner.run_until(lambda: self.ended, ANSWER_TIMEOUT_MS)

    def _on_stats(self, encoded: bytes | None) -> None:
        if encoded is not None:
            self._stats = TraceStats.decode(encoded)

    def close(self) -> None:
        """Hang up."""
        if self._counters is not None:
            self._counters.disconnect()
        self._endpoint.disconnect()

    def snapshot(self, fd: int, on_done: Callable[[str], object]) -> None:
        """Write what the service holds now to `fd`, while recording goes on.

        Args:
            fd: a new file; closed at the end.
            on_done: gets an error message, or "".
        """
        try:
            Snapshot(self._runner, self._name, OutputFile(fd), on_done)
        except StrettoError as error:
            os.close(fd)
            on_done(str(error))

    # --- ports.endpoints.Consumer

    def on_connect(self) -> None:
        """The session's own calls follow."""

    def on_disconnect(self) -> None:
        """The service has gone, or we have hung up."""
        self._gone = True
        self.on_tracing_disabled(self._endpoint.error)

    def on_tracing_disabled(self, error: str) -> None:
        self.error = self.error or error
        self.ended = True

    def on_trace_data(self, data: bytes, has_more: bool) -> None:
        self._on_data(data)
        self._complete = not has_more


class Snapshot:
    """A consumer of its own that clones the recorder's session, and reads the clone.

    Raises:
        StrettoError: it can't connect.
    """

    def __init__(
        self,
        runner: SelectorTaskRunner,
        session_name: str,
        file: OutputFile,
        on_done: Callable[[str], object],
    ) -> None:
        self._file = file
        self._on_done: Callable[[str], object] | None = on_done
        self._session_name = session_name
        self._endpoint = _connect(self, runner)
        self._endpoint.query_service_state(self._clone, sessions_only=True)

    def _clone(self, state: TracingServiceState) -> None:
        number = session_named(self._session_name, state)
        self._endpoint.clone_session(CloneSessionRequest(session_id=number), None, self._on_cloned)

    def _on_cloned(self, response: CloneSessionResponse) -> None:
        if response.success:
            self._endpoint.read_buffers()
        else:
            self._finish(response.error or "the service refuses it")

    def on_connect(self) -> None:
        """The request waits for it."""

    def on_disconnect(self) -> None:
        self._finish(self._endpoint.error)

    def on_tracing_disabled(self, error: str) -> None:
        """A clone runs no more from its beginning."""

    def on_trace_data(self, data: bytes, has_more: bool) -> None:
        if self._on_done is None:
            return
        try:
            self._file.write(data)
        except StrettoError as error:
            self._finish(str(error))
            return
        if not has_more:
            self._finish("")

    def _finish(self, error: str) -> None:
        on_done, self._on_done = self._on_done, None
        if on_done is not None:
            self._file.close()
            self._endpoint.disconnect()
            on_done(error)


def _absolute(address: str) -> str:
    """The address, for processes that may have changed their folder."""
    return address if address.startswith("@") else os.path.abspath(address)


def _connect(consumer: SystemRecording | Snapshot, runner: SelectorTaskRunner) -> ConsumerIPCClient:
    address = consumer_socket()
    try:
        return ConsumerIPCClient.connect(address, consumer, runner)
    except TransportError as error:
        if _errno(error) in (errno.ENOENT, errno.ECONNREFUSED):
            raise CommandError(
                f"record: no tracing service runs here ({address}): start one with "
                "`stretto traced --background`."
            ) from error
        raise CommandError(f"record: {error}") from error


def _errno(error: BaseException | None) -> int:
    """That of the system call at the root of an error."""
    while error is not None:
        if isinstance(error, OSError) and error.errno:
            return error.errno
        error = error.__cause__
    return 0
