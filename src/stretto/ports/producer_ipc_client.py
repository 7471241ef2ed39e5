"""The producer's side of ProducerPort: an endpoint for a service behind a socket.

    calling threads  --requests-->  SendQueue  -->  socket
    writing threads  --CommitData-->   "
    IPC thread       <--replies, commands--  socket  --> Producer's callbacks

Life cycle
    ProducerIPCClient(...)   sends nothing yet
    connect_and_wait()    the handshake and every command that follows from it,
                          on the calling thread; then starts the IPC thread
    connect_soon()        the same on the IPC thread; returns at once
    suspend / resume      around a fork in the parent: stops the IPC thread meanwhile
    abandon               in the child of a fork: closes the descriptor, sends nothing
    disconnect            ends the connection

Rules
- Callbacks run on the IPC thread, or inside `connect_and_wait` on its caller's
  thread. They may call every method here. An exception in a callback ends the connection.
- Trace data doesn't pass through Python: the arbiter sends it.
- The service must run as root or as this process's user: no other user may provide memory or
  start tracing. Over a network the service's user is unknown, and is trusted because the
  program has chosen the address.
- Memory that was filled before the connection (`startup_memory`) is offered with the handshake.
  If the service accepts it, `on_tracing_setup` is called during the handshake.
- Over a network no memory is shared: this process sends its identity (`peer`), and trace data
  inside messages.
- The socket is shut down before its descriptor is closed, so that a late commit can't be written
  to another file that reuses the number.
"""

from __future__ import annotations

import os
import time

# Importing `threading` would take a millisecond.
from _thread import get_ident
from sys import is_finalizing

from stretto import _native
from stretto.base.errors import RemoteProtocolError, TransportError
from stretto.base.sockets import connect
from stretto.base.version import SDK_VERSION
from stretto.ipc.client import Client
from stretto.ipc.frames import FrameReader, encode_frame
from stretto.ports.producer_port import PRODUCER_PORT
from stretto.protos import ipc
from stretto.protos.config import DataSourceConfig

TYPE_CHECKING = False  # Importing `typing` takes longer than importing this module.
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stretto.base.stream_socket import StreamSocket
    from stretto.ipc.client import ServiceProxy
    from stretto.ipc.service import Message
    from stretto.ports.endpoints import Producer
    from stretto.ports.startup_memory import StartupMemory
    from stretto.protos.config import DataSourceDescriptor

RECEIVES_PER_CALL = 8
"""After this number of receives the IPC thread releases the GIL, then continues."""

DRAIN_INTERVAL_MS = 10
"""Interval at which the handshake, which only waits for input, retries pending output."""

EMULATED_SHM_BYTES = 1 << 20
"""Memory of a producer without shared memory; `ProducerHints.shm_size` overrides it."""

MIN_PAGE_BYTES = 4096

_Request = ipc.InitializeConnectionRequest


class ProducerHints:
    """The producer's name and preferences, sent with InitializeConnection.

    Args:
        name: Name of the producer.
        page_size: Size of a page of shared memory in bytes; 0 if the service decides.
        shm_size: Size of the shared memory in bytes; 0 if the service decides.
        sdk_version: Version shown in the state of the service.
        smb_scraping: Whether the service may read chunks that aren't complete yet.
    """

    def __init__(
        self,
        name: str,
        *,
        page_size: int = 0,
        shm_size: int = 0,
        sdk_version: str = SDK_VERSION,
        smb_scraping: bool = True,
    ) -> None:
        self.name = name
        self.page_size = page_size
        self.shm_size = shm_size
        self.sdk_version = sdk_version
        self.smb_scraping = smb_scraping


