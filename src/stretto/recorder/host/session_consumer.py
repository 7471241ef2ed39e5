"""The base class of private and system recordings: the consumer of one tracing session."""

from __future__ import annotations

from stretto.recorder.host.totals import SharedTotals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.base.selector_task_runner import SelectorTaskRunner
    from stretto.ports.endpoints import ConsumerEndpoint
    from stretto.recorder.host.fork_sockets import ForkSockets

FLUSH_TIMEOUT_MS = 2000
STOP_TIMEOUT_MS = 6000


class SessionConsumer:
    """Implements `ports.endpoints.Consumer`, and the common part of both kinds of `Recording`.

    Args:
        runner: the task runner of the service, or of the connection to it.
        on_process: called with the pid of each process that connects.

    Attributes:
        ended: whether the session has ended.
        error: why the session ended early, or "".
        totals: the totals of the recorded processes.
    """

    _endpoint: ConsumerEndpoint

    def __init__(self, runner: SelectorTaskRunner, on_process: Callable[[int], object]) -> None:
        self._runner = runner
        self._on_process = on_process
        self._fork_sockets: ForkSockets | None = None
        self._on_data: Callable[[bytes], object] = len
        self._complete = False
        self._stop_timeout_ms: int | None = STOP_TIMEOUT_MS
        self.ended = False
        self.error = ""
        self.totals = SharedTotals()

    @property
    def matched(self) -> set[int]:
        """The numbers of the patterns of `--include` that some function has matched."""
        return self._fork_sockets.matched if self._fork_sockets else set()

    def stop(self) -> None:
        """Flush the producers and end the session."""
        if not self.ended:
            flushed: list[bool] = []
            self._endpoint.flush(FLUSH_TIMEOUT_MS, flushed.append)
            self._runner.run_until(lambda: bool(flushed) or self.ended, 2 * FLUSH_TIMEOUT_MS)
            self._endpoint.disable_tracing()
            self._runner.run_until(lambda: self.ended, self._stop_timeout_ms)
        if self._fork_sockets is not None:
            self._fork_sockets.close()

    def on_connect(self) -> None:
        """Do nothing: `start` sends the requests."""

    def on_disconnect(self) -> None:
        """Do nothing: only `close` disconnects."""

    def on_tracing_disabled(self, error: str) -> None:
        self.error = self.error or error
        self.ended = True

    def on_trace_data(self, data: bytes, has_more: bool) -> None:
        self._on_data(data)
        self._complete = not has_more
