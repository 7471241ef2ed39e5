"""A recording with the machine's tracing service and all its producers (`--system`).

    program's processes --producers-->  stretto traced  --trace--> recorder, its consumer
    other processes     --producers-->        |
                                              +--fork sockets----- (program's processes)

The program's processes are the producers with the session's name. The recorder finds them by
queries of the service's state. Everything runs on the task runner's thread. If the service ends,
the recording ends too, and the data in the service's buffers is lost.
"""

from __future__ import annotations

import errno
import os

from stretto.base.errors import CommandError, SessionError, StrettoError, TransportError
from stretto.base.socket_names import consumer_socket, producer_sockets
from stretto.ports.consumer_ipc_client import ConsumerIPCClient
from stretto.ports.producer_ipc_client import ProducerHints, ProducerIPCClient
from stretto.ports.session_lookup import session_named
from stretto.ports.unmatched import TRACK_EVENT, Offers
from stretto.protos.config import TraceConfig
from stretto.protos.ipc import CloneSessionRequest
from stretto.protos.trace import TraceStats
from stretto.recorder.host.counters import RECORDER_PAGE_SIZE, RECORDER_SHM_SIZE
from stretto.recorder.host.fork_sockets import ForkSockets
from stretto.recorder.host.session_consumer import SessionConsumer
from stretto.recorder.host.system_config import MARK, make_system_config
from stretto.service.output.output_file import OutputFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stretto.base.selector_task_runner import SelectorTaskRunner
    from stretto.base.stream_socket import StreamSocket
    from stretto.client.producer_connection import ProducerConnection
    from stretto.protos.ipc import CloneSessionResponse
    from stretto.protos.trace import TracingServiceState
    from stretto.recorder.host.launch import Launch
    from stretto.recorder.host.options import RecordingOptions
    from stretto.recorder.host.output import Output
    from stretto.recorder.workspace import Options

ANSWER_TIMEOUT_MS = 10_000
"""How long the service may take to answer a request."""


