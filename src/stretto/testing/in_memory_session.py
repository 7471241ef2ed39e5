"""A complete tracing session without threads, sockets, files and waiting.

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
    """Runs `config` on a real service with a fake clock.

    One producer offers every data source in the config. More producers may be connected to
    `service` before or after the start.

    Args:
        config: The config; to record data it must have a buffer and a data source.
        clock: The clock; by default a FakeClock, which `task_runner.advance` advances.
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
        """Return a trace writer for the buffer of a data source in the config."""
        return self.producer.writer(data_source)

    def flush(self) -> bool:
        """Flush all written data into the buffers; return whether it succeeded."""
        self.consumer.flush()
        self.task_runner.run_until_idle()
        return self.consumer.flushes[-1]

    def stop(self) -> None:
        """Flush, stop, and read the trace. No effect if the session has stopped.

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
        """The bytes of the trace."""
        return self.consumer.data

    def packets(self, field: str = "") -> list[TracePacket]:
        """Return the decoded packets; with `field`, only packets with that field."""
        packets = self.consumer.packets()
        return [packet for packet in packets if not field or packet.has(field)]
