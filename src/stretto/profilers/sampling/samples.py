"""Samples of one process as packets of a trace.

    sampler.run() … take()     the samples as encoded packets; new frames and stacks, by number
            │
    names of code objects ──> one packet that interns them, then the samples, compressed

Each process has a packet sequence. Its timestamps are those of an incremental clock of this
sequence, in microseconds.

A code object may be freed, and another one get its address. So each `drain` compares some of the
known code objects. If one has changed, the numbers of all frames and stacks start again at 1.
"""

from __future__ import annotations

import os
import zlib
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from stretto._native import boottime_ns
from stretto.profilers.sampling.objects import CodeName, ObjectReader
from stretto.profilers.sampling.stacks import thread_name
from stretto.protos.config import PerfEvents
from stretto.protos.trace import (
    Callstack,
    ClockSnapshot,
    Frame,
    InternedData,
    InternedString,
    Mapping,
    PerfSample,
    PerfSampleDefaults,
    ProcessTree,
    TracePacket,
    TracePacketDefaults,
)

if TYPE_CHECKING:
    from stretto.profilers.sampling.process import PythonProcess

BOOTTIME = 6
SAMPLE_CLOCK = 64
"""The first clock id that belongs to a packet sequence."""
US = 1000

CLEARED = 1  # SEQ_INCREMENTAL_STATE_CLEARED
NEEDED = 2  # SEQ_NEEDS_INCREMENTAL_STATE
_MAX_CHECKED = 256
"""The most code objects that a `drain` compares."""
_COMPRESSION = 1


class FunctionKey(NamedTuple):
    """The key of a function in the counts of a profile."""

    function: str
    filename: str


class _Code(NamedTuple):
    name: CodeName
    identity: bytes
    function_iid: int
    mapping_iid: int


