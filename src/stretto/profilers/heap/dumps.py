"""Dumps of the heap profile, as packets of a trace: ProfilePacket.

Each heap has a packet sequence of its own, because the trace processor computes the differences
between two dumps by stack, not by heap:

    InternedData     the stacks that are new
    ProfilePacket    index 0, continued     samples of the first 500 stacks that have changed
    ProfilePacket    index 1                the other samples

Numbers in samples are totals since the start. A stack that hasn't changed since the last dump has
no sample. With `dump_at_max` there is one dump, at the end, with what was live when most was.

In a ring the service may have overwritten the last dumps, so it clears the state of the sequences.
The trace processor forgets the totals then, and would add the next ones to those of the dumps that
are still there. So the next dump has two parts:

    ProfilePacket    of the old state: everything is free; not read if the old dumps are gone
    InternedData     clears the state
    ProfilePacket    index 0; everything that is live, as allocated since then

Sources: Perfetto's protos/perfetto/trace/profiling/profile_packet.proto. A dump's time is that of
CLOCK_MONOTONIC_COARSE.
"""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from stretto import _pyhooks
from stretto._native import boottime_ns
from stretto.base.clock import BOOTTIME
from stretto.profilers.heap.stacks import HeapStacks
from stretto.protos.trace import ProfilePacket, TracePacket

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stretto import _native
    from stretto.protos.config import HeapprofdConfig

HEAPS = ("python.raw", "python.mem", "python.obj")
"""The heaps, by the numbers of CPython's memory domains."""

SAMPLES_PER_PACKET = 500

_MONOTONIC_COARSE = 6  # The number of the clock in Linux.
_CLEARED, _NEEDED = 1, 2

_Row = tuple[int, int, int, int, int, int, int]


class _Moment(NamedTuple):
    """What all packets of a dump have in common."""

    coarse_ns: int
    stats: dict[str, int]


