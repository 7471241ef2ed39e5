"""Either side may create a producer's shared memory; producers over TCP use none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stretto import _native
from stretto.ports.producer_ipc_client import ProducerHints, ProducerIPCClient
from stretto.ports.startup_memory import StartupMemory
from stretto.protos import trace as trace_protos
from stretto.protos.config import DataSourceConfig, DataSourceDescriptor, TraceConfig
from stretto.protos.trace import TracePacket
from stretto.testing.decoded_packets import decode_packets
from tests.support.descriptors import expect_new_descriptors, open_descriptors
from tests.support.live_program import LiveProgram
from tests.support.plain_service import PlainService
from tests.support.service_process import ServiceProcess

KB = 1024


class Producer:
    """A producer with one data source, "ds"."""

    def __init__(self) -> None:
        self.client: ProducerIPCClient | None = None
        self.arbiter: _native.Arbiter | None = None
        self.target = 0

    def on_connect(self) -> None:
        assert self.client is not None
        self.client.register_data_source(DataSourceDescriptor(name="ds"))

    def on_disconnect(self) -> None: ...

    def on_tracing_setup(self, arbiter: _native.Arbiter) -> None:
        self.arbiter = arbiter

    def setup_data_source(self, instance_id: int, config: DataSourceConfig) -> None:
        self.target = config.target_buffer

    def start_data_source(self, instance_id: int, config: DataSourceConfig) -> None: ...

    def stop_data_source(self, instance_id: int) -> None: ...

    def flush(self, request_id: int, instance_ids: object, flags: int) -> None:
        assert self.client is not None
        self.client.notify_flush_complete(request_id)

    def clear_incremental_state(self, instance_ids: object) -> None: ...

    def connect(
        self, address: Path, hints: ProducerHints, memory: StartupMemory | None = None
    ) -> ProducerIPCClient:
        self.client = ProducerIPCClient.connect(str(address), self, hints, memory=memory)
        self.client.connect_and_wait(30_000)
        return self.client


@pytest.fixture
def address(tmp_path: Path) -> Path:
    return tmp_path / "producer.sock"


@pytest.fixture
def service(address: Path) -> Iterator[ServiceProcess]:
    with ServiceProcess(address) as service:
        source = TraceConfig.DataSource(config=DataSourceConfig(name="ds"))
        buffer = TraceConfig.BufferConfig(size_kb=4096)
        service.start("one", TraceConfig(buffers=[buffer], data_sources=[source]))
        yield service


def packet(text: str) -> bytes:
    return TracePacket(for_testing=trace_protos.TestEvent(str=text)).encode()


def texts(trace: bytes) -> list[str]:
    packets = decode_packets(trace)
    return [packet.for_testing.str for packet in packets if packet.for_testing is not None]


def write(arbiter: _native.Arbiter | None, target: int, *written: str) -> None:
    assert arbiter is not None
    writer = _native.TraceWriter(arbiter, target, _native.STALL_THEN_DROP)
    for text in written:
        assert writer.write(packet(text))
    writer.close()


@pytest.mark.parametrize(
    ("page_kb", "size_kb", "given_kb"),
    [
        (4, 64, 64),
        (8, 1024, 1024),
        (16, 512, 512),
        (32, 4096, 4096),
        (32, 64 * KB, 32 * KB),  # the service limits the size to 32 MiB
        (64, 1024, 1024),  # the service limits the page size to 32 KiB
        (12, 1024, 256),  # the service replaces an unsupported page size
        (32, 33, 256),  # the service replaces an unsupported number of pages
        (0, 0, 256),
    ],
)
def test_service_creates_memory_of_the_requested_size(
    service: ServiceProcess, address: Path, page_kb: int, size_kb: int, given_kb: int
) -> None:
    producer = Producer()
    hints = ProducerHints("test", page_size=page_kb * KB, shm_size=size_kb * KB)
    client = producer.connect(address, hints)
    assert producer.arbiter is not None
    assert producer.arbiter.size == given_kb * KB
    expected = [f"{number} {'x' * 1000}" for number in range(1000)]
    write(producer.arbiter, producer.target, *expected)
    assert texts(service.stop("one")) == expected
    client.disconnect()


def test_service_adopts_the_memory_of_the_producer(service: ServiceProcess, address: Path) -> None:
    producer, memory = Producer(), StartupMemory(512 * KB, 16 * KB)
    write(memory.arbiter, 1 << 16, "before")
    client = producer.connect(address, ProducerHints("test"), memory)
    assert producer.arbiter is memory.arbiter
    memory.arbiter.bind_startup_target_buffer(1, producer.target)
    write(memory.arbiter, producer.target, "after")
    assert texts(service.stop("one")) == ["before", "after"]
    client.disconnect()


def test_unusable_shared_memory_of_a_producer_is_refused(
    service: ServiceProcess, address: Path
) -> None:
    producer, memory = Producer(), StartupMemory(512 * KB, 16 * KB)
    refused: list[_native.Arbiter] = []
    memory.on_refused = refused.append
    memory.page_size = 12 * KB  # 12 KiB is no valid page size
    client = producer.connect(address, ProducerHints("test"), memory)
    assert refused == [memory.arbiter]
    writer = _native.TraceWriter(memory.arbiter, 1 << 16)
    assert not writer.write(packet("lost"))
    assert producer.arbiter is not memory.arbiter
    write(producer.arbiter, producer.target, "in the service's memory")
    assert texts(service.stop("one")) == ["in the service's memory"]
    client.disconnect()


EARLY = """
import stretto
from stretto.protos.trace import TestEvent, TracePacket

