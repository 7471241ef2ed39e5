"""Builds the packets that the service itself writes into a trace.

The fields of each packet have the same order as in Perfetto: docs/formats/service.md, "Order of
packets". All functions return one encoded TracePacket, without the frame of a trace file.
"""

from __future__ import annotations

from stretto.base.clock import BOOTTIME
from stretto.base.ids import SERVICE_SEQUENCE_ID
from stretto.base.sync_marker import SYNC_MARKER
from stretto.service.output.packet_encoder import blob, number, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Final

    from stretto.service.output.system_info import SystemInfo
    from stretto.service.session.triggers import ReceivedTrigger


# Field numbers of TracingServiceEvent.
ALL_DATA_SOURCES_STARTED: Final = 1
TRACING_STARTED: Final = 2
ALL_DATA_SOURCES_FLUSHED: Final = 3
READ_TRACING_BUFFERS_COMPLETED: Final = 4
TRACING_DISABLED: Final = 5
SLOW_STARTING_DATA_SOURCES: Final = 7
LAST_FLUSH_SLOW_DATA_SOURCES: Final = 8
FLUSH_STARTED: Final = 9
CLONE_STARTED: Final = 10
BUFFER_CLONED: Final = 11

# Field numbers of TracePacket.
_TRUSTED_UID = 3
_CLOCK_SNAPSHOT = 6
_TIMESTAMP = 8
_TRUSTED_PACKET_SEQUENCE_ID = 10
_TRACE_CONFIG = 33
_TRACE_STATS = 35
_SYNCHRONIZATION_MARKER = 36
_SYSTEM_INFO = 45
_TRIGGER = 46
_TIMESTAMP_CLOCK_ID = 58
_SERVICE_EVENT = 69
_EXTENSION_DESCRIPTOR = 72
_TRACE_UUID = 89
_MACHINE_ID = 98
_REMOTE_CLOCK_SYNC = 107
_CLONE_SNAPSHOT_TRIGGER = 113
_TRACE_PROVENANCE = 124
_CONCURRENT_SESSION_EVENT = 134

_GZIP_MAGIC: Final = b"\x1f\x8b"


