"""The data source `python.object_graph`: the objects of this process, and who holds them.

A graph has all objects with their types and sizes (as `sys.getsizeof`), the references between
them, and the roots: modules, calls, and what C code holds. It is written by a copy of the process,
so the program stops only for the copy of its page tables (`native/hooks/object_graph.h`).

Its config is Perfetto's JavaHprofConfig, as for the data source `android.java_hprof`:

    continuous_dump_config      graphs in regular intervals: dump_phase_ms, dump_interval_ms
    pid, process_cmdline        only these processes

A graph is written at the end, in intervals, and when a consumer asks for a flush or a snapshot. The
packets of a graph have one time, that of the copy:

    HeapGraph   index 0, continued     objects, references
    HeapGraph   index n                names of types and fields

Limits: 4 million objects, and 4 s for the walk; the graph says what is left out. A copy that fails
leaves an object of the type `[object graph is incomplete]`.

Perfetto's package has no class for the packet in its newer versions, so it is encoded by hand.

This module is imported by every connected program, so it imports little.
"""

from __future__ import annotations

import os

import stretto
from stretto import _native
from stretto.base.clock import BOOTTIME
from stretto.profilers.heap.selected_processes import is_selected
from stretto.protozero import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stretto.client.timer import Timer

MAX_OBJECTS = 4 << 20
WALK_NS = 4 * 10**9
READ_SECONDS = 10.0
"""A copy that hasn't written anything for so long is killed."""

_REASON_MASK, _PERIODIC, _STOP = 0xF, 1, 2
"""Perfetto's FlushFlags: the bits of the reason, and two reasons. The end writes a graph anyway."""

_WAIT_FOR_COPIES = 0x40000000  # __WALL of Linux: also children without an exit signal.
_TIMESTAMP, _HEAP_GRAPH, _CLOCK = 8, 56, 58  # Fields of TracePacket.
_PID, _OBJECTS, _CONTINUED, _INDEX, _ROOTS, _TYPES = 1, 2, 5, 6, 7, 9  # Fields of HeapGraph.

_field, _bytes = wire.varint_field, wire.bytes_field

_INCOMPLETE = (
    _bytes(_OBJECTS, _field(1, 1 << 29) + _field(2, 1 << 29))
    + _bytes(_TYPES, _field(1, 1 << 29) + _bytes(3, b"[object graph is incomplete]"))
    + _bytes(_ROOTS, _bytes(1, wire.varint(1 << 29)) + _field(2, 0))
)


class ObjectGraph(stretto.DataSource):
    """A session's object graphs of this process."""

    name = "python.object_graph"
    buffer_exhausted_policy = _native.STALL_THEN_DROP

    _selected = False
    _timer: Timer | None = None

    def on_start(self) -> None:
        """Start the timer of the graphs, if the session wants this process."""
        from stretto.protos.config import JavaHprofConfig

        config = self.config.java_hprof_config or JavaHprofConfig()
        self._selected = is_selected(config)
        times = config.continuous_dump_config
        if self._selected and times is not None and times.dump_interval_ms:
            from stretto.client.timer import Timer

            phase, interval = times.dump_phase_ms / 1000, times.dump_interval_ms / 1000
            self._timer = Timer(self.dump, phase, interval)
            self._timer.start()

    def dump(self) -> None:
        """Write a graph."""
        if self._selected:
            write_graph(self.writer().write)

    def on_flush(self) -> None:
        """Write a graph, unless the flush is a periodic one, or that of the end."""
        if self.flush_flags & _REASON_MASK not in (_PERIODIC, _STOP):
            self.dump()

    def on_stop(self) -> None:
        """Write the last graph."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        self.dump()

    def forget(self) -> None:
        """Stop the timer in the child of a fork."""
        if self._timer is not None:
            self._timer.forget()
            self._timer = None
        super().forget()


def write_graph(write: Callable[[bytes], bool], *, max_objects: int = MAX_OBJECTS) -> None:
    """Write the graph of this process.

    Args:
        write: Writes an encoded TracePacket; returns False if it was dropped.
        max_objects: The largest number of objects.
    """
    head = _field(_TIMESTAMP, _native.boottime_ns()) + _field(_CLOCK, BOOTTIME)
    pid = _field(_PID, os.getpid())
    for index, (part, is_last) in enumerate(_parts(max_objects)):
        graph = pid + part + _field(_CONTINUED, not is_last) + _field(_INDEX, index)
        write(head + _bytes(_HEAP_GRAPH, graph))


def _parts(max_objects: int) -> Iterator[tuple[bytes, bool]]:
    """Yield the parts of the graph that a copy of the process writes, and whether it is the last.

    One part is held back, because the last part is known only by what follows.
    """
    from stretto import _pyhooks

    ours, its = os.pipe()
    try:
        pid = _pyhooks.object_graph(its, max_objects, WALK_NS)
    except OSError:
        os.close(ours)
        return
    finally:
        os.close(its)
    try:
        part = b""
        while following := _read_part(ours):
            if part:
                yield part, False
            part = following
        if following is None:
            yield part, False
            part = _INCOMPLETE
        yield part, True
    finally:
        os.close(ours)
        _end(pid)


def _read_part(fd: int) -> bytes | None:
    """Return the next part; empty after the last one, None if the copy has failed."""
    size = _read(fd, 4)
    return None if size is None else _read(fd, int.from_bytes(size, "little"))


def _read(fd: int, size: int) -> bytes | None:
    import select

    data = b""
    while len(data) < size:
        readable, _, _ = select.select([fd], [], [], READ_SECONDS)
        more = os.read(fd, size - len(data)) if readable else b""
        if not more:
            return None
        data += more
    return data


def _end(pid: int) -> None:
    """End the copy, if it hasn't ended, and take its result from the kernel."""
    import signal

    try:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, _WAIT_FOR_COPIES)
    except OSError:  # The program has waited for it: then its number may be another process's.
        pass