class ProducerIPCClient:
    """A `ProducerEndpoint` over a socket.

    Args:
        end: The socket, connected to a service; owned by this object from now on.
        producer: Receives the callbacks; registers its data sources in `on_connect`.
        hints: The producer's name and preferences, sent with InitializeConnection.
        memory: Memory that writers have filled before this connection, if any.
    """

    def __init__(
        self,
        end: StreamSocket,
        producer: Producer,
        hints: ProducerHints,
        memory: StartupMemory | None = None,
    ) -> None:
        self._end = end
        self._producer = producer
        self._hints = hints
        self._memory = memory
        self._queue = _native.SendQueue(end.fileno())
        self._thread: _native.IpcThread | None = _native.IpcThread(
            end.fileno(), self._queue, self._on_readable
        )
        self._client = Client(self._queue, end)
        self._reader = FrameReader()
        self._proxy: ServiceProxy | None = None
        self._arbiter: _native.Arbiter | None = None
        self._ipc_thread_ident = 0
        self._gone = self._left_within_callback = False
        self._emulates = False
        self._patches_directly = False

    @classmethod
    def connect(
        cls,
        address: str,
        producer: Producer,
        hints: ProducerHints,
        timeout_ms: float = 5000,
        memory: StartupMemory | None = None,
    ) -> ProducerIPCClient:
        """Connect to the producer socket of a service.

        Args:
            address: A path, `@name`, or a network address (`base.socket_address`).
            producer: Receives the callbacks; registers its data sources in `on_connect`.
            hints: The producer's name and preferences, sent with InitializeConnection.
            timeout_ms: Limit in ms for connecting; the handshake has its own limit.
            memory: Memory that writers have filled before this connection, if any.

        Raises:
            TransportError: There is no service, or the service runs as another user.
        """
        end = connect(address, timeout_ms)
        peer = end.peer_credentials()
        if peer is not None and peer.uid not in (0, os.geteuid()):
            end.close()
            raise TransportError(
                f"the service at {address} runs as user {peer.uid}: it must be ours or root's, "
                "else it could read what this program traces"
            )
        return cls(end, producer, hints, memory)

    @property
    def connected(self) -> bool:
        """Whether the handshake is done and the connection is open."""
        return self._proxy is not None and not self._gone and not self._queue.broken

    def connect_and_wait(self, deadline_ms: float = 5000) -> None:
        """Perform the handshake and every command that follows from the registrations.

        When it returns, the data sources of the running sessions are set up and started, and
        the IPC thread runs.

        Args:
            deadline_ms: Time limit in ms.

        Raises:
            TransportError: The service didn't answer in time, or disconnected.
            RemoteProtocolError: The peer offers no ProducerPort.
        """
        deadline = time.monotonic() + deadline_ms / 1000
        try:
            self._wait(self._bind, deadline)
            if self._proxy is None:
                raise RemoteProtocolError(
                    "the socket offers no ProducerPort: give the producer socket's address"
                )
            self._initialize()
            self._wait(self._sync, deadline)
            self.resume()
        except BaseException:
            # A KeyboardInterrupt or an exception of a callback ends the connection, too.
            self.disconnect()
            raise

    def connect_soon(self, on_connected: Callable[[], None]) -> None:
        """Perform the handshake on the IPC thread; return at once.

        Args:
            on_connected: Called on the IPC thread when all commands that follow from the
                registrations have been handled. If the connection fails before, the producer is
                disconnected instead.

        Raises:
            TransportError: The service has disconnected already.
        """

        def on_bound() -> None:
            if self._proxy is None:
                self._end_connection()
            else:
                self._initialize()
                self.sync(lambda: on_connected() if self.connected else None)

        self._bind(on_bound)
        if self._gone:
            raise TransportError("the tracing service disconnected: its log may say why")
        self.resume()

    def ask_to_suspend(self) -> None:
        """Ask the IPC thread to end before a fork; `suspend` waits for it."""
        thread = self._thread
        if thread is not None:
            thread.ask_to_stop()

    def suspend(self) -> None:
        """Stop the IPC thread before a fork. Meanwhile, commands are queued in the socket.

        No effect within a callback, because then the IPC thread itself forks.
        """
        thread = self._thread
        if thread is not None and not self._within_callback():
            thread.stop()

    def resume(self) -> None:
        """Start the IPC thread again after a fork, in the parent."""
        thread = self._thread
        if thread is not None and not self._gone:
            thread.start()

    def abandon(self) -> None:
        """In the child of a fork: close this process's copy of the parent's socket.

        Sends nothing and calls no callback. Only `disconnect` may follow.
        """
        self._gone = True
        self._ipc_thread_ident = 0
        if self._arbiter is not None:
            self._arbiter.disable()
        if self._thread is not None and not self._thread.running:
            self._thread = None  # Frees the thread object, which closes its descriptors.
        self._end.close()

    def disconnect(self) -> None:
        """End the connection, without a callback to the producer. Idempotent.

        Batched commits are sent if the socket accepts them. Within a callback the descriptor stays
        open until the callback returns, because the IPC thread uses it.
        """
        if self._arbiter is not None and not self._gone:
            self._arbiter.flush()
        self._end_connection()
        self._left_within_callback = self._within_callback()
        self.suspend()
        thread = self._thread
        if thread is not None and not thread.running:
            self._thread = None
            self._end.close()

    def _within_callback(self) -> bool:
        # `get_ident` may be None at the interpreter's exit; then no callback runs.
        return self._ipc_thread_ident != 0 and get_ident() == self._ipc_thread_ident

    def __del__(self, _is_finalizing: Callable[[], bool] = is_finalizing) -> None:
        # Writers may keep the arbiter alive. It must not send to a closed descriptor.
        if self._queue.broken:  # In the child of a fork, the connection is the parent's.
            if not _is_finalizing():  # At the exit, other modules may have no globals any more.
                self.abandon()
        else:
            self.disconnect()

    def _end_connection(self) -> None:
        """Stop all sending and reading."""
        if self._gone:
            return
        self._gone = True
        if self._arbiter is not None:
            self._arbiter.disable()
        self._end.shutdown()
        # Push an empty frame, which peers ignore. Sending fails after the shutdown, and the failure
        # marks the queue as broken.
        self._queue.push(b"\0\0\0\0")
        self._queue.drain()
        self._client.close()

    def _bind(self, done: Callable[[], None]) -> None:
        if self._end.peer_credentials() is None:
            self._send_identity()

        def on_bound(proxy: ServiceProxy | None) -> None:
            self._proxy = proxy
            done()

        self._client.bind(PRODUCER_PORT, on_bound)

    def _send_identity(self) -> None:
        from stretto.ports.peer import own_identity

        self._queue.push(encode_frame(ipc.IPCFrame(set_peer_identity=own_identity())))

    def _initialize(self) -> None:
        hints = self._hints
        enabled, disabled = _Request.SMB_SCRAPING_ENABLED, _Request.SMB_SCRAPING_DISABLED
        request = _Request(
            producer_name=hints.name,
            shared_memory_page_size_hint_bytes=hints.page_size,
            shared_memory_size_hint_bytes=hints.shm_size,
            smb_scraping_mode=enabled if hints.smb_scraping else disabled,
            sdk_version=hints.sdk_version,
        )
        self._invoke("InitializeConnection", request, self._on_initialized, self._offer(request))
        self._invoke("GetAsyncCommand", ipc.GetAsyncCommandRequest(), self._on_command)
        self._producer.on_connect()

    def _offer(self, request: _Request) -> int:
        """Offer the startup memory in the request; return its descriptor, or -1."""
        memory = self._memory
        if memory is None or self._end.peer_credentials() is None:
            return -1
        request.shared_memory_page_size_hint_bytes = memory.page_size
        request.shared_memory_size_hint_bytes = memory.size
        request.producer_provided_shmem = True
        return memory.fileno()

    def _on_initialized(
        self, reply: ipc.InitializeConnectionResponse | None, _has_more: bool
    ) -> None:
        if reply is None:
            if self._gone:
                return  # The service has disconnected.
            raise RemoteProtocolError(
                "the service refuses this producer: it is locked down, or has too many"
            )
        self._emulates = reply.use_shmem_emulation
        self._patches_directly = reply.direct_smb_patching_supported
        memory, self._memory = self._memory, None
        if memory is not None and memory.settle(
            reply, self._commit_channel(), scrapable=self._hints.smb_scraping
        ):
            self._arbiter = memory.arbiter
            self._producer.on_tracing_setup(self._arbiter)

    def _sync(self, done: Callable[[], None]) -> None:
        self.sync(done)

    def _wait(self, request: Callable[[Callable[[], None]], None], deadline: float) -> None:
        """Call `request` with a callback, and handle input until the callback is called."""
        answers: list[bool] = []
        request(lambda: answers.append(True))
        while True:
            self._queue.drain()
            if self._gone or self._queue.broken:
                raise TransportError("the tracing service disconnected: its log may say why")
            if answers:
                return
            remaining_ms = (deadline - time.monotonic()) * 1000
            if remaining_ms <= 0:
                raise TransportError("the tracing service doesn't answer: is it stopped?")
            slice_ms = DRAIN_INTERVAL_MS if self._queue.pending else remaining_ms
            self._end.wait_readable(min(remaining_ms, slice_ms))
            self._receive_some()

    # --- methods of ProducerEndpoint

    def register_data_source(self, descriptor: DataSourceDescriptor) -> None:
        """Register a data source."""
        request = ipc.RegisterDataSourceRequest(data_source_descriptor=descriptor)
        self._invoke("RegisterDataSource", request)

    def update_data_source(self, descriptor: DataSourceDescriptor) -> None:
        """Replace the descriptor of a data source that has this name and this id, which isn't 0."""
        request = ipc.UpdateDataSourceRequest(data_source_descriptor=descriptor)
        self._invoke("UpdateDataSource", request)

    def unregister_data_source(self, name: str) -> None:
        """Unregister a data source."""
        self._invoke("UnregisterDataSource", ipc.UnregisterDataSourceRequest(data_source_name=name))

    def notify_flush_complete(self, request_id: int) -> None:
        """Commit everything written so far, then answer the flush request."""
        if self._arbiter is not None:
            self._arbiter.notify_flush_complete(request_id)
        else:
            self._invoke("CommitData", ipc.CommitDataRequest(flush_request_id=request_id))

    def notify_data_source_started(self, instance_id: int) -> None:
        """Report that the instance has started."""
        self._invoke(
            "NotifyDataSourceStarted",
            ipc.NotifyDataSourceStartedRequest(data_source_id=instance_id),
        )

    def notify_data_source_stopped(self, instance_id: int) -> None:
        """Commit the data of the instance, then report that it has stopped."""
        if self._arbiter is not None:
            self._arbiter.flush()
        self._invoke(
            "NotifyDataSourceStopped",
            ipc.NotifyDataSourceStoppedRequest(data_source_id=instance_id),
        )

    def activate_triggers(self, names: Sequence[str]) -> None:
        """Activate triggers."""
        self._invoke("ActivateTriggers", ipc.ActivateTriggersRequest(trigger_names=list(names)))

    def sync(self, callback: Callable[[], None]) -> None:
        """Call back after the service has handled all earlier requests, or has disconnected."""
        self._invoke("Sync", ipc.SyncRequest(), lambda _reply, _has_more: callback())

    def _invoke(
        self,
        name: str,
        request: Message,
        on_reply: Callable[..., object] | None = None,
        fd: int = -1,
    ) -> None:
        if self._gone or self._proxy is None:
            return
        known = self._proxy.method_id(name) != 0
        if not self._proxy.invoke(name, request, on_reply, fd) and known:
            # The queue (1 MiB) is full: the service has stopped reading.
            self._end_connection()

    def _on_readable(self) -> bool:
        """Handle input on the IPC thread; return False to stop reading."""
        self._ipc_thread_ident = get_ident()
        was_gone = self._gone
        try:
            self._receive_some()
        except RemoteProtocolError:
            self._end_connection()
        except BaseException:
            # A callback has failed: the producer's state is unknown, so end the connection.
            self._end_connection()
            raise
        finally:
            if self._gone and not was_gone:
                self._producer.on_disconnect()
            self._ipc_thread_ident = 0
            if self._left_within_callback:
                self._thread = None  # The IPC thread ends when this method returns.
                self._end.close()
        return not self._gone

    def _receive_some(self) -> None:
        try:
            for _ in range(RECEIVES_PER_CALL):
                if self._gone or not self._receive():
                    return
        except TransportError:
            self._end_connection()

    def _receive(self) -> bool:
        """Receive data once and handle its frames; return whether more data may be available.

        A receive that leaves room has emptied the socket, or has stopped at a descriptor: then the
        caller is called again.
        """
        space = self._reader.space()
        received = self._end.recv_into(space)
        if received is None:
            return False
        size, fd = received
        self._client.park_fd(fd)
        if size == 0:
            self._end_connection()
            return False
        self._reader.received(size)
        while not self._gone and (payload := self._reader.next_payload()) is not None:
            self._client.receive(payload)
        return size == len(space)

    def _on_command(self, command: ipc.GetAsyncCommandResponse | None, _has_more: bool) -> None:
        if command is None:
            # The service refuses the request, or the connection has ended.
            return
        producer = self._producer
        if (setup := command.setup_data_source) is not None:
            producer.setup_data_source(setup.new_instance_id, _config(setup))
        elif (start := command.start_data_source) is not None:
            producer.start_data_source(start.new_instance_id, _config(start))
        elif (stop := command.stop_data_source) is not None:
            producer.stop_data_source(stop.instance_id)
        elif (flush := command.flush) is not None:
            producer.flush(flush.request_id, flush.data_source_ids, flush.flags)
        elif (clear := command.clear_incremental_state) is not None:
            producer.clear_incremental_state(clear.data_source_ids)
        elif (tracing := command.setup_tracing) is not None:
            self._on_setup_tracing(tracing)

    def _on_setup_tracing(self, setup: ipc.GetAsyncCommandResponse.SetupTracing) -> None:
        fd = self._client.take_fd()
        if self._proxy is None or self._arbiter is not None:
            if fd >= 0:
                os.close(fd)
            return
        try:
            self._arbiter = self._make_arbiter(fd, setup.shared_buffer_page_size_kb * 1024)
        except (ValueError, OSError) as error:
            raise RemoteProtocolError(
                f"the service's shared memory is unusable: {error}"
            ) from error
        finally:
            if fd >= 0:
                os.close(fd)
        self._producer.on_tracing_setup(self._arbiter)

    def _commit_channel(self) -> tuple[_native.SendQueue, int, int, int, int]:
        assert self._proxy is not None
        return (
            self._queue,
            self._proxy.service_id,
            self._proxy.method_id("CommitData"),
            self._proxy.method_id("RegisterTraceWriter"),
            self._proxy.method_id("UnregisterTraceWriter"),
        )

    def _make_arbiter(self, fd: int, page_size: int) -> _native.Arbiter:
        if self._emulates:
            size = self._hints.shm_size or EMULATED_SHM_BYTES
            page_size = page_size or MIN_PAGE_BYTES
            arbiter = _native.Arbiter.unbound(-1, page_size, size - size % page_size)
            arbiter.emulate(self._hints.smb_scraping)
            arbiter.bind(*self._commit_channel())
            return arbiter
        if fd < 0:
            raise RemoteProtocolError("the service set up tracing without shared memory")
        arbiter = _native.Arbiter.unbound(fd, page_size)
        arbiter.bind(*self._commit_channel(), self._patches_directly)
        return arbiter


def _config(
    command: ipc.GetAsyncCommandResponse.SetupDataSource
    | ipc.GetAsyncCommandResponse.StartDataSource,
) -> DataSourceConfig:
    return command.config or DataSourceConfig()