class ServicePackets:
    """Builds packets of a service that runs as user `uid`."""

    def __init__(self, uid: int) -> None:
        self._uid = number(_TRUSTED_UID, uid)
        self._identity = self._uid + number(_TRUSTED_PACKET_SEQUENCE_ID, SERVICE_SEQUENCE_ID)
        self._header = self._identity + number(_TIMESTAMP_CLOCK_ID, BOOTTIME)

    def adopt_machine(self, machine_id: int) -> None:
        """Write this machine id into the packets of the service from now on."""
        self._header = (
            self._identity + number(_TIMESTAMP_CLOCK_ID, BOOTTIME) + number(_MACHINE_ID, machine_id)
        )

    def clock_snapshot(self, clocks: Iterable[tuple[int, int]], primary_clock: int) -> bytes:
        """Encode a clock snapshot; `clocks` are pairs (clock id, ns)."""
        body = number(2, primary_clock) + _clocks(clocks)
        return blob(_CLOCK_SNAPSHOT, body) + self._header

    def sync_marker(self) -> bytes:
        """Encode the synchronization marker, which readers search for in a damaged trace."""
        return self._identity + blob(_SYNCHRONIZATION_MARKER, SYNC_MARKER)

    def trace_config(self, config: bytes) -> bytes:
        """Encode a packet with an encoded TraceConfig."""
        return self._header + blob(_TRACE_CONFIG, config)

    def trace_uuid(self, msb: int, lsb: int) -> bytes:
        """Encode the uuid; its halves are signed or unsigned 64-bit numbers."""
        return self._header + blob(_TRACE_UUID, number(2, lsb) + number(1, msb))

    def trace_stats(self, stats: bytes) -> bytes:
        """Encode a packet with encoded TraceStats."""
        return self._header + blob(_TRACE_STATS, stats)

    def system_info(self, info: SystemInfo, version: str) -> bytes:
        """Encode the system info of this machine; `version` is that of the service."""
        body = text(4, version) + number(7, info.timezone_minutes)
        body += blob(
            1,
            text(1, info.sysname)
            + text(2, info.version)
            + text(4, info.machine)
            + text(3, info.release),
        )
        body += number(6, info.page_size) + number(16, info.ram_bytes) + number(8, info.cpus)
        return blob(_SYSTEM_INFO, body) + self._header

    def remote_system_info(self, machine_id: int, system_info: bytes) -> bytes:
        """Encode a packet with the SystemInfo that another machine has encoded."""
        return blob(_SYSTEM_INFO, system_info) + number(_MACHINE_ID, machine_id) + self._identity

    def remote_clock_sync(
        self,
        machine_id: int,
        pairs: Iterable[tuple[Iterable[tuple[int, int]], Iterable[tuple[int, int]]]],
    ) -> bytes:
        """Encode pairs (clocks of the other machine, clocks of this machine at their arrival)."""
        body = b"".join(
            blob(1, blob(2, _clocks(theirs)) + blob(3, _clocks(ours))) for theirs, ours in pairs
        )
        return number(_MACHINE_ID, machine_id) + self._uid + blob(_REMOTE_CLOCK_SYNC, body)

    def extension_descriptor(self, file_name: str, content: bytes) -> bytes:
        """Encode a FileDescriptorSet, which may be compressed by gzip."""
        field = 2 if content.startswith(_GZIP_MAGIC) else 1
        body = blob(field, content) + text(3, file_name)
        return self._header + blob(_EXTENSION_DESCRIPTOR, body)

    def trigger(self, trigger: ReceivedTrigger, *, of_clone: bool = False) -> bytes:
        """Encode a received trigger; `of_clone` if it has caused the clone."""
        body = text(1, trigger.name) + text(2, trigger.producer_name)
        body += number(3, trigger.uid) + number(4, trigger.stop_delay_ms)
        field = _CLONE_SNAPSHOT_TRIGGER if of_clone else _TRIGGER
        return blob(field, body) + number(_TIMESTAMP, trigger.boot_time_ns) + self._header

    def concurrent_session_event(self, timestamp_ns: int, event: bytes) -> bytes:
        """Encode a packet with an encoded ConcurrentSessionEvent."""
        header = number(_TIMESTAMP, timestamp_ns) + self._header
        return header + blob(_CONCURRENT_SESSION_EVENT, event)

    def trace_provenance(
        self, timestamp_ns: int, buffers: Iterable[Iterable[tuple[int, int]]]
    ) -> bytes:
        """Encode the (sequence id, producer id) of the writers of each buffer."""
        body = b"".join(
            blob(2, b"".join(blob(1, number(1, i) + number(2, producer)) for i, producer in each))
            for each in buffers
        )
        return number(_TIMESTAMP, timestamp_ns) + blob(_TRACE_PROVENANCE, body) + self._header

    def service_event(
        self, timestamp_ns: int, event: int, detail: int | Sequence[tuple[str, str]] = 1
    ) -> bytes:
        """Encode a lifecycle event of the session.

        Args:
            timestamp_ns: Time of the event (CLOCK_BOOTTIME).
            event: Field number in TracingServiceEvent.
            detail: A number, or a list of (producer name, data source name).
        """
        if isinstance(detail, int):
            body = number(event, detail)
        else:
            entries = [blob(1, text(1, owner) + text(2, name)) for owner, name in detail]
            body = blob(event, b"".join(entries))
        return number(_TIMESTAMP, timestamp_ns) + self._header + blob(_SERVICE_EVENT, body)


def _clocks(clocks: Iterable[tuple[int, int]]) -> bytes:
    return b"".join(blob(1, number(1, ident) + number(2, time_ns)) for ident, time_ns in clocks)
