"""Reads a session: the service's packets, then those of each buffer, as trace bytes.

One *pass* takes as many reads as it needs (perfetto-abi 5.4)::

    every read   queued clock snapshots, synchronisation marker if due, service events
    first read   the initial clock snapshot before, config, uuid, provenance, system info
    then         buffer 0, buffer 1, ...                     until the limit is hit
    last read    read_tracing_buffers_completed, trace stats if due

Everything but the stats passes the filter, if the config has one.
"""

from __future__ import annotations

from stretto import _native
from stretto.base.clock import BOOTTIME
from stretto.service.packet_encoder import framed
from stretto.service.service_packets import READ_TRACING_BUFFERS_COMPLETED
from stretto.service.trace_filter import TraceFilter
from stretto.service.trace_stats import encode_trace_stats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from stretto.service.clock_snapshots import ClockSnapshots
    from stretto.service.lifecycle_events import LifecycleEvents
    from stretto.service.tracing_session import TracingSession


class Reader:
    """Reads the trace of one session. What was read doesn't come again."""

    __slots__ = (
        "_at",
        "_buffers",
        "_clocks",
        "_first",
        "_lifecycle",
        "_readback",
        "_session",
        "_uuid",
        "stats_due",
        "sync_due",
        "trace_filter",
    )

    def __init__(
        self,
        session: TracingSession,
        buffers: Sequence[int],
        uuid: tuple[int, int],
        clocks: ClockSnapshots,
        lifecycle: LifecycleEvents,
    ) -> None:
        """Read `buffers`, and empty the queues of `clocks` and `lifecycle`.

        They are the session's own, or copies: then this is the reader of a snapshot.
        """
        self._session = session
        self._buffers = buffers
        self._uuid = uuid
        self._clocks = clocks
        self._lifecycle = lifecycle
        self._readback = _native.Readback(session.service.table)
        self._at = -1  # Index of the buffer that the pass has come to.
        self._first = True
        self.sync_due = False
        self.stats_due = False
        config, clock = session.config.trace_filter, session.service.clock
        self.trace_filter = TraceFilter(config, len(buffers), clock) if config else None

    @property
    def in_pass(self) -> bool:
        """Whether a pass has begun and not ended."""
        return self._at >= 0

    def stats(self) -> bytes:
        """The encoded TraceStats as of now."""
        filter_stats = self.trace_filter.stats() if self.trace_filter else None
        return encode_trace_stats(
            self._session, self._buffers, self._readback.invalid_packets, filter_stats
        )

    def read(self, limit: int) -> tuple[bytes, bool]:
        """Return about `limit` bytes of framed packets, and whether the pass has more.

        The limit is for what is read; a filter makes it less.
        """
        own = b"".join(map(framed, self._service_packets()))
        out = [self._filtered(own)]
        more = self._read_buffers(out, limit - len(own))
        if not more:
            out.append(self._filtered(b"".join(map(framed, self._closing_packets()))))
            out.append(self._stats_packet())
        return b"".join(out), more

    def _filtered(self, trace: bytes, buffer: int = -1) -> bytes:
        return self.trace_filter.filter(trace, buffer) if self.trace_filter else trace

    def _read_buffers(self, out: list[bytes], room: int) -> bool:
        if self._at < 0:
            self._enter(0)
        while self._at < len(self._buffers):
            if room <= 0:
                return True
            data, more = self._readback.read(self._buffers[self._at], room)
            out.append(self._filtered(data, self._at))
            room -= len(data)
            if more:
                return True
            self._enter(self._at + 1)
        self._at = -1
        return False

    def _enter(self, index: int) -> None:
        self._at = index
        if index < len(self._buffers):
            self._readback.begin(self._buffers[index])

    def _service_packets(self) -> list[bytes]:
        session, build = self._session, self._session.service.packets
        builtin = session.builtin
        out = self._clock_snapshots()
        if self.sync_due:
            self.sync_due = False
            out.append(build.sync_marker())
        if self._first:
            self._first = False
            out += self._first_packets()
        if not builtin.disable_service_events:
            out += self._lifecycle.packets(build)
            self._lifecycle.clear()
        return out

    def _clock_snapshots(self) -> list[bytes]:
        session = self._session
        primary = session.builtin.primary_trace_clock or BOOTTIME
        snapshots = self._clocks.queued()
        self._clocks.clear()
        if self._first and self._clocks.initial:
            snapshots.insert(0, self._clocks.initial)
        build = session.service.packets
        return [build.clock_snapshot(snapshot, primary) for snapshot in snapshots]

    def _first_packets(self) -> list[bytes]:
        session, service = self._session, self._session.service
        build = service.packets
        out = []
        if not session.builtin.disable_trace_config:
            out.append(build.trace_config(session.config_bytes))
        out.append(build.trace_uuid(*self._uuid))
        out.append(build.trace_provenance(service.clock.boottime_ns(), len(self._buffers)))
        if not session.builtin.disable_system_info:
            out.append(build.system_info(service.system_info, service.version))
        return out

    def _closing_packets(self) -> list[bytes]:
        session, service = self._session, self._session.service
        if session.builtin.disable_service_events:
            return []
        now = service.clock.boottime_ns()
        return [service.packets.service_event(now, READ_TRACING_BUFFERS_COMPLETED)]

    def _stats_packet(self) -> bytes:
        """The framed stats if they are due: the one thing that isn't filtered."""
        if not self.stats_due:
            return b""
        self.stats_due = False
        packet = self._session.service.packets.trace_stats(self.stats())
        if self.trace_filter:
            self.trace_filter.pass_by(packet)
        return framed(packet)
