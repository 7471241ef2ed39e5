"""The TraceConfig of a recording."""

from __future__ import annotations

from stretto.protos.config import (
    DataSourceConfig,
    HeapprofdConfig,
    TraceConfig,
    TrackEventConfig,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto.recorder.host.options import HeapOptions, RecordingOptions

STREAM_PERIOD_MS = 500
RING_FLUSH_PERIOD_MS = 1000
"""The ring of a killed recorder lacks at most the events of this last period."""

FASTEST_FILL = 128 << 10
"""Bytes per millisecond, more than a machine writes. Every thread repeats the names that its
events refer to within the time in which this rate fills the ring."""

STREAM_BUFFER_KB = 32 << 10
"""Several producers may each commit all their shared memory, 8 MiB, at once."""

NO_FLUSH, FLUSH_BEFORE_WRITE = 2, 3

NEVER_MS = 1 << 30
"""A file without a period of flushes is an error for the trace processor. With auto detail it has
to sort all of it: a call is written when its thread enters or leaves the next one, maybe an hour
later."""

STALL_THEN_DROP = 3

SYSCALL_WAITS = "linux.syscall_waits"
"""The data source of `--io-waits` (probes/syscall_waits.py)."""


def clear_period_ms(buffer_bytes: int) -> int:
    """Return the period in ms after which writers repeat their state in the ring buffer."""
    return max(20, min(1000, buffer_bytes // FASTEST_FILL))


def make_config(options: RecordingOptions, *, to_file: bool) -> TraceConfig:
    """Build the config of a recording.

    Args:
        options: the options of the recording.
        to_file: whether the trace is written into a file, not into a pipe.
    """
    track_event = DataSourceConfig(
        name="track_event",
        track_event_config=TrackEventConfig(enabled_categories=["*", *options.categories]),
    )
    if options.stream and to_file:
        # If the buffer is full, writers wait until its data is in the file, so that no
        # data is lost. With a pipe they don't wait, because its reader may stop reading.
        track_event.buffer_exhausted_policy = STALL_THEN_DROP
    sources = [TraceConfig.DataSource(config=track_event)]
    if options.counters:
        sources.append(TraceConfig.DataSource(config=DataSourceConfig(name="linux.process_stats")))
    if options.sched:
        # Imported only here: few recordings have it.
        from stretto.recorder.host.scheduling import make_data_source

        sources.append(TraceConfig.DataSource(config=make_data_source()))
    if options.io_waits:
        sources.append(TraceConfig.DataSource(config=DataSourceConfig(name=SYSCALL_WAITS)))
    if options.heap is not None:
        sources.append(_heap_source("python.heap", options.heap))
    if options.native_heap is not None:
        sources.append(_heap_source("android.heapprofd", options.native_heap))
    if options.object_graph:
        sources.append(TraceConfig.DataSource(config=DataSourceConfig(name="python.object_graph")))
    sources += [
        TraceConfig.DataSource(config=DataSourceConfig(name=name))
        for name in options.sample_sources
    ]
    config = TraceConfig(
        buffers=[TraceConfig.BufferConfig(size_kb=options.buffer_bytes // 1024)],
        data_sources=sources,
    )
    if options.duration_ms and not options.attach:
        # The duration of an attached recording begins with the attachment.
        config.duration_ms = options.duration_ms
    if options.sample_ns:  # Samples become a fifth of their size.
        config.compression_type = TraceConfig.COMPRESSION_TYPE_DEFLATE
    if options.stream:
        _stream(config, options)
    else:
        _ring(config, options)
    return config


def _heap_source(name: str, options: HeapOptions) -> TraceConfig.DataSource:
    heap = HeapprofdConfig(sampling_interval_bytes=options.interval, dump_at_max=options.at_max)
    if not options.at_max:
        heap.continuous_dump_config = HeapprofdConfig.ContinuousDumpConfig(
            dump_interval_ms=options.dump_interval_ms
        )
    return TraceConfig.DataSource(config=DataSourceConfig(name=name, heapprofd_config=heap))


def _stream(config: TraceConfig, options: RecordingOptions) -> None:
    config.write_into_file = True
    config.buffers[0].size_kb = STREAM_BUFFER_KB
    config.file_write_period_ms = STREAM_PERIOD_MS
    # With auto detail or samples, packets are late, and so are waits, which are written at their
    # end, and the BEGIN of a request whose route is found late: there are no flushes. In a file
    # without flushes, the trace processor sorts all events as a whole; with flushes, piece by
    # piece.
    is_late = bool(
        options.auto_size or options.sample_ns or options.io_waits or "flows" in options.target
    )
    config.flush_period_ms = NEVER_MS if is_late else STREAM_PERIOD_MS
    config.write_flush_mode = NO_FLUSH if is_late else FLUSH_BEFORE_WRITE
    if options.max_size is not None:
        config.max_file_size_bytes = options.max_size


def _ring(config: TraceConfig, options: RecordingOptions) -> None:
    config.flush_period_ms = RING_FLUSH_PERIOD_MS
    config.incremental_state_config = TraceConfig.IncrementalStateConfig(
        clear_period_ms=clear_period_ms(options.buffer_bytes)
    )
