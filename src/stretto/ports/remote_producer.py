"""The service's side of ProducerPort: one producer behind a socket.

    requests   --> the service's endpoint
    CommitData --> native core (fast path)
    commands   <-- the service, as the GetAsyncCommand stream

Rules
- A producer is created by InitializeConnection. Earlier requests are rejected, and so is a second
  InitializeConnection.
- The identity of a producer is reported by the kernel. Over a network the producer states it,
  without verification (`peer`).
- A producer may offer its memory with InitializeConnection. This memory is used if it is sealed and
  has a valid size; otherwise the service provides memory. Over a network no memory is shared:
  chunks arrive inside CommitData.
- Commands before GetAsyncCommand are lost, as in Perfetto. Only the shared memory is sent later, as
  soon as the stream exists.
- A producer that doesn't read, so that its queue gets full, is disconnected: the service never
  waits.
"""

from __future__ import annotations

import os

from stretto.base.errors import RemoteProtocolError
from stretto.ipc.frames import MAX_FRAME_BYTES
from stretto.ipc.host import HostedService
from stretto.ipc.service import Raw
from stretto.ports.encoded_message import field_bytes
from stretto.ports.producer_identity import ProducerIdentity
from stretto.ports.producer_port import PRODUCER_PORT
from stretto.protos import ipc
from stretto.protozero.wire import bytes_field, varint_field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Protocol

    from stretto import _native
    from stretto.ipc.host import Deferred, Handler
    from stretto.ports.endpoints import OutOfProcessProducer, RemoteProducerEndpoint
    from stretto.ports.peer import Peer
    from stretto.protos.config import DataSourceConfig

    class ConnectProducer(Protocol):
        """The type of `TracingService.connect_producer`."""

        def __call__(
            self, producer: OutOfProcessProducer, identity: ProducerIdentity, *, shm_fd: int
        ) -> RemoteProducerEndpoint:
            """Return the endpoint of a new producer.

            Raises:
                StrettoError: There are too many producers, or this producer is not admitted.
            """


SERVICE_ID = 1
"""The id of ProducerPort: it is the first service of its socket."""
COMMIT_DATA_ID = PRODUCER_PORT.method_id("CommitData")
COMMIT_BYTES = 1024
"""Bytes of frames that are handled at a time: about twenty frames, each with one chunk."""

_DESCRIPTOR = 1
"""Field of RegisterDataSourceRequest and UpdateDataSourceRequest."""

_Command = ipc.GetAsyncCommandResponse
_SETUP_DATA_SOURCE = _Command.LAYOUT.field("setup_data_source").number
_START_DATA_SOURCE = _Command.LAYOUT.field("start_data_source").number
_INSTANCE_ID = 1
"""Field of both commands, like `_CONFIG`."""
_CONFIG = 2
_SCRAPING = {
    ipc.InitializeConnectionRequest.SMB_SCRAPING_ENABLED: True,
    ipc.InitializeConnectionRequest.SMB_SCRAPING_DISABLED: False,
}


