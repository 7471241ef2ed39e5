"""A fixture: a listening service and a consumer here, and producers in child processes."""

from __future__ import annotations

import os
import subprocess
import sys

from stretto.base.clock import SystemClock
from stretto.base.selector_task_runner import SelectorTaskRunner
from stretto.base.sockets import listen
from stretto.ports.producer_ipc_service import ProducerIPCService
from stretto.service.tracing_service import TracingService
from stretto.testing.mock_consumer import MockConsumer

TIMEOUT_MS = 60_000

PRODUCER = """
import os, sys
from stretto import _native
from stretto.ports.producer_ipc_client import ProducerIPCClient, ProducerHints
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
        if "keep" not in sys.argv:
            self.writer.flush()
        self.client.notify_flush_complete(request_id)

producer = Producer()
producer.client = ProducerIPCClient.connect(sys.argv[1], producer, ProducerHints("child"))
producer.client.connect_and_wait(10_000)
producer.writer = _native.TraceWriter(producer.arbiter, producer.target, _native.STALL)
for number in range(int(sys.argv[2])):
    text = f"{number} " + "x" * (number % 300)
    producer.writer.write(TracePacket(for_testing=TestEvent(str=text)).encode())
os.write(1, b"!")
sys.stdin.readline()
"""


class Machine:
    """A listening service, a consumer, and child processes."""

    def __init__(self, address):
        self.runner = SelectorTaskRunner()
        self.service = TracingService(self.runner, SystemClock())
        self.host = ProducerIPCService(
            self.runner, self.service.connect_producer, scrape_by_default=True
        )
        listener = listen(address)
        self.address = getattr(listener, "bound_address", address)
        self.host.listen(listener)
        self.consumer = MockConsumer(self.service)
        self.children = []

    def start_child(self, events, *flags):
        """Start a producer that writes `events` packets; the flag "keep" prevents a flush."""
        command = [sys.executable, "-c", PRODUCER, self.address, str(events), *flags]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.children.append(child)
        return child

    def wait_until_written(self, child):
        """Run the service until the child reports that it has written everything."""
        fd = child.stdout.fileno()
        said = []
        self.runner.watch(fd, lambda: said.append(os.read(fd, 1)))
        self.until(lambda: said)
        self.runner.unwatch(fd)
        assert said == [b"!"]

    def until(self, predicate):
        assert self.runner.run_until(predicate, TIMEOUT_MS), "the service is stuck"

    def finish(self):
        """End the tracing session and return its packets."""
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


def expected(events):
    return [f"{number} " + "x" * (number % 300) for number in range(events)]
