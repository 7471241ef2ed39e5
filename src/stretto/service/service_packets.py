"""The packets that the service itself writes into a trace, byte by byte.

The order of the fields inside each packet is Perfetto's (perfetto-abi 5.4). All
functions return one encoded TracePacket without the frame of a trace file.
"""

from __future__ import annotations

from stretto.base.clock import BOOTTIME
from stretto.base.ids import SERVICE_SEQUENCE_ID
from stretto.service.packet_encoder import blob, number, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Final

    from stretto.service.system_info import SystemInfo

SYNC_MARKER: Final = bytes.fromhex("82477a76b28d42ba81dc33326d57a079")

# TracingServiceEvent
ALL_DATA_SOURCES_STARTED: Final = 1
TRACING_STARTED: Final = 2
ALL_DATA_SOURCES_FLUSHED: Final = 3
READ_TRACING_BUFFERS_COMPLETED: Final = 4
TRACING_DISABLED: Final = 5
SLOW_STARTING_DATA_SOURCES: Final = 7
LAST_FLUSH_SLOW_DATA_SOURCES: Final = 8
FLUSH_STARTED: Final = 9

# TracePacket
_TRUSTED_UID = 3
_CLOCK_SNAPSHOT = 6
_TIMESTAMP = 8
_TRUSTED_PACKET_SEQUENCE_ID = 10
_TRACE_CONFIG = 33
_TRACE_STATS = 35
_SYNCHRONIZATION_MARKER = 36
_SYSTEM_INFO = 45
_TIMESTAMP_CLOCK_ID = 58
_SERVICE_EVENT = 69
_TRACE_UUID = 89
_TRACE_PROVENANCE = 124


class ServicePackets:
    """Builds packets in the name of a service that runs as `uid`."""

    __slots__ = ("_header", "_identity")

    def __init__(self, uid: int) -> None:
        self._identity = number(_TRUSTED_UID, uid) + number(
            _TRUSTED_PACKET_SEQUENCE_ID, SERVICE_SEQUENCE_ID
        )
        self._header = self._identity + number(_TIMESTAMP_CLOCK_ID, BOOTTIME)

    def clock_snapshot(self, clocks: Iterable[tuple[int, int]], primary_clock: int) -> bytes:
        """`clocks` are (clock id, ns)."""
        body = number(2, primary_clock)
        for ident, time_ns in clocks:
            body += blob(1, number(1, ident) + number(2, time_ns))
        return blob(_CLOCK_SNAPSHOT, body) + self._header

    def sync_marker(self) -> bytes:
        """Lets a reader find the next packet in a damaged trace. Always the same bytes."""
        return self._identity + blob(_SYNCHRONIZATION_MARKER, SYNC_MARKER)

    def trace_config(self, config: bytes) -> bytes:
        """`config` is the encoded TraceConfig."""
        return self._header + blob(_TRACE_CONFIG, config)

    def trace_uuid(self, msb: int, lsb: int) -> bytes:
        """Both halves as signed or unsigned 64-bit numbers."""
        return self._header + blob(_TRACE_UUID, number(2, lsb) + number(1, msb))

    def trace_stats(self, stats: bytes) -> bytes:
        """`stats` is the encoded TraceStats."""
        return self._header + blob(_TRACE_STATS, stats)

    def system_info(self, info: SystemInfo, version: str) -> bytes:
        """`version` is the service's."""
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

    def trace_provenance(self, timestamp_ns: int, buffers: int) -> bytes:
        """One entry for each buffer: their writers aren't known before they are read."""
        body = blob(2, b"") * buffers
        return number(_TIMESTAMP, timestamp_ns) + blob(_TRACE_PROVENANCE, body) + self._header

    def service_event(
        self, timestamp_ns: int, event: int, data_sources: Sequence[tuple[str, str]] = ()
    ) -> bytes:
        """Something happened to the session.

        Args:
            timestamp_ns: When, CLOCK_BOOTTIME.
            event: Field number in TracingServiceEvent.
            data_sources: (producer name, data source name), for the events that list them.
        """
        if data_sources:
            entries = [blob(1, text(1, owner) + text(2, name)) for owner, name in data_sources]
            body = blob(event, b"".join(entries))
        else:
            body = number(event, 1)
        return number(_TIMESTAMP, timestamp_ns) + self._header + blob(_SERVICE_EVENT, body)
