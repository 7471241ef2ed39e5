"""The options of a recording."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from stretto.recorder.workspace import Options

DEFAULT_BUFFER_BYTES = 64 << 20
DEFAULT_SIZE_BYTES = 256 << 20
DEFAULT_HEAP_INTERVAL = 64 << 10
DEFAULT_DUMP_INTERVAL_MS = 10_000


class HeapOptions:
    """How memory is profiled.

    Args:
        interval: bytes between two samples, on average.
        dump_interval_ms: time between two dumps, in ms.
        at_max: whether there is one dump, of the moment when most memory was held.
    """

    def __init__(self, interval: int, dump_interval_ms: int, at_max: bool) -> None:
        self.interval = interval
        self.dump_interval_ms = dump_interval_ms
        self.at_max = at_max


class RecordingOptions:
    """The data to record, and its limits.

    Args:
        buffer_bytes: size of the trace buffer.
        stream: whether all events are written to the output while the program runs; otherwise
            the last events are kept in a ring and written at the end.
        max_size: size in bytes at which a streaming recording ends; None for no limit.
        auto_size: size in bytes that the trace fits into by auto detail; 0 without auto detail.
        duration_ms: time in ms after which the recording ends; 0 for no limit.
        categories: track event categories to enable besides those that are on by default.
        counters: whether to record memory and CPU time of the processes.
        sched: whether to record when the threads of the processes run and are woken.
        io_waits: whether to record the system calls in which the threads wait.
        sample_ns: time between two samples of the stacks; 0 for no samples.
        sample_sources: names of the data sources of the samples.
        stack_samples: whether samples are StackSample packets instead of PerfSample.
        native: whether samples have C functions, too.
        heap: how the memory of the processes is profiled; None: not at all.
        native_heap: how the memory of malloc is profiled; None: not at all.
        object_graph: whether to record the objects of the processes at the end.
        target: options for the recorded processes, which read them from the workspace.
        system: whether to record with the machine's tracing service and all its producers.
        config_path: with `system`, path of a TraceConfig in text form; its data sources are
            added.
        data_sources: with `system`, names of data sources to add.
        attach: pid of the running program to record; 0 if the recorder starts the program.
    """

    def __init__(
        self,
        *,
        buffer_bytes: int = DEFAULT_BUFFER_BYTES,
        stream: bool = False,
        max_size: int | None = None,
        auto_size: int = 0,
        duration_ms: int = 0,
        categories: Sequence[str] = (),
        counters: bool = True,
        sched: bool = False,
        io_waits: bool = False,
        sample_ns: int = 0,
        sample_sources: Sequence[str] = (),
        stack_samples: bool = False,
        native: bool = False,
        heap: HeapOptions | None = None,
        native_heap: HeapOptions | None = None,
        object_graph: bool = False,
        target: Options | None = None,
        system: bool = False,
        config_path: str = "",
        data_sources: Sequence[str] = (),
        attach: int = 0,
    ) -> None:
        self.buffer_bytes = buffer_bytes
        self.stream = stream
        self.max_size = max_size
        self.auto_size = auto_size
        self.duration_ms = duration_ms
        self.categories = categories
        self.counters = counters
        self.sched = sched
        self.io_waits = io_waits
        self.sample_ns = sample_ns
        self.sample_sources = sample_sources
        self.stack_samples = stack_samples
        self.native = native
        self.heap = heap
        self.native_heap = native_heap
        self.object_graph = object_graph
        self.target = target or {}
        self.system = system
        self.config_path = config_path
        self.data_sources = data_sources
        self.attach = attach
