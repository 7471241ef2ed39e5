"""Data sources, which write a program's own packets.

A subclass defines a data source; each session that enables its name gets an instance, which
lives as long as the session records::

    class Screenshots(stretto.DataSource):
        name = "com.example.screenshots"

        def on_start(self) -> None: ...

    Screenshots.register()

    for source in Screenshots.instances():          # empty while no session runs
        source.write(TracePacket(for_testing=TestEvent(str="hello")))

Calls for an instance: `on_setup`, `on_start`, (`on_flush` | `on_clear_incremental_state`)*,
`on_stop`. These run on a tracing thread, one at a time; `write` may be called from any
thread, and each thread writes its own packet sequence. Exceptions of `on_*` are reported through
`sys.unraisablehook`, and have no other effect.
"""

from __future__ import annotations

from _thread import _local

from stretto import _native
from stretto.base.errors import StrettoError
from stretto.client.safe_call import call_safely
from stretto.protozero import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, ClassVar, Self

    from stretto.protos.config import DataSourceConfig, DataSourceDescriptor
    from stretto.protos.trace import TracePacket


_TIMESTAMP = 8  # The field number of TracePacket.timestamp.

RESERVATION_SHIFT = 16
"""A reservation's number, shifted by this, is used as target buffer until that is known."""


class DataSource:
    """The base class of data sources; the module's docstring describes its use."""

    name: ClassVar[str] = ""
    """The name in session configs; unique in this process."""

    buffer_exhausted_policy: ClassVar[int] = _native.DROP
    """The effect of a write when the shared memory is full: `_native.DROP`, `STALL_THEN_DROP`."""

    _instances: ClassVar[Sequence[Any]] = ()

    config: DataSourceConfig
    """The session's config for this data source."""

    instance_id: int
    """The instance's id, unique in its service; 0 before there is a service (startup tracing)."""

    flush_flags: int = 0
    """During `on_flush`: Perfetto's FlushFlags; their lowest four bits are the reason."""

    arbiter: _native.Arbiter
    target_buffer: int

    def __init__(self) -> None:
        self._writers = _local()
        self._running = False
        self._ended = False

    def __init_subclass__(cls) -> None:
        cls._instances = ()

    # --- for the program

    @classmethod
    def register(cls) -> None:
        """Register the data source with each service that this process connects to, now or later.

        A second call has no effect.

        Raises:
            StrettoError: The class has no name, or the name is taken.
        """
        if not cls.name:
            raise StrettoError(f"{cls.__qualname__} needs a class attribute `name`.")
        known = registered.get(cls.name)
        if known is cls:
            return
        if known is not None:
            raise StrettoError(
                f"Data source {cls.name!r} is registered already, by {known.__qualname__}."
            )
        registered[cls.name] = cls
        for callback in on_registered:
            callback(cls)

    @classmethod
    def instances(cls) -> Sequence[Self]:
        """Return the recording instances; empty while no session enables the data source."""
        return cls._instances

    def write(self, packet: TracePacket | bytes) -> bool:
        """Write one TracePacket, on the calling thread's sequence.

        A packet that has no timestamp gets the current time.

        Args:
            packet: A `stretto.protos.trace.TracePacket`, or its encoding.

        Returns:
            False if the packet was dropped (shared memory exhausted) or the session has ended.
        """
        if not self._running:
            return False
        if isinstance(packet, bytes):
            return self.writer().write(packet)
        if packet.has("timestamp"):
            return self.writer().write(packet.encode())
        time = wire.varint_field(_TIMESTAMP, _native.boottime_ns())
        return self.writer().write(time + packet.encode())

    def writer(self) -> _native.TraceWriter:
        """Return the calling thread's trace writer for this instance."""
        writer: _native.TraceWriter | None = getattr(self._writers, "writer", None)
        if writer is None:
            writer = _native.TraceWriter(
                self.arbiter, self.target_buffer, self.buffer_exhausted_policy
            )
            self._writers.writer = writer
        return writer

    # --- for subclasses

    @classmethod
    def descriptor(cls) -> DataSourceDescriptor:
        """Return the descriptor that is sent to services; subclasses may extend it."""
        from stretto.protos.config import DataSourceDescriptor

        return DataSourceDescriptor(
            name=cls.name,
            will_notify_on_start=True,
            # Without the notification, packets written by on_stop would come too late.
            will_notify_on_stop=True,
            handles_incremental_state_clear=True,
        )

    @classmethod
    def can_adopt_startup_session(
        cls, startup_config: DataSourceConfig, service_config: DataSourceConfig
    ) -> bool:
        """Whether a session may adopt an instance that startup tracing has started.

        Args:
            startup_config: The instance's config.
            service_config: The session's config.

        Returns:
            True if the configs are equal, except for fields set by services.
        """
        from stretto.client.startup_config import requested_fields

        return requested_fields(startup_config) == requested_fields(service_config)

    def on_setup(self, config: DataSourceConfig) -> None:
        """Called when a session is prepared. The session may never start."""

    def on_start(self) -> None:
        """Called when recording begins: `write` works from now on."""

    def on_stop(self) -> None:
        """Called before recording ends; packets written here are still recorded."""

    def on_flush(self) -> None:
        """Called before the service reads the buffers: write buffered packets."""

    def on_clear_incremental_state(self) -> None:
        """Called when earlier state is discarded: write again the state that later packets need."""

    # --- for the producer connection

    def set_up(
        self,
        instance_id: int,
        config: DataSourceConfig,
        arbiter: _native.Arbiter,
        target_buffer: int,
    ) -> None:
        """Prepare the instance to write into a buffer."""
        self.instance_id, self.config = instance_id, config
        self.arbiter, self.target_buffer = arbiter, target_buffer
        arbiter.open_buffer(target_buffer)
        call_safely(self.on_setup, config)

    def begin(self) -> None:
        """Start: call `on_start`, and add the instance to the running ones.

        No effect if the instance runs already (startup tracing), or if another thread has ended it.
        """
        if self._running or self._ended:
            return
        self._running = True
        self.on_start()
        cls = type(self)
        cls._instances = (*cls._instances, self)
        self._leave_if_ended()  # Another thread may have called `end` during `on_start`.

    def end(self) -> None:
        """Stop: call `on_stop`, then refuse writes. The instance can't be started again."""
        self._ended = True  # First set `_ended`, which a concurrent `begin` tests.
        self._leave()
        try:
            self.on_stop()
        finally:
            self._running = False
            self._leave()

    def _leave_if_ended(self) -> None:
        if self._ended:
            self._running = False
            self._leave()

    def _leave(self) -> None:
        cls = type(self)
        cls._instances = tuple(other for other in cls._instances if other is not self)

    def forget(self) -> None:
        """Drop the instance in the child of a fork: the session belongs to the parent."""
        cls = type(self)
        cls._instances = ()
        self._running = False


registered: dict[str, type[DataSource]] = {}
"""The data sources of this process, by name."""

on_registered: list[Callable[[type[DataSource]], object]] = []
"""Called with each data source once it is registered."""
