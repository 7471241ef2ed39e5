"""Reads the trace of a session: the service's packets, then those of each buffer.

One *pass* takes as many reads as it needs (docs/formats/service.md, "Order of packets")::

    every read   the service's own packets
    then         buffer 0, buffer 1, ...                     until the read has `limit` bytes
    last read    read_tracing_buffers_completed, trace stats if due

If the config has a filter, all packets except the stats are filtered. If the config has a codec,
the packets of each read are compressed into one packet.
"""

from __future__ import annotations

from stretto import _native
from stretto.service.output.own_packets import OwnPackets
from stretto.service.output.packet_encoder import framed
from stretto.service.output.trace_stats import encode_trace_stats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    from stretto.service.output.clock_snapshots import ClockSnapshots
    from stretto.service.output.compressor import Compressor
    from stretto.service.output.lifecycle_events import LifecycleEvents
    from stretto.service.output.own_packets import SessionOfPackets
    from stretto.service.output.trace_filter import TraceFilter
    from stretto.service.output.trace_stats import CountedSession

    class ReadSession(SessionOfPackets, CountedSession, Protocol):
        """The members of a session that its reader uses."""

        buffers: list[int]
        uuid: tuple[int, int]
        clocks: ClockSnapshots
        lifecycle: LifecycleEvents
        compress: Compressor | None

        @property
        def message_filter(self) -> _native.MessageFilter | None: ...
        @property
        def readable(self) -> bool: ...


class Reader:
    """Reads the trace of one session. Each packet is read once."""

    def __init__(
        self,
        session: ReadSession,
        buffers: Sequence[int],
        uuid: tuple[int, int],
        clocks: ClockSnapshots,
        lifecycle: LifecycleEvents,
    ) -> None:
        """Create a reader of `buffers` and of the packets queued in `clocks` and `lifecycle`.

        Reading empties the queues. So a reader for a snapshot gets copies of the session's queues.
        """
        self._session = session
        self._buffers = buffers
        self._own = OwnPackets(session, buffers, uuid, clocks, lifecycle)
        self._readback = _native.Readback(session.context.buffers.table)
        self._at = -1  # The index of the current buffer of the pass; -1 outside of a pass.
        self.sync_due = False
        self.stats_due = False
        self.trace_filter: TraceFilter | None = None
        if session.message_filter is not None:
            from stretto.service.output.trace_filter import TraceFilter

            clock = session.context.clock
            self.trace_filter = TraceFilter(session.message_filter, len(buffers), clock)

    def for_clone(self, clone: ReadSession, *, skip_filter: bool) -> Reader:
        """Return a reader for a clone, with the sequence ids of this reader's trace."""
        reader = Reader(clone, clone.buffers, clone.uuid, clone.clocks, clone.lifecycle)
        reader._readback = self._readback.copy()
        reader.stats_due = True
        if skip_filter:
            reader.trace_filter = None
        return reader

    @property
    def has_begun(self) -> bool:
        """Whether the first read was done."""
        return self._own.begun

    @property
    def in_pass(self) -> bool:
        """Whether a pass is in progress."""
        return self._at >= 0

    def stats(self) -> bytes:
        """Return the current TraceStats, encoded."""
        filter_stats = self.trace_filter.stats() if self.trace_filter else None
        return encode_trace_stats(self._session, self._buffers, self._readback, filter_stats)

    def read(self, limit: int) -> tuple[bytes, bool]:
        """Return about `limit` bytes of framed packets, and whether the pass has more.

        The limit applies before filter and compression.
        """
        if not self._session.readable:
            return b"", False
        if self.trace_filter:
            limit = self.trace_filter.turn_bytes(limit)
        sync_due, self.sync_due = self.sync_due, False
        opening = self._own.opening(self._readback, sync_due=sync_due)
        own = b"".join(map(framed, opening))
        out = [self._filtered(own)]
        more = self._read_buffers(out, limit - len(own))
        if not more:
            out.append(self._filtered(b"".join(map(framed, self._own.closing()))))
            out.append(self._stats_packet())
        trace = b"".join(out)
        return self._session.compress(trace) if self._session.compress else trace, more

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

    def _stats_packet(self) -> bytes:
        """Return the framed stats, unfiltered, if they are due."""
        if not self.stats_due:
            return b""
        self.stats_due = False
        packet = self._session.context.packets.trace_stats(self.stats())
        if self.trace_filter:
            self.trace_filter.pass_by(packet)
        return framed(packet)