class SystemRecording(SessionConsumer):
    """A recording with the machine's tracing service.

    Implements `Recording`, and `ports.endpoints.Consumer` for the connection to the service. For
    the arguments see `SessionConsumer`.

    Raises:
        CommandError: there is no service, or it refuses the connection.
    """

    def __init__(self, runner: SelectorTaskRunner, on_process: Callable[[int], object]) -> None:
        super().__init__(runner, on_process)
        self._name = f"{MARK}record-{os.getpid()}"
        self._pids: set[int] = set()
        self._stats = TraceStats()
        self._offers = Offers()
        self._requested = TraceConfig()
        self._disconnected = False
        self._own_producer: ProducerIPCClient | None = None
        self._producer_socket = _absolute(producer_sockets()[0])
        self._endpoint = _connect(self, runner)

    @property
    def target_options(self) -> Options:
        """Options with the service's socket and the name of the program's producers."""
        return {"service": [self._producer_socket], "name": [self._name]}

    def start(self, launch: Launch, options: RecordingOptions, output: Output) -> None:
        """Start the session, and listen for fork sockets.

        Raises:
            SessionError: the service refuses the session, or has disconnected.
        """
        config = make_system_config(options, self._name, to_file=not output.direct)
        # The program's own producers may have come and gone between two queries.
        self._requested.data_sources = [
            source for source in config.data_sources if source.producer_name_filter != [self._name]
        ]
        fd = output.fd() if options.stream else None
        self._endpoint.enable_tracing(config.encode(), fd)
        self._wait_for_stats()
        if self.ended:
            raise SessionError(self.error)
        self._fork_sockets = ForkSockets(
            launch.forks,
            self._runner,
            # Producers connect to the service directly, not through the recorder.
            on_connection=lambda end: end.close(),
            on_memory=self.totals.add,
            on_process_socket=self._on_process_socket,
        )

    def add_producer(self, connection: ProducerConnection) -> None:
        """Connect a producer of the recorder itself to the machine's service."""
        hints = ProducerHints(self._name, page_size=RECORDER_PAGE_SIZE, shm_size=RECORDER_SHM_SIZE)
        client = ProducerIPCClient.connect(self._producer_socket, connection, hints)
        connection.attach(client)
        client.connect_and_wait()
        self._own_producer = client

    @property
    def has_descendants(self) -> bool:
        """Whether a process of the program holds a fork socket."""
        return bool(self._fork_sockets and self._fork_sockets.count)

    @property
    def unrecorded(self) -> Mapping[int, str]:
        """Always empty: the service doesn't report which processes have no shared memory."""
        return {}

    @property
    def unmatched(self) -> list[str]:
        """A line for each data source that no process has offered."""
        missing = self._offers.missing_in(self._requested, added=(TRACK_EVENT,))
        return missing if self._offers.data_sources else []

    @property
    def pids(self) -> set[int]:
        """The recorded processes that were running at the last refresh or have connected since."""
        return self._pids

    def refresh_pids(self) -> None:
        """Query the service; its reply updates `pids`."""
        self._endpoint.query_service_state(self._on_state)

    def _on_state(self, state: TracingServiceState) -> None:
        self._offers.add_state(state)
        pids = {producer.pid for producer in state.producers if producer.name == self._name}
        pids.discard(os.getpid())
        new = pids - self._pids
        self._pids = pids
        for pid in sorted(new):
            self._on_process(pid)

    def _on_process_socket(self, end: StreamSocket) -> None:
        peer = end.peer_credentials()
        if peer is not None and peer.pid not in self._pids:
            self._pids.add(peer.pid)
            self._on_process(peer.pid)

    def read(self, on_data: Callable[[bytes], object]) -> None:
        """Deliver the trace of the ring, piece by piece."""
        self._on_data = on_data
        self._complete = False
        if not self._disconnected:
            self._endpoint.read_buffers()
            self._runner.run_until(lambda: self._complete or self._disconnected)
        if not self._complete:
            raise SessionError(f"The trace is lost: {self._endpoint.error}.")

    def stats(self) -> TraceStats:
        """Return the last received statistics; while the session runs, also request new ones."""
        if self.ended:
            self._wait_for_stats()
        else:
            self._endpoint.get_trace_stats(self._on_stats)
        return self._stats

    def _wait_for_stats(self) -> None:
        answered: list[bytes | None] = []
        self._endpoint.get_trace_stats(answered.append)
        self._runner.run_until(lambda: bool(answered) or self._disconnected, ANSWER_TIMEOUT_MS)
        if answered and answered[0] is not None:
            self._on_stats(answered[0])
        else:  # There is no session: a message with the reason of the refusal follows.
            self._runner.run_until(lambda: self.ended, ANSWER_TIMEOUT_MS)

    def _on_stats(self, encoded: bytes | None) -> None:
        if encoded is not None:
            self._stats = TraceStats.decode(encoded)

    def close(self) -> None:
        """Disconnect from the service."""
        if self._own_producer is not None:
            self._own_producer.disconnect()
        self._endpoint.disconnect()

    def snapshot(self, fd: int, on_done: Callable[[str], object]) -> None:
        """Clone the session, and write the clone to `fd`."""
        try:
            SessionCloner(self._runner, self._name, OutputFile(fd), on_done)
        except StrettoError as error:
            os.close(fd)
            on_done(str(error))

    def on_disconnect(self) -> None:
        """Handle the end of the service, or of the connection after `close`."""
        self._disconnected = True
        self.on_tracing_disabled(self._endpoint.error)


class SessionCloner:
    """A second consumer, which clones the recorder's session and reads the clone.

    Args:
        runner: the task runner of the connection.
        session_name: name of the session to clone.
        file: the trace is written into it; closed at the end.
        on_done: called with an error message, or "".

    Raises:
        StrettoError: the connection to the service fails.
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
        """Do nothing: requests are queued until the connection exists."""

    def on_disconnect(self) -> None:
        self._finish(self._endpoint.error)

    def on_tracing_disabled(self, error: str) -> None:
        """Do nothing: a clone never runs."""

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
    """Return the address with an absolute path, for processes in other working directories."""
    return address if address.startswith("@") else os.path.abspath(address)


def _connect(
    consumer: SystemRecording | SessionCloner, runner: SelectorTaskRunner
) -> ConsumerIPCClient:
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
    """Return the errno of the system call that caused an error; 0 if there is none."""
    while error is not None:
        if isinstance(error, OSError) and error.errno:
            return error.errno
        error = error.__cause__
    return 0