class _Heap:
    """The packet sequence of one heap."""

    def __init__(self, number: int, writer: _native.TraceWriter, config: HeapprofdConfig) -> None:
        self._number = number
        self._writer = writer
        self._at_max = config.dump_at_max
        self._start_ns = time.clock_gettime_ns(_MONOTONIC_COARSE)
        self._first_interval = 0
        self._freed_before: dict[int, tuple[int, int]] = {}
        self._has_old_state = False
        self._start_state()

    def _start_state(self) -> None:
        self._index = 0  # The trace processor counts the packets since the state was cleared.
        self._stacks = HeapStacks()
        self._totals: dict[int, dict[int, _Row]] = {}
        self._cleared = True

    def clear(self) -> None:
        """Write everything in the next dump."""
        self._has_old_state = not self._cleared

    def _end_state(self, moment: _Moment) -> None:
        """Write that everything is free."""
        samples = [self._sample(number) for number in self._totals]
        for sample in samples:
            sample.self_freed, sample.free_count = sample.self_allocated, sample.alloc_count
        self._write_samples(moment, samples)
        self._start_state()

    def dump(self, moment: _Moment) -> None:
        restarts = self._has_old_state
        if restarts:
            self._end_state(moment)
            self._has_old_state = False
        _, _, rows = _pyhooks.heap_dump(self._number, self._cleared)
        if restarts:
            self._freed_before = {row[0]: (row[2], row[4]) for row in rows}
        samples = [self._sample(number) for number in self._take_over(rows)]
        whole = self._write_interned()
        if not self._write_samples(moment, samples) or not whole:
            self.clear()  # The reader lacks something that later dumps would refer to.

    def _write_samples(self, moment: _Moment, samples: Sequence[ProfilePacket.HeapSample]) -> bool:
        whole = True
        last = max(0, (len(samples) - 1) // SAMPLES_PER_PACKET)
        for i in range(last + 1):
            part = samples[i * SAMPLES_PER_PACKET : (i + 1) * SAMPLES_PER_PACKET]
            whole &= self._write_part(moment, part, continued=i < last)
        return whole

    def _take_over(self, rows: Sequence[_Row]) -> Sequence[int]:
        """Take over changed totals; return the numbers in the packets of what has changed."""
        numbers = [self._stacks.number(row[0]) for row in rows]
        for number, row in zip(numbers, rows, strict=True):
            self._totals.setdefault(number, {})[row[0]] = row
        return list(dict.fromkeys(numbers))

    def _sample(self, number: int) -> ProfilePacket.HeapSample:
        """Return the sum of the sampler's stacks that are this one in the packets."""
        rows = self._totals[number]
        _, allocated, freed, allocations, frees, at_max, at_max_samples = map(
            sum, zip(*rows.values(), strict=True)
        )
        before = [self._freed_before.get(stack, (0, 0)) for stack in rows]
        size, count = sum(each[0] for each in before), sum(each[1] for each in before)
        sample = ProfilePacket.HeapSample(callstack_id=number)
        if self._at_max:
            sample.self_max, sample.self_max_count = at_max, at_max_samples
        else:
            sample.self_allocated, sample.self_freed = allocated - size, freed - size
            sample.alloc_count, sample.free_count = allocations - count, frees - count
        return sample

    def _write_interned(self) -> bool:
        data = self._stacks.take()
        if data is None and not self._cleared:
            return True
        flags = _NEEDED | _CLEARED if self._cleared else _NEEDED
        self._cleared = False
        return self._write(TracePacket(sequence_flags=flags, interned_data=data))

    def _write_part(
        self, moment: _Moment, samples: Sequence[ProfilePacket.HeapSample], *, continued: bool
    ) -> bool:
        dump = self._process(moment)
        dump.samples = list(samples)
        return self._write_profile(dump, continued=continued)

    def _process(self, moment: _Moment) -> ProfilePacket.ProcessHeapSamples:
        stats = moment.stats
        self._first_interval = self._first_interval or stats["interval"] >> stats["slower"]
        return ProfilePacket.ProcessHeapSamples(
            pid=os.getpid(),
            heap_name=HEAPS[self._number],
            timestamp=moment.coarse_ns,
            start_timestamp=self._start_ns,
            sampling_interval_bytes=stats["interval"],
            orig_sampling_interval_bytes=self._first_interval,
            hit_guardrail=bool(stats["live_full"] or stats["out_of_memory"]) or None,
        )

    def reject(self, moment: _Moment) -> None:
        """Write that another session profiles this process."""
        self._write(TracePacket(sequence_flags=_CLEARED))
        self._write_profile(
            ProfilePacket.ProcessHeapSamples(
                pid=os.getpid(),
                heap_name=HEAPS[self._number],
                timestamp=moment.coarse_ns,
                rejected_concurrent=True,
            ),
            continued=False,
        )

    def _write_profile(self, dump: ProfilePacket.ProcessHeapSamples, *, continued: bool) -> bool:
        packet = ProfilePacket(process_dumps=[dump], continued=continued, index=self._index)
        self._index += 1
        return self._write(TracePacket(sequence_flags=_NEEDED, profile_packet=packet))

    def _write(self, packet: TracePacket) -> bool:
        packet.timestamp, packet.timestamp_clock_id = boottime_ns(), BOOTTIME
        return self._writer.write(packet.encode())


class Dumps:
    """The dumps of a session.

    Args:
        config: the session's config of the data source.
        make_writer: makes the trace writer of a heap.
    """

    def __init__(
        self, config: HeapprofdConfig, make_writer: Callable[[], _native.TraceWriter]
    ) -> None:
        wanted = config.heaps or HEAPS
        self._at_max = config.dump_at_max
        self._heaps = [
            _Heap(number, make_writer(), config)
            for number, name in enumerate(HEAPS)
            if name in wanted and name not in config.exclude_heaps
        ]
        self._lock = threading.Lock()

    def write(self, *, at_end: bool = False) -> None:
        """Write a dump of each heap.

        Args:
            at_end: whether this is the last dump; with `dump_at_max` the others aren't written.
        """
        if at_end or not self._at_max:
            _pyhooks.heap_unsampled(self._write)

    def _write(self) -> None:
        with self._lock:
            moment = _now()
            for heap in self._heaps:
                heap.dump(moment)

    def clear(self) -> None:
        """Write everything in the next dump."""
        with self._lock:
            for heap in self._heaps:
                heap.clear()

    def reject(self) -> None:
        """Write that another session profiles this process."""
        for heap in self._heaps:
            heap.reject(_now())


def _now() -> _Moment:
    return _Moment(time.clock_gettime_ns(_MONOTONIC_COARSE), _pyhooks.heap_stats())
