"""A consumer whose requests wait for their replies, so that the command is sequential code.

Several consumers may share a task runner: while one consumer waits, callbacks of all consumers run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from stretto.base.errors import CommandError, TransportError
from stretto.ports.consumer_ipc_client import ConsumerIPCClient
from stretto.protos.trace import TraceStats

if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.base.selector_task_runner import SelectorTaskRunner
    from stretto.cli.trace.output import TraceOutput
    from stretto.protos.ipc import CloneSessionRequest, CloneSessionResponse
    from stretto.protos.trace import TracingServiceState

CONNECT_TIMEOUT_MS = 10_000
ANSWER_TIMEOUT_MS = 30_000
READ_STALL_MS = 3000
"""If no data comes for this time, reading ends with the data so far."""

T = TypeVar("T")


class TraceConsumer:
    """A connection to the service as consumer.

    Args:
        runner: the task runner of the callbacks, which runs while a method waits.
        address: the service's consumer socket.

    Attributes:
        endpoint: the endpoint, for requests whose replies are not waited for.
        ended: whether the session has ended.
        error: the service's reason if it ended the session.

    Raises:
        CommandError: there is no service, or the service refuses this user.
    """

    def __init__(self, runner: SelectorTaskRunner, address: str) -> None:
        self.ended = False
        self.error = ""
        self._runner = runner
        self._gone = False
        self._received = 0
        self._read_all = False
        self._output: TraceOutput | None = None
        try:
            self.endpoint = ConsumerIPCClient.connect(address, self, runner, CONNECT_TIMEOUT_MS)
        except TransportError as error:
            raise CommandError(f"trace: {error}.") from error
        self.wait(lambda: self.endpoint.connected, None)

    # --- callbacks of the service

    def on_connect(self) -> None:
        """Do nothing: `wait` checks the endpoint."""

    def on_disconnect(self) -> None:
        self._gone = True

    def on_tracing_disabled(self, error: str) -> None:
        self.ended = True
        self.error = error

    def on_trace_data(self, data: bytes, has_more: bool) -> None:
        self._received += 1
        self._read_all = not has_more
        if self._output is not None:
            self._output.write(data)

    def wait(self, predicate: Callable[[], bool], timeout_ms: float | None) -> bool:
        """Run until the predicate is true; False after the time-out.

        Raises:
            CommandError: the service has closed the connection.
        """
        done = self._runner.run_until(lambda: predicate() or self._gone, timeout_ms)
        if self._gone and not predicate():
            raise CommandError(f"trace: {self.endpoint.error or 'the connection has ended'}.")
        return done

    def attach(self, key: str) -> bytes | None:
        """Attach a detached session; return its config, or None if there is no such session.

        Raises:
            CommandError: the service doesn't reply. Every request may raise this.
        """
        answers: list[bytes | None] = []
        self.endpoint.attach(key, answers.append)
        return self._answer(answers)

    def detach(self, key: str) -> None:
        """Detach the session: it continues without this consumer.

        Raises:
            CommandError: the service refuses to detach the session.
        """
        answers: list[bool] = []
        self.endpoint.detach(key, answers.append)
        if not self._answer(answers):
            why = self.error or "is there one of that name already?"
            raise CommandError(f"trace: the session was not detached as {key!r}: {why}")

    def clone(self, request: CloneSessionRequest, fd: int) -> CloneSessionResponse:
        """Clone another session into this consumer's session."""
        answers: list[CloneSessionResponse] = []
        self.endpoint.clone_session(request, fd, answers.append)
        return self._answer(answers)

    def service_state(self, *, sessions_only: bool = False) -> TracingServiceState:
        """Return the state of the service: its producers, data sources and sessions."""
        answers: list[TracingServiceState] = []
        self.endpoint.query_service_state(answers.append, sessions_only=sessions_only)
        return self._answer(answers)

    def trace_stats(self) -> TraceStats:
        """Return the statistics of this consumer's session; empty without a session."""
        answers: list[bytes | None] = []
        self.endpoint.get_trace_stats(answers.append)
        return TraceStats.decode(self._answer(answers) or b"")

    def _answer(self, answers: list[T]) -> T:
        if not self.wait(lambda: bool(answers), ANSWER_TIMEOUT_MS):
            raise CommandError("trace: the tracing service doesn't answer.")
        return answers[0]

    def read_into(self, output: TraceOutput) -> None:
        """Read the session's data into a file.

        Raises:
            CommandError: the file can't be written.
        """
        self._output, self._read_all = output, False
        self.endpoint.read_buffers()
        while not output.error and self._wait_for_data() and not self._read_all:
            pass
        if output.error:
            raise CommandError(f"trace: {output.error}")

    def _wait_for_data(self) -> bool:
        """Wait for more data; False if none came in time."""
        before = self._received
        return self.wait(lambda: self._received > before, READ_STALL_MS)

    def close(self) -> None:
        """Disconnect; the session ends, unless it is detached."""
        self.endpoint.disconnect()
