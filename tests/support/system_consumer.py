"""A consumer of a service in another process. Each request blocks until the service answers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from stretto.base.selector_task_runner import SelectorTaskRunner
from stretto.ports.consumer_ipc_client import ConsumerIPCClient

if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.protos.config import TraceConfig
    from stretto.protos.trace import TracingServiceState

TIMEOUT_MS = 60_000


class SystemConsumer:
    """A connected consumer; the test fails if a request isn't answered in time."""

    def __init__(self, address: str) -> None:
        self.runner = SelectorTaskRunner()
        self.connected = self.disconnected = self.ended = False
        self.error = ""
        self._data: list[bytes] = []
        self._has_more = True
        self.endpoint = ConsumerIPCClient.connect(address, self, self.runner)
        self.wait(lambda: self.connected or self.disconnected)

    # --- Methods of ports.endpoints.Consumer, called by the service

    def on_connect(self) -> None:
        self.connected = True

    def on_disconnect(self) -> None:
        self.disconnected = True

    def on_tracing_disabled(self, error: str) -> None:
        self.error = error
        self.ended = True

    def on_trace_data(self, data: bytes, has_more: bool) -> None:
        self._data.append(data)
        self._has_more = has_more

    # --- Methods for tests

    def wait(self, condition: Callable[[], bool], timeout_ms: float = TIMEOUT_MS) -> None:
        """Run the consumer's event loop until the condition is true."""
        assert self.runner.run_until(condition, timeout_ms), "the service did not answer in time"

    def process_events(self, milliseconds: float) -> None:
        """Run the consumer's event loop for some time."""
        self.runner.run_until(lambda: False, milliseconds)

    def call(self, request: Callable[[Callable[[Any], None]], object]) -> Any:
        """Send a request that takes a callback; return the argument of the callback."""
        answers: list[Any] = []
        request(answers.append)
        self.wait(lambda: bool(answers))
        return answers[0]

    def state(self) -> TracingServiceState:
        """Return the connected producers and the running sessions."""
        state: TracingServiceState = self.call(self.endpoint.query_service_state)
        return state

    def wait_for_producers(self, *names: str) -> None:
        """Wait until producers with these names offer track events."""

        def there() -> bool:
            state = self.state()
            offering = {
                source.producer_id
                for source in state.data_sources
                if source.ds_descriptor is not None and source.ds_descriptor.name == "track_event"
            }
            found = [each.name for each in state.producers if each.id in offering]
            return all(found.count(name) >= names.count(name) for name in names)

        deadline = time.monotonic() + TIMEOUT_MS / 1000
        while not there():
            assert time.monotonic() < deadline, f"the service has no producers {names}"
            self.process_events(20)

    def enable(self, config: TraceConfig, fd: int | None = None) -> None:
        """Enable tracing with this config; the service may write into `fd`."""
        self.endpoint.enable_tracing(config.encode(), fd)

    def flush(self, timeout_ms: int = 10_000) -> bool:
        """Flush; return whether all producers committed.

        A `timeout_ms` of 0 selects the time-out in the config.
        """
        return bool(self.call(lambda callback: self.endpoint.flush(timeout_ms, callback)))

    def stop(self) -> None:
        """Disable tracing and wait until the session has ended."""
        self.endpoint.disable_tracing()
        self.wait(lambda: self.ended)

    def read(self) -> bytes:
        """Return the part of the trace that was not read before."""
        self._data, self._has_more = [], True
        self.endpoint.read_buffers()
        self.wait(lambda: not self._has_more)
        return b"".join(self._data)

    def close(self) -> None:
        """Close the connection."""
        self.endpoint.disconnect()
        self.runner.run_until(lambda: True)
        self.runner.close()