class Early(stretto.DataSource):
    name = "early"
    count = 0

    def on_start(self):
        Early.count += 1
        for number in range(3000):
            text = f"{Early.count} {number} " + "x" * 300
            assert self.write(TracePacket(for_testing=TestEvent(str=text)))

Early.register()
session = stretto.setup_startup_tracing('data_sources { config { name: "early" } }')
"""


def early(start: int) -> list[str]:
    return [f"{start} {number} " + "x" * 300 for number in range(3000)]


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
def test_startup_events_reach_a_service_over_tcp(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = PlainService(f"{host}:0")
    monkeypatch.setenv("PERFETTO_PRODUCER_SOCK_NAME", service.address)
    try:
        with LiveProgram(EARLY) as program:
            program.wait_for("session.state == 'adopted'")
            assert program.run("Early.count") == 1
            program.run("[each.writer().flush() for each in Early.instances()]")
            program.run("stretto.disconnect()")
        service.wait_for(lambda: ("disconnect",) in service.endpoints[0].log)
        assert service.endpoints[0].emulated
        packets = service.read()
    finally:
        service.close()
    found = [packet.for_testing.str for packet in packets if packet.for_testing is not None]
    assert found == early(1)


def test_only_startup_events_are_lost_if_the_service_does_not_adopt_the_memory(
    address: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loss of the startup events is logged; later events of the session are recorded."""
    service = PlainService(str(address))
    monkeypatch.setenv("PERFETTO_PRODUCER_SOCK_NAME", str(address))
    try:
        with LiveProgram(EARLY) as program:
            program.wait_for("session.state == 'aborted' and Early.count == 2")
            program.wait_for("len(Early.instances()) == 1")
            program.run("stretto.disconnect()")
        service.wait_for(lambda: ("disconnect",) in service.endpoints[0].log)
        packets = service.read()
    finally:
        service.close()
    found = [packet.for_testing.str for packet in packets if packet.for_testing is not None]
    assert found == early(2)


def test_no_descriptor_of_the_shared_memory_remains_open(
    service: ServiceProcess, address: Path
) -> None:
    before = open_descriptors()
    for _ in range(3):
        producer = Producer()
        client = producer.connect(address, ProducerHints("test"), StartupMemory(512 * KB, 4 * KB))
        client.disconnect()
        producer.client = producer.arbiter = None
        del client, producer
    expect_new_descriptors(before, 0)
