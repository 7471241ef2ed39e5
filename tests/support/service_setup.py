"""A service with a clock that only a test advances, and configs and packets for it."""

from __future__ import annotations

from stretto.protos.config import DataSourceConfig, TraceConfig
from stretto.protos.trace import TestEvent, TracePacket
from stretto.service.tracing_service import TracingService
from stretto.testing.fake_clock import FakeClock
from stretto.testing.fake_task_runner import FakeTaskRunner
from stretto.testing.mock_consumer import MockConsumer
from stretto.testing.mock_producer import MockProducer
from tests.support.file_threads import InlineFileThreads

UID = 1000
SERVICE_EVENTS = (
    "all_data_sources_started",
    "tracing_started",
    "all_data_sources_flushed",
    "read_tracing_buffers_completed",
    "tracing_disabled",
    "flush_started",
    "slow_starting_data_sources",
    "last_flush_slow_data_sources",
    "clone_started",
    "buffer_cloned",
)

KINDS = (
    "clock_snapshot",
    "synchronization_marker",
    "trace_config",
    "trace_uuid",
    "trace_provenance",
    "system_info",
    "service_event",
    "trace_stats",
    "for_testing",
    "trigger",
    "clone_snapshot_trigger",
    "concurrent_session_event",
    "remote_clock_sync",
    "extension_descriptor",
)


class Setup:
    """A service with a fake clock and task runner, and its producers and consumers."""

    def __init__(self, **options):
        self.clock = FakeClock()
        self.runner = FakeTaskRunner(self.clock)
        options = {
            "random_bytes": bytes,
            "version": "test",
            "uid": UID,
            "file_threads": InlineFileThreads(),
        } | options
        self.service = TracingService(self.runner, self.clock, **options)

    def producer(self, *sources, **arguments):
        """Return a connected producer with data sources of these names."""
        producer = MockProducer(self.service, **arguments)
        for name in sources:
            producer.register(name)
        return producer

    def consumer(self, uid=UID):
        return MockConsumer(self.service, uid)

    def enable(self, config, consumer=None, fd=None):
        """Return a consumer with a session of this config."""
        consumer = consumer or self.consumer()
        consumer.enable(config, fd)
        self.run()
        return consumer

    def run(self):
        self.runner.run_until_idle()

    def advance(self, milliseconds):
        self.runner.advance(milliseconds)

    def read(self, consumer):
        """Send one read request of the consumer; return the packets."""
        start = len(consumer.packets())
        consumer.endpoint.read_buffers()
        self.run()
        return consumer.packets()[start:]

    def write(self, producer, *names, source="ds", flush=True):
        """Write packets with these texts; commit them unless `flush` is false."""
        writer = producer.writer(source)
        for text in names:
            writer.write(event(text))
        if flush:
            writer.flush()

    def session_of(self, consumer):
        """Return the session of a consumer."""
        return self.service.sessions[consumer.endpoint.session_id]

    def session(self):
        """Return the only session of the service."""
        (session,) = self.service.sessions.values()
        return session


def make_config(*sources, buffers=1, size_kb=128, **fields):
    """Return a config with data sources of these names, all written into buffer 0."""
    config = TraceConfig(**fields)
    config.buffers = [TraceConfig.BufferConfig(size_kb=size_kb) for _ in range(buffers)]
    config.data_sources = [data_source(name) for name in sources]
    return config


def data_source(name, **fields):
    return TraceConfig.DataSource(config=DataSourceConfig(name=name, **fields))


def event(text):
    """Return an encoded packet with a text by which a test finds it in a trace."""
    return TracePacket(for_testing=TestEvent(str=text)).encode()


def texts(packets):
    """Return the texts of packets made by `event`, in order."""
    return [packet.for_testing.str for packet in packets if packet.has("for_testing")]


def events(packets):
    """Return the names of the service events in packets, in order."""
    return [
        name
        for packet in packets
        if packet.has("service_event")
        for name in SERVICE_EVENTS
        if packet.service_event.has(name)
    ]


def kinds(packets):
    """Return the name of the data field of each packet."""
    return [next(kind for kind in KINDS if packet.has(kind)) for packet in packets]
