"""The packet sequence of one heap: its dumps, as ProfilePackets.

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

import time
from collections import namedtuple

from stretto._native import boottime_ns
from stretto.base.clock import BOOTTIME
from stretto.protos.trace import ProfilePacket, TracePacket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    from stretto import _native
    from stretto.protos.trace import InternedData

    class Stacks(Protocol):
        """The stacks that a packet sequence has defined."""

        def number(self, stack: int, /) -> int:
            """Return the number of a sampler's stack in the packets."""

        def take(self) -> InternedData | None:
            """Return what is new since the last call; None if nothing is."""

    class SampledHeap(Protocol):
        """A heap whose allocations are sampled.

        Attributes:
            name: Its name in the packets.
            pid: The process.
            start_ns: When the profile has begun; CLOCK_MONOTONIC_COARSE.
            from_startup: Whether the profile has begun with the program; None if not known.
        """

        @property
        def name(self) -> str: ...
        @property
        def pid(self) -> int: ...
        @property
        def start_ns(self) -> int: ...
        @property
        def from_startup(self) -> bool | None: ...

        def rows(self, *, everything: bool) -> Sequence[Row]:
            """Return the totals of the stacks that have changed since the last call; or of all."""

        def new_stacks(self) -> Stacks:
            """Return the stacks of a sequence that has defined none."""


SAMPLES_PER_PACKET = 500

_MONOTONIC_COARSE = 6  # The number of the clock in Linux.
_CLEARED, _NEEDED = 1, 2

Row = tuple[int, int, int, int, int, int, int]
"""Stack, bytes allocated, bytes freed, samples of both, bytes and samples at the maximum."""


_Moment = namedtuple("_Moment", ("coarse_ns", "stats"))  # noqa: PYI024 - loads no typing


class Moment(_Moment):
    """What all packets of a dump have in common.

    Attributes:
        coarse_ns: The time.
        stats: `interval` in bytes, `slower` (how often it has doubled), `live_full` and
            `out_of_memory` (samples that found no room).
    """

    __slots__ = ()

    coarse_ns: int
    stats: dict[str, int]

    @classmethod
    def now(cls, stats: dict[str, int]) -> Moment:
        """Return this moment."""
        return cls(coarse_now_ns(), stats)


def coarse_now_ns() -> int:
    """Return the time of a dump."""
    return time.clock_gettime_ns(_MONOTONIC_COARSE)


class HeapSequence:
    """The packet sequence of one heap.

    Args:
        heap: The heap.
        writer: Writes the packets of this sequence only.
        at_max: Whether a dump has what was live when most was.
    """

    def __init__(self, heap: SampledHeap, writer: _native.TraceWriter, *, at_max: bool) -> None:
        self._heap = heap
        self._writer = writer
        self._at_max = at_max
        self._first_interval = 0
        self._freed_before: dict[int, tuple[int, int]] = {}
        self._has_old_state = False
        self._start_state()

    def _start_state(self) -> None:
        self._index = 0  # The trace processor counts the packets since the state was cleared.
        self._stacks = self._heap.new_stacks()
        self._totals: dict[int, dict[int, Row]] = {}
        self._cleared = True

    def clear(self) -> None:
        """Write everything in the next dump."""
        self._has_old_state = not self._cleared

    def free(self, moment: Moment) -> None:
        """Write that everything is free: the process has replaced its memory by exec."""
        self._end_state(moment)

    def _end_state(self, moment: Moment) -> None:
        """Write that everything is free."""
        samples = [self._sample(number) for number in self._totals]
        for sample in samples:
            sample.self_freed, sample.free_count = sample.self_allocated, sample.alloc_count
        self._write_samples(moment, samples)
        self._start_state()

    def dump(self, moment: Moment) -> None:
        """Write a dump."""
        restarts = self._has_old_state
        if restarts:
            self._end_state(moment)
            self._has_old_state = False
        rows = self._heap.rows(everything=self._cleared)
        if restarts:
            self._freed_before = {row[0]: (row[2], row[4]) for row in rows}
        samples = [self._sample(number) for number in self._take_over(rows)]
        whole = self._write_interned()
        if not self._write_samples(moment, samples) or not whole:
            self.clear()  # The reader lacks something that later dumps would refer to.

    def _write_samples(self, moment: Moment, samples: Sequence[ProfilePacket.HeapSample]) -> bool:
        whole = True
        last = max(0, (len(samples) - 1) // SAMPLES_PER_PACKET)
        for i in range(last + 1):
            part = samples[i * SAMPLES_PER_PACKET : (i + 1) * SAMPLES_PER_PACKET]
            whole &= self._write_part(moment, part, continued=i < last)
        return whole

    def _take_over(self, rows: Sequence[Row]) -> Sequence[int]:
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
        self, moment: Moment, samples: Sequence[ProfilePacket.HeapSample], *, continued: bool
    ) -> bool:
        dump = self._process(moment)
        dump.samples = list(samples)
        return self._write_profile(dump, continued=continued)

    def _process(self, moment: Moment) -> ProfilePacket.ProcessHeapSamples:
        stats = moment.stats
        self._first_interval = self._first_interval or stats["interval"] >> stats["slower"]
        return ProfilePacket.ProcessHeapSamples(
            pid=self._heap.pid,
            from_startup=self._heap.from_startup,
            heap_name=self._heap.name,
            timestamp=moment.coarse_ns,
            start_timestamp=self._heap.start_ns,
            sampling_interval_bytes=stats["interval"],
            orig_sampling_interval_bytes=self._first_interval,
            hit_guardrail=bool(stats["live_full"] or stats["out_of_memory"]) or None,
        )

    def reject(self, moment: Moment) -> None:
        """Write that another session profiles this process."""
        self._write(TracePacket(sequence_flags=_CLEARED))
        self._write_profile(
            ProfilePacket.ProcessHeapSamples(
                pid=self._heap.pid,
                heap_name=self._heap.name,
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