class RemoteProducer:
    """A producer behind a socket: implements `OutOfProcessProducer` for the service.

    Args:
        connect: Creates the service's endpoint.
        peer: The identity of the producer.
        scrape_by_default: Whether to scrape the producer's memory if it doesn't request a mode.

    Attributes:
        take_fd: Returns the last descriptor received on the connection, or -1.
    """

    def __init__(self, connect: ConnectProducer, peer: Peer, scrape_by_default: bool) -> None:
        self._connect = connect
        self._peer = peer
        self._scrape_by_default = scrape_by_default
        self._endpoint: RemoteProducerEndpoint | None = None
        self._commands: Deferred | None = None
        self._has_memory = False
        # The last config that was sent, and its encoding.
        self._config: tuple[DataSourceConfig, bytes] | None = None
        # Memory to send as soon as the stream exists: (our descriptor, page size).
        self._setup: tuple[int, int] | None = None
        self.take_fd: Callable[[], int] = lambda: -1

    @property
    def service(self) -> HostedService:
        """The handlers of the producer's requests; the connection keeps a reference to them."""
        handlers: dict[str, Handler] = {
            "InitializeConnection": self._initialize_connection,
            "CommitData": self._commit_data,
            "GetAsyncCommand": self._get_async_command,
            "Sync": self._sync,
        }
        return HostedService(PRODUCER_PORT, handlers, self._actions())

    def _actions(self) -> dict[str, Callable[[Any], object]]:
        endpoint = self._connected
        return {
            "RegisterDataSource": lambda r: endpoint().register_encoded_data_source(
                _descriptor_in(r)
            ),
            "UpdateDataSource": lambda r: endpoint().update_encoded_data_source(_descriptor_in(r)),
            "UnregisterDataSource": lambda r: endpoint().unregister_data_source(r.data_source_name),
            "RegisterTraceWriter": lambda r: endpoint().register_trace_writer(
                r.trace_writer_id, r.target_buffer
            ),
            "UnregisterTraceWriter": lambda r: endpoint().unregister_trace_writer(
                r.trace_writer_id
            ),
            "NotifyDataSourceStarted": lambda r: endpoint().notify_data_source_started(
                r.data_source_id
            ),
            "NotifyDataSourceStopped": lambda r: endpoint().notify_data_source_stopped(
                r.data_source_id
            ),
            "ActivateTriggers": lambda r: endpoint().activate_triggers(r.trigger_names),
        }

    def commit_frames(self, data: memoryview, most: int, consume: Callable[[int], object]) -> None:
        """Handle CommitData frames at the front of `data`, without decoding them in Python.

        Only a few frames are handled at a time, so that the service can free chunks in between.

        Args:
            data: Received bytes.
            most: No further frame is handled after this number of bytes.
            consume: Called with the size of the handled frames, once for each frame, because no
                frame must be committed twice.
        """
        done = 0
        while done < min(most, len(data)):
            handled = self._commit_some(data[done : done + COMMIT_BYTES], consume)
            if not handled:
                # The data has ended, or begins with another request or a longer frame.
                self._commit_some(data[done : done + MAX_FRAME_BYTES], consume)
                return
            done += handled

    def _commit_some(self, data: memoryview, consume: Callable[[int], object]) -> int:
        if self._endpoint is None or not self._has_memory:
            return 0
        consumed, frames, flush_id = self._endpoint.core.commit_frames(
            data, SERVICE_ID, COMMIT_DATA_ID
        )
        consume(consumed)
        if frames:
            self._endpoint.on_commit(flush_id)
        return consumed

    def disconnected(self) -> None:
        """Handle the end of the connection."""
        endpoint, self._endpoint = self._endpoint, None
        self._commands = None
        self._drop_setup()
        if endpoint is not None:
            endpoint.disconnect()

    def _connected(self) -> RemoteProducerEndpoint:
        if self._endpoint is None:
            raise RemoteProtocolError("a request before InitializeConnection")
        return self._endpoint

    def _initialize_connection(
        self, request: ipc.InitializeConnectionRequest, deferred: Deferred
    ) -> None:
        if self._endpoint is not None:
            raise RemoteProtocolError("a second InitializeConnection")
        fd = self.take_fd()
        try:
            self._connect_with(request, fd if request.producer_provided_shmem else -1)
        finally:
            if fd >= 0:
                os.close(fd)
        deferred.resolve(
            ipc.InitializeConnectionResponse(
                using_shmem_provided_by_producer=self._has_memory,
                direct_smb_patching_supported=True,
                use_shmem_emulation=self._peer.is_remote,
            )
        )

    def _connect_with(self, request: ipc.InitializeConnectionRequest, shm_fd: int) -> None:
        peer = self._peer
        identity = ProducerIdentity(
            request.producer_name,
            uid=peer.uid,
            pid=peer.pid,
            machine_id=peer.machine_id,
            machine_name=peer.machine_name,
            sdk_version=request.sdk_version,
            shm_emulation=peer.is_remote,
            smb_scraping=_SCRAPING.get(request.smb_scraping_mode, self._scrape_by_default),
            page_size_hint=request.shared_memory_page_size_hint_bytes,
            shm_size_hint=request.shared_memory_size_hint_bytes,
        )
        self._endpoint = self._connect(self, identity, shm_fd=-1 if peer.is_remote else shm_fd)
        self._has_memory = self._endpoint.producer_provided_shm

    def _commit_data(self, request: Raw, deferred: Deferred) -> None:
        # The fast path handles most commits. Only commits that request a reply, or that precede
        # the shared memory, arrive here.
        endpoint = self._connected()
        if self._has_memory:
            endpoint.on_commit(endpoint.core.commit(request.data))
            deferred.resolve(ipc.CommitDataResponse())

    def _get_async_command(self, _request: ipc.GetAsyncCommandRequest, deferred: Deferred) -> None:
        self._connected()
        self._commands = deferred if deferred.pending else None
        self._send_setup()

    def _sync(self, _request: ipc.SyncRequest, deferred: Deferred) -> None:
        self._connected().sync(lambda: deferred.resolve(ipc.SyncResponse()))

    # --- calls of the service (OutOfProcessProducer)

    def on_connect(self) -> None:
        """Send nothing: the reply to InitializeConnection reports the connection."""

    def on_disconnect(self) -> None:
        """Send nothing: the producer detects the end of the connection."""

    def on_tracing_setup(self, arbiter: _native.Arbiter) -> None:
        """Send nothing: a remote producer receives memory instead of an arbiter."""

    def on_shared_memory(self, fd: int, size_bytes: int, page_size_bytes: int) -> None:
        """Send the memory to the producer.

        Args:
            fd: Its descriptor, owned by the service; -1 if the producer provided the memory.
            size_bytes: Not sent: the producer reads it from the descriptor.
            page_size_bytes: Size of a page.
        """
        del size_bytes
        self._drop_setup()
        try:
            self._setup = (os.dup(fd) if fd >= 0 else -1, page_size_bytes)
        except OSError:
            return  # No descriptor is free. Without memory, the producer writes nothing.
        self._has_memory = True
        self._send_setup()

    def setup_data_source(self, instance_id: int, config: DataSourceConfig) -> None:
        self._command(self._about_instance(_SETUP_DATA_SOURCE, instance_id, config))

    def start_data_source(self, instance_id: int, config: DataSourceConfig) -> None:
        self._command(self._about_instance(_START_DATA_SOURCE, instance_id, config))

    def _about_instance(self, command: int, instance_id: int, config: DataSourceConfig) -> Raw:
        """Return a setup or start command; the encoded config is cached for the next command."""
        if self._config is None or self._config[0] is not config:
            self._config = config, config.encode()
        fields = varint_field(_INSTANCE_ID, instance_id) + bytes_field(_CONFIG, self._config[1])
        return Raw(bytes_field(command, fields))

    def stop_data_source(self, instance_id: int) -> None:
        self._command(_Command(stop_data_source=_Command.StopDataSource(instance_id=instance_id)))

    def flush(self, request_id: int, instance_ids: Sequence[int], flags: int) -> None:
        flush = _Command.Flush(
            data_source_ids=list(instance_ids), request_id=request_id, flags=flags
        )
        self._command(_Command(flush=flush))

    def clear_incremental_state(self, instance_ids: Sequence[int]) -> None:
        clear = _Command.ClearIncrementalState(data_source_ids=list(instance_ids))
        self._command(_Command(clear_incremental_state=clear))

    def _send_setup(self) -> None:
        if self._setup is None or self._commands is None:
            return
        fd, page_size_bytes = self._setup
        setup = _Command.SetupTracing(shared_buffer_page_size_kb=page_size_bytes // 1024)
        self._command(_Command(setup_tracing=setup), fd)
        self._drop_setup()

    def _drop_setup(self) -> None:
        if self._setup is not None and self._setup[0] >= 0:
            os.close(self._setup[0])
        self._setup = None

    def _command(self, command: ipc.GetAsyncCommandResponse | Raw, fd: int = -1) -> None:
        if self._commands is not None:
            self._commands.resolve(command, has_more=True, fd=fd)


def _descriptor_in(request: Raw) -> bytes:
    """Return the encoded descriptor in a request that registers or updates a data source."""
    descriptor = field_bytes(request.data, _DESCRIPTOR)
    if not descriptor:
        raise RemoteProtocolError("a data source without a descriptor")
    return descriptor
