"""TraceStats of a session: what its buffers, its flushes and the service have counted."""

from __future__ import annotations

from stretto.service.output.packet_encoder import blob, number, varint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final

    from stretto import _native
    from stretto.service.session.tracing_session import TracingSession

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


def encode_trace_stats(
    session: TracingSession,
    buffers: Sequence[int],
    readback: _native.Readback,
    filter_stats: bytes | None = None,
) -> bytes:
    """Return the encoded TraceStats as of now.

    Args:
        session: Whose flushes and service are meant.
        buffers: Global ids of its buffers, or of their copies in a snapshot.
        readback: Has counted what it refused, and knows the ids of the sequences.
        filter_stats: The encoded FilterStats of its reader, if it filters.
    """
    service, flushes = session.service, session.flushes
    totals = service.discarded()
    out = b"".join(blob(1, _buffer_stats(session, ident)) for ident in buffers)
    for field, value in (
        (2, len(service.producers)),
        (3, service.producers_seen),
        (4, len(service.data_sources)),
        (5, service.instances_seen),  # Perfetto counts instances, too.
        (6, len(service.sessions)),
        (7, sum(len(each.buffers) for each in service.sessions.values())),
        (8, totals.chunks),
        (9, totals.patches),
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
        out += _writer_stats(session, buffers, readback)
    return out


def _writer_stats(
    session: TracingSession, buffers: Sequence[int], readback: _native.Readback
) -> bytes:
    out = []
    for index, ident in enumerate(buffers):
        for producer, writer, counts, sums in session.service.buffers.table.writer_stats(ident):
            body = number(1, readback.sequence_id(producer, writer))
            body += blob(2, b"".join(map(varint, counts))) + blob(3, b"".join(map(varint, sums)))
            out.append(blob(18, body + number(4, index)))
    return b"".join(out)


def _buffer_stats(session: TracingSession, buffer_id: int) -> bytes:
    counters = session.service.buffers.table.stats(buffer_id)
    return b"".join(number(field, counters[name]) for name, field in _BUFFER_FIELDS)
