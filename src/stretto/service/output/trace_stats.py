"""TraceStats of a session: counters of its buffers, its flushes and the service."""

from __future__ import annotations

from stretto.service.output.packet_encoder import blob, number, varint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final, Protocol

    from stretto import _native
    from stretto.protos.config import TraceConfig
    from stretto.service.buffer_pool import BufferPool
    from stretto.service.service_context import ServiceContext
    from stretto.service.session.flush import Flushes

    class CountedSession(Protocol):
        """The members of a session from which its statistics are made."""

        context: ServiceContext
        builtin: TraceConfig.BuiltinDataSource
        flushes: Flushes
        final_flush_outcome: int

        def service_counts(self) -> ServiceCounts: ...


_BUFFER_FIELDS: Final = (
    ("buffer_size", 12),
    ("bytes_written", 1),
    ("bytes_overwritten", 13),
    ("bytes_read", 14),
    ("padding_bytes_written", 15),
    ("padding_bytes_cleared", 16),
    ("chunks_written", 2),
    ("chunks_rewritten", 10),
    ("chunks_overwritten", 3),
    ("chunks_discarded", 18),
    ("chunks_read", 17),
    ("chunks_committed_out_of_order", 11),
    ("write_wrap_count", 4),
    ("patches_succeeded", 5),
    ("patches_failed", 6),
    ("readaheads_succeeded", 7),
    ("readaheads_failed", 8),
    ("abi_violations", 9),
    ("trace_writer_packet_loss", 19),
    ("chunks_relocated", 20),
)
"""Counters of a native buffer and their fields in TraceStats.BufferStats. The native
`sequence_packet_loss` has none: each packet carries it as previous_packet_dropped."""

_THRESHOLDS: Final = (8, 32, 128, 512, 1024, 2048, 4096, 8192, 12288, 16384)
"""Upper bounds of all buckets of a writer's histogram but the last."""

FINAL_FLUSH_SUCCEEDED: Final = 1
FINAL_FLUSH_FAILED: Final = 2


class ServiceCounts:
    """Counters of TraceStats that are the same for all sessions of a service."""

    def __init__(self) -> None:
        self.producers_connected = 0
        self.producers_seen = 0
        self.data_sources_registered = 0
        self.instances_seen = 0
        self.tracing_sessions = 0
        self.total_buffers = 0
        self.chunks_discarded = 0
        self.patches_discarded = 0


def encode_trace_stats(
    session: CountedSession,
    buffers: Sequence[int],
    readback: _native.Readback,
    filter_stats: bytes | None = None,
) -> bytes:
    """Return the current TraceStats, encoded.

    Args:
        session: The session.
        buffers: Global ids of the session's buffers, or of their copies in a snapshot.
        readback: Counts invalid packets, and maps (producer, writer) to sequence ids.
        filter_stats: The encoded FilterStats of the session's reader; None without a filter.
    """
    counts, flushes, pool = session.service_counts(), session.flushes, session.context.buffers
    out = b"".join(blob(1, _buffer_stats(pool, ident)) for ident in buffers)
    for field, value in (
        (2, counts.producers_connected),
        (3, counts.producers_seen),
        (4, counts.data_sources_registered),
        (5, counts.instances_seen),  # Perfetto's service, too, counts instances in this field.
        (6, counts.tracing_sessions),
        (7, counts.total_buffers),
        (8, counts.chunks_discarded),
        (9, counts.patches_discarded),
        (10, readback.invalid_packets),
        (12, flushes.requested),
        (13, flushes.succeeded),
        (14, flushes.failed),
    ):
        out += number(field, value)
    if filter_stats is not None:
        out += blob(11, filter_stats)
    if session.final_flush_outcome:
        out += number(15, session.final_flush_outcome)
    if not session.builtin.disable_chunk_usage_histograms:
        out += b"".join(number(17, threshold) for threshold in _THRESHOLDS)
        out += _writer_stats(pool, buffers, readback)
    return out


def _writer_stats(pool: BufferPool, buffers: Sequence[int], readback: _native.Readback) -> bytes:
    out = bytearray()
    for index, ident in enumerate(buffers):

        def add(
            producer: int,
            writer: int,
            counts: Sequence[int],
            sums: Sequence[int],
            index: int = index,
        ) -> None:
            body = number(1, readback.sequence_id(producer, writer))
            body += blob(2, b"".join(map(varint, counts))) + blob(3, b"".join(map(varint, sums)))
            out.extend(blob(18, body + number(4, index)))

        pool.table.visit_writers(ident, add)
    return bytes(out)


def _buffer_stats(pool: BufferPool, buffer_id: int) -> bytes:
    counters = pool.table.stats(buffer_id)
    return b"".join(number(field, counters[name]) for name, field in _BUFFER_FIELDS)
