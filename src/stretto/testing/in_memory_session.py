"""A whole tracing session without a thread, a socket, a file or a moment of waiting.

::

    with InMemorySession(config) as session:
        session.writer("com.example.frames").write(packet.encode())
    assert session.packets("track_event")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from stretto.base.errors import SessionError
from stretto.service.tracing_service import TracingService
from stretto.testing.fake_clock import FakeClock
from stretto.testing.fake_task_runner import FakeTaskRunner
from stretto.testing.mock_consumer import MockConsumer
from stretto.testing.mock_producer import MockProducer

if TYPE_CHECKING:
    from stretto import _native
    from stretto.protos.config import TraceConfig
    from stretto.protos.trace import TracePacket


class InMemorySession:
    """Runs `config` on a real service under a clock that the test moves.

    One producer offers every data source that the config names. More can join: connect
    them to `service` before or after the start.

    Args:
        config: What to record. It needs a buffer and a data source to hold anything.
        clock: The time; by default one that stands still (`task_runner.advance` moves it).
    """

    def __init__(self, config: TraceConfig, clock: FakeClock | None = None) -> None:
        self.clock = clock or FakeClock()
        self.task_runner = FakeTaskRunner(self.clock)
        self.service = TracingService(self.task_runner, self.clock)
        self.producer = MockProducer(self.service, "in_memory")
        self.consumer = MockConsumer(self.service)
        self._config = config

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the session.

        Raises:
            SessionError: The service refuses the config.
        """
        sources = (source.config for source in self._config.data_sources)
        for name in dict.fromkeys(config.name for config in sources if config is not None):
            self.producer.register(name)
        self.consumer.enable(self._config)
        self.task_runner.run_until_idle()
        self._raise_error()

    def writer(self, data_source: str) -> _native.TraceWriter:
        """A trace writer into the buffer of a data source of the config."""
        return self.producer.writer(data_source)

    def flush(self) -> bool:
        """Have everything that was written in the buffers; return whether it worked."""
        self.consumer.flush()
        self.task_runner.run_until_idle()
        return self.consumer.flushes[-1]

    def stop(self) -> None:
        """Flush, stop, and read the trace. Harmless if it has stopped already.

        Raises:
            SessionError: The session ended with an error.
        """
        if not self.consumer.disabled:
            self.flush()
            self.consumer.endpoint.disable_tracing()
            self.task_runner.run_until_idle()
        self._raise_error()
        self.consumer.endpoint.read_buffers()
        self.task_runner.run_until_idle()

    def _raise_error(self) -> None:
        if self.consumer.disabled and self.consumer.disabled[0]:
            raise SessionError(self.consumer.disabled[0])

    @property
    def trace(self) -> bytes:
        """The trace as it would be in a file."""
        return self.consumer.data

    def packets(self, field: str = "") -> list[TracePacket]:
        """The decoded packets; with `field`, those that have it (as "track_event")."""
        packets = self.consumer.packets()
        return [packet for packet in packets if not field or packet.has(field)]
