"""What the parts of a tracing service share: its clock, buffers and settings."""

from __future__ import annotations

from stretto.service.buffer_pool import BufferPool
from stretto.service.output.service_packets import ServicePackets
from stretto.service.output.system_info import SystemInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stretto.base.clock import Clock
    from stretto.base.task_runner import TaskRunner
    from stretto.service.endpoints.relay_endpoint import RelayEndpoint
    from stretto.service.output.file_threads import FileThreads


class ServiceContext:
    """Clock, task runner, random source, ids, buffers and settings of one service.

    `TracingService` describes the arguments.

    Attributes:
        buffers: The trace buffers of all sessions.
        packets: Builds the service's own packets.
        system_info: Describes the machine of the service.
        relays: Connected relays of other machines, in the order of their connection.
        instances_seen: Number of data source instances that were set up.
    """

    def __init__(
        self,
        task_runner: TaskRunner,
        clock: Clock,
        *,
        random_bytes: Callable[[int], bytes],
        version: str,
        uid: int,
        machine_name: str,
        default_geometry: tuple[int, int],
        file_threads: FileThreads,
        file_step_bytes: int,
        pipe_patience_ms: float | None,
        waits_for_disk: bool,
        extension_descriptors: Sequence[tuple[str, bytes]],
    ) -> None:
        self.task_runner = task_runner
        self.clock = clock
        self.random_bytes = random_bytes
        self.version = version
        self.uid = uid
        self.machine_name = machine_name
        self.default_geometry = default_geometry
        self.file_threads = file_threads
        self.file_step_bytes = file_step_bytes
        self.pipe_patience_ms = pipe_patience_ms
        self.waits_for_disk = waits_for_disk
        self.extension_descriptors = extension_descriptors
        self.buffers = BufferPool()
        self.packets = ServicePackets(uid)
        self.system_info = SystemInfo()
        self.relays: dict[RelayEndpoint, None] = {}
        self.instances_seen = 0
        self._flush_ids = 0

    def next_instance_id(self) -> int:
        """Return the id of a new data source instance."""
        self.instances_seen += 1
        return self.instances_seen

    def next_flush_id(self) -> int:
        """Return the id of a new flush, higher than all earlier ids."""
        self._flush_ids += 1
        return self._flush_ids

    def new_uuid(self) -> tuple[int, int]:
        """Return a random uuid (version 4) as two unsigned 64-bit numbers, the high one first."""
        value = int.from_bytes(self.random_bytes(16), "big")
        value = value & ~(0xF << 76 | 0x3 << 62) | 0x4 << 76 | 0x2 << 62
        return value >> 64, value & (1 << 64) - 1

    def random(self) -> float:
        """Return a random number in [0, 1)."""
        return int.from_bytes(self.random_bytes(6), "big") / (1 << 48)
