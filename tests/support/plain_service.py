"""A minimal tracing service with one ring buffer and one session; it checks no requests.

The service has its own thread, so that the thread of a test can block like a traced program.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any, TypeVar

from stretto import _native
from stretto.base.errors import SessionError
from stretto.base.memory import create_sealed_memfd
from stretto.base.network_socket import NetworkListener
from stretto.base.selector_task_runner import SelectorTaskRunner
from stretto.base.sockets import listen
from stretto.ports.producer_ipc_service import ProducerIPCService
from stretto.protos.config import DataSourceConfig, DataSourceDescriptor
from stretto.protos.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.ports.endpoints import OutOfProcessProducer
    from stretto.ports.producer_identity import ProducerIdentity
    from stretto.protos.trace import TracePacket

T = TypeVar("T")

BUFFER = 3
PAGE_SIZE = 4096


class PlainEndpoint:
    """The endpoint of a producer. It starts tracing at the first registration of a data source."""

    def __init__(
        self, service: PlainService, producer: OutOfProcessProducer, producer_id: int
    ) -> None:
        self.service = service
        self.producer = producer
        self.core = _native.ProducerEndpointCore(service.table, producer_id)
        self.memory = -1
        self.emulated = False
        self.producer_provided_shm = False
        self.instances = 0
        self.flushed = 0
        self.log: list[tuple[Any, ...]] = []

    def register_encoded_data_source(self, descriptor: bytes) -> None:
        if self.emulated:
            if not self.instances:
                self.core.allow_buffer(BUFFER, True)
                self.producer.on_shared_memory(-1, 0, PAGE_SIZE)
        elif self.memory < 0:
            self.memory = create_sealed_memfd(self.service.shm_size)
            self.core.attach_fd(self.memory, self.service.shm_size, PAGE_SIZE)
            self.core.allow_buffer(BUFFER, True)
            self.producer.on_shared_memory(self.memory, self.service.shm_size, PAGE_SIZE)
        self.instances += 1
        config = DataSourceConfig(
            name=DataSourceDescriptor.decode(descriptor).name, target_buffer=BUFFER
        )
        self.producer.setup_data_source(self.instances, config)
        self.producer.start_data_source(self.instances, config)

    def on_commit(self, flush_request_id: int) -> None:
        self.flushed = max(self.flushed, flush_request_id)

    def register_trace_writer(self, writer_id: int, target_buffer: int) -> None:
        self.core.register_writer(writer_id, target_buffer)

    def unregister_trace_writer(self, writer_id: int) -> None:
        self.core.unregister_writer(writer_id)

    def sync(self, callback: Callable[[], None]) -> None:
        self.service.runner.post(callback)

    def disconnect(self) -> None:
        self.core.scrape([BUFFER])
        if self.memory >= 0:
            os.close(self.memory)
        self.log.append(("disconnect",))

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *args: self.log.append((name, *args))


class PlainService:
    """A tracing service that listens until `close`."""

    def __init__(
        self, address: str, *, shm_size: int = 1 << 20, buffer_size: int = 8 << 20
    ) -> None:
        self.address = address
        self.shm_size = shm_size
        self.table = _native.BufferTable()
        self.table.create(BUFFER, buffer_size, _native.RING)
        self.readback = _native.Readback(self.table)
        self.endpoints: list[PlainEndpoint] = []
        self.identities: list[ProducerIdentity] = []
        self.offered: list[int] = []
        """Descriptors of memory that producers brought; -1 if none."""
        self.refuse = False
        self.runner = SelectorTaskRunner()
        self.host = ProducerIPCService(self.runner, self._connect)
        listener = listen(address)
        if isinstance(listener, NetworkListener):
            self.address = listener.bound_address
        self.host.listen(listener)
        self._thread = threading.Thread(target=self.runner.run)
        self._thread.start()

    def _connect(
        self, producer: OutOfProcessProducer, identity: ProducerIdentity, *, shm_fd: int
    ) -> Any:
        if self.refuse:
            raise SessionError("no more producers")
        self.identities.append(identity)
        self.offered.append(shm_fd)
        producer_id = len(self.endpoints) + 1
        self.table.set_producer(BUFFER, producer_id, identity.uid, identity.pid)
        self.endpoints.append(PlainEndpoint(self, producer, producer_id))
        self.endpoints[-1].emulated = identity.shm_emulation
        return self.endpoints[-1]

    def call(self, function: Callable[[], T]) -> T:
        """Run a function on the thread of the service; return its result."""
        results: list[T] = []
        done = threading.Event()

        def run() -> None:
            results.append(function())
            done.set()

        self.runner.post(run)
        assert done.wait(10), "the service is stuck"
        return results[0]

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition, evaluated on the thread of the service, is true."""
        met = threading.Event()

        def look() -> None:
            if condition():
                met.set()
            else:
                self.runner.post_delayed(look, 1)

        self.runner.post(look)
        assert met.wait(10), "the condition did not hold within 10 s"

    def read(self) -> list[TracePacket]:
        """Return the packets in the buffer that were not read before."""
        return self.call(self._read)

    def _read(self) -> list[TracePacket]:
        self.readback.begin(BUFFER)
        data, more = b"", True
        while more:
            part, more = self.readback.read(BUFFER, 1 << 20)
            data += part
        return Trace.decode(data).packet

    def close(self) -> None:
        """Close all connections and end the service's thread."""
        self.call(self.host.close)
        self.runner.quit()
        self._thread.join()
        self.runner.close()
