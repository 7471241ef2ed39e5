"""The service with producers in other processes: real frames, real sealed memory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from stretto.base.clock import SystemClock
from stretto.base.selector_task_runner import SelectorTaskRunner
from stretto.base.unix_socket import UnixListener
from stretto.ports.producer_host import ProducerHost
from stretto.service.tracing_service import TracingService
from stretto.testing.decoded_packets import decode_packets
from stretto.testing.mock_consumer import MockConsumer
from tests.support.service_setup import make_config, texts

TIMEOUT_MS = 20_000

PRODUCER = """
import os, sys
from stretto import _native
from stretto.ports.producer_client import ProducerClient, ProducerHints
from stretto.protos.config import DataSourceDescriptor
from stretto.protos.trace import TestEvent, TracePacket

class Producer:
    def on_connect(self):
        self.client.register_data_source(DataSourceDescriptor(name="ds", will_notify_on_stop=True))
    def on_disconnect(self): pass
    def on_tracing_setup(self, arbiter): self.arbiter = arbiter
    def setup_data_source(self, instance_id, config): self.target = config.target_buffer
    def start_data_source(self, instance_id, config): pass
    def stop_data_source(self, instance_id): self.client.notify_data_source_stopped(instance_id)
    def clear_incremental_state(self, instance_ids): pass
    def flush(self, request_id, instance_ids, flags):
        self.writer.flush()
        self.client.notify_flush_complete(request_id)

producer = Producer()
producer.client = ProducerClient.connect(sys.argv[1], producer, ProducerHints("child"))
producer.client.connect_and_wait(10_000)
producer.writer = _native.TraceWriter(producer.arbiter, producer.target, _native.STALL)
for number in range(int(sys.argv[2])):
    text = f"{number} " + "x" * (number % 300)
    producer.writer.write(TracePacket(for_testing=TestEvent(str=text)).encode())
os.write(1, b"!")
sys.stdin.readline()
"""


class Machine:
    """A service that listens, a consumer, and child processes."""

    def __init__(self, folder):
        self.address = str(folder / "producer.sock")
        self.runner = SelectorTaskRunner()
        self.service = TracingService(self.runner, SystemClock())
        self.host = ProducerHost(self.runner, self.service.connect_producer, scrape_by_default=True)
        self.host.listen(UnixListener(self.address))
        self.consumer = MockConsumer(self.service)
        self.children = []

    def start_child(self, events):
        command = [sys.executable, "-c", PRODUCER, self.address, str(events)]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.children.append(child)
        return child

    def wait_until_written(self, child):
        """Serve until the child says that it has written all."""
        fd = child.stdout.fileno()
        said = []
        self.runner.watch(fd, lambda: said.append(os.read(fd, 1)))
        self.until(lambda: said)
        self.runner.unwatch(fd)
        assert said == [b"!"]

    def until(self, predicate):
        assert self.runner.run_until(predicate, TIMEOUT_MS), "the service is stuck"

    def finish(self):
        """End the session and return its packets."""
        self.consumer.endpoint.disable_tracing()
        self.until(lambda: self.consumer.disabled)
        self.consumer.endpoint.read_buffers()
        self.until(lambda: self.consumer.reads and not self.consumer.reads[-1][1])
        return self.consumer.packets()

    def close(self):
        for child in self.children:
            child.kill()
            child.wait()
            child.stdin.close()
            child.stdout.close()
        self.host.close()
        self.runner.close()


@pytest.fixture
def machine(tmp_path):
    machine = Machine(tmp_path)
    yield machine
    machine.close()


def expected(events):
    return [f"{number} " + "x" * (number % 300) for number in range(events)]


def test_flush_brings_everything(machine):
    machine.consumer.enable(make_config("ds", size_kb=8192))
    child = machine.start_child(20_000)
    machine.wait_until_written(child)
    machine.consumer.flush(10_000)
    machine.until(lambda: machine.consumer.flushes)
    assert machine.consumer.flushes == [True]
    started = time.monotonic()
    packets = machine.finish()
    assert time.monotonic() - started < 4  # The child confirms its stop: no time-out.
    assert texts(packets) == expected(20_000)
    found = [packet for packet in packets if packet.has("for_testing")]
    assert {packet.trusted_pid for packet in found} == {child.pid}
    assert {packet.trusted_uid for packet in found} == {os.getuid()}
    assert not any(packet.previous_packet_dropped for packet in packets)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_what_was_written_survives_the_death_of_its_writer(machine, how):
    machine.consumer.enable(make_config("ds", size_kb=8192))
    child = machine.start_child(5000)
    machine.wait_until_written(child)
    child.send_signal(how)
    assert child.wait() == -how
    machine.until(lambda: not machine.service.producers)
    assert texts(machine.finish()) == expected(5000)


def test_several_processes_stream_into_one_file(machine, tmp_path):
    path = tmp_path / "trace"
    config = make_config("ds", size_kb=16384, write_into_file=True, output_path=str(path))
    config.file_write_period_ms = 100
    machine.consumer.enable(config)
    children = [machine.start_child(5000) for _ in range(3)]
    for child in children:
        machine.wait_until_written(child)
    machine.consumer.flush(10_000)
    machine.until(lambda: machine.consumer.flushes)
    machine.consumer.endpoint.disable_tracing()
    machine.until(lambda: machine.consumer.disabled)
    packets = decode_packets(path.read_bytes())
    by_pid = {}
    for packet in packets:
        if packet.has("for_testing"):
            by_pid.setdefault(packet.trusted_pid, []).append(packet.for_testing.str)
    assert by_pid == {child.pid: expected(5000) for child in children}
    assert packets[-1].has("trace_stats")