class ProcessSamples:
    """Samples one process.

    Args:
        process: The process.
        mode: CPU, WALL or GIL.
        period_ns: The time between two samples.
        sequence_id: The `trusted_packet_sequence_id` of the packets.

    Raises:
        ProcessError: The process has ended.
    """

    def __init__(self, process: PythonProcess, mode: int, period_ns: int, sequence_id: int) -> None:
        self.pid = process.pid
        self.own: dict[FunctionKey, int] = {}
        """The number of samples by the function that was the innermost call."""
        self.total: dict[FunctionKey, int] = {}
        """The number of samples by each function on the stack."""
        self._sequence_id = sequence_id
        self._period_ns = period_ns
        self._start_us = boottime_ns() // US
        self._sampler = process.sampler(mode, period_ns, sequence_id, self._start_us)
        self._reader = ObjectReader(process.pid, process.layout)
        self._threads: set[int] = set()
        self._torn = 0
        self._forget()
        self._first = True

    def _forget(self) -> None:
        self._codes: dict[int, _Code] = {}
        self._mappings: dict[str, int] = {}
        self._frames: list[FunctionKey] = []
        self._stacks: list[tuple[int, ...]] = []
        self._hits: list[int] = []
        self._cleared = True

    def run(self, duration_ns: int) -> bool:
        """Sample for some time, without the GIL; return False if the process is gone."""
        return self._sampler.run(duration_ns) != 1

    @property
    def stats(self) -> dict[str, int]:
        """The counts of `PythonSampler.stats`."""
        return self._sampler.stats()

    def drain(self) -> bytes:
        """Return the packets of the samples since the last call, as bytes of a trace."""
        samples, frames, stacks = self._sampler.take()
        parts = []
        if self._first:
            parts.append(_framed(self._clock_packet()))
            self._first = False
        parts.append(self._new_threads())
        if frames or stacks or self._cleared:
            parts.append(_framed(self._interned_packet(frames, stacks)))
        if samples:
            parts.append(_framed(TracePacket(compressed_packets=_compressed(samples)).encode()))
        parts.append(self._torn_packets())
        self._count()
        if self._is_stale():
            self._sampler.clear()
            self._forget()
        return b"".join(parts)

    def _clock_packet(self) -> bytes:
        clocks = [
            ClockSnapshot.Clock(clock_id=BOOTTIME, timestamp=self._start_us * US),
            ClockSnapshot.Clock(
                clock_id=SAMPLE_CLOCK,
                timestamp=self._start_us,
                is_incremental=True,
                unit_multiplier_ns=US,
            ),
        ]
        return TracePacket(
            timestamp=self._start_us * US,
            timestamp_clock_id=BOOTTIME,
            trusted_packet_sequence_id=self._sequence_id,
            clock_snapshot=ClockSnapshot(clocks=clocks, primary_trace_clock=BOOTTIME),
        ).encode()

    def _interned_packet(
        self, frames: list[tuple[int, int]], stacks: list[tuple[int, ...]]
    ) -> bytes:
        data = InternedData()
        for code, line in frames:
            self._add_frame(data, code, line)
        for stack in stacks:
            self._stacks.append(stack)
            data.callstacks.append(Callstack(iid=len(self._stacks), frame_ids=stack))
        packet = TracePacket(
            trusted_packet_sequence_id=self._sequence_id,
            sequence_flags=NEEDED | CLEARED if self._cleared else NEEDED,
            interned_data=data,
        )
        if self._cleared:
            packet.trace_packet_defaults = self._defaults()
        self._cleared = False
        return packet.encode()

    def _defaults(self) -> TracePacketDefaults:
        timebase = PerfEvents.Timebase(
            period=self._period_ns,
            counter=PerfEvents.Counter.SW_CPU_CLOCK,
            name="cpu-clock",
        )
        return TracePacketDefaults(
            timestamp_clock_id=SAMPLE_CLOCK,
            perf_sample_defaults=PerfSampleDefaults(timebase=timebase),
        )

    def _add_frame(self, data: InternedData, address: int, line: int) -> None:
        code = self._codes.get(address) or self._add_code(data, address)
        self._frames.append(FunctionKey(code.name.function, code.name.filename))
        data.frames.append(
            Frame(
                iid=len(self._frames),
                function_name_id=code.function_iid,
                mapping_id=code.mapping_iid,
                source_path_iid=code.mapping_iid,
                line_number=line,
                kind=Frame.Kind.KIND_INTERPRETED,
            )
        )

    def _add_code(self, data: InternedData, address: int) -> _Code:
        name = self._reader.code_name(address)
        function = len(self._codes) + 1
        data.function_names.append(InternedString(iid=function, str=name.function.encode()))
        mapping = self._mappings.get(name.filename)
        if mapping is None:
            mapping = self._mappings[name.filename] = len(self._mappings) + 1
            path = InternedString(iid=mapping, str=name.filename.encode(errors="replace"))
            data.mapping_paths.append(path)
            data.source_paths.append(path)
            data.mappings.append(Mapping(iid=mapping, path_string_ids=[mapping]))
        code = _Code(name, self._identity(address), function, mapping)
        self._codes[address] = code
        return code

    def _identity(self, address: int) -> bytes:
        try:
            return self._reader.identity(address)
        except OSError:
            return b""

    def _is_stale(self) -> bool:
        """Return whether a known code object has changed; each call compares some, in turn."""
        checked = list(islice(self._codes.items(), _MAX_CHECKED))
        for address, code in checked:
            if self._identity(address) != code.identity:
                return True
        if len(checked) < len(self._codes):
            for address, code in checked:  # Move them to the end.
                del self._codes[address]
                self._codes[address] = code
        return False

    def _torn_packets(self) -> bytes:
        torn = self._sampler.stats()["torn"]
        new, self._torn = torn - self._torn, torn
        sample = PerfSample(
            pid=self.pid,
            tid=self.pid,
            sample_skipped_reason=PerfSample.SampleSkipReason.PROFILER_SKIP_UNWIND_STAGE,
        )
        packet = TracePacket(
            timestamp=boottime_ns(),
            timestamp_clock_id=BOOTTIME,
            trusted_packet_sequence_id=self._sequence_id,
            perf_sample=sample,
        )
        return _framed(packet.encode()) * new if new else b""

    def _new_threads(self) -> bytes:
        """Return a packet with the names of new threads, and of the process at first."""
        try:
            tids = {int(name) for name in os.listdir(f"/proc/{self.pid}/task")}
        except OSError:
            return b""
        new, known = tids - self._threads, bool(self._threads)
        self._threads |= new
        if not new:
            return b""
        tree = ProcessTree(
            processes=[] if known else [self._described_process()],
            threads=[
                ProcessTree.Thread(tid=tid, tgid=self.pid, name=thread_name(self.pid, tid))
                for tid in sorted(new)
            ],
        )
        return _framed(
            TracePacket(
                timestamp=boottime_ns(),
                timestamp_clock_id=BOOTTIME,
                trusted_packet_sequence_id=self._sequence_id,
                process_tree=tree,
            ).encode()
        )

    def _described_process(self) -> ProcessTree.Process:
        folder = Path(f"/proc/{self.pid}")
        try:
            words = folder.joinpath("cmdline").read_bytes().rstrip(b"\0").split(b"\0")
            ppid = int(folder.joinpath("stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return ProcessTree.Process(pid=self.pid)
        cmdline = [word.decode(errors="replace") for word in words]
        return ProcessTree.Process(pid=self.pid, ppid=ppid, cmdline=cmdline)

    def _count(self) -> None:
        """Add the samples since the last call to the counts by function."""
        hits = self._sampler.hits()
        before = self._hits + [0] * (len(hits) - len(self._hits))
        for stack, now, then in zip(self._stacks, hits, before, strict=True):
            if now > then:
                self._count_stack(stack, now - then)
        self._hits = hits

    def _count_stack(self, stack: tuple[int, ...], samples: int) -> None:
        keys = [self._frames[number - 1] for number in stack]
        self.own[keys[-1]] = self.own.get(keys[-1], 0) + samples
        for key in set(keys):
            self.total[key] = self.total.get(key, 0) + samples


def _compressed(packets: bytes) -> bytes:
    return zlib.compress(packets, _COMPRESSION)


def _framed(packet: bytes) -> bytes:
    """Return a packet as field 1 of a trace."""
    size, length = len(packet), bytearray()
    while size > 0x7F:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    length.append(size)
    return b"\x0a" + length + packet
