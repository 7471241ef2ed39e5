"""Samples of one process as packets of a trace.

    sampler.run()     new frames are named while the process still runs
    sampler.take()    samples as encoded packets, and new stacks by number
            │
    drain() ──> names of threads, interned data, samples

Each process has a packet sequence. Its timestamps are those of an incremental clock of this
sequence, in microseconds.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from stretto._native import boottime_ns
from stretto.base import proc_files
from stretto.profilers.sampling.command_line import named_command
from stretto.profilers.sampling.interned_stacks import InternedStacks
from stretto.profilers.sampling.native_code import LOOP, NativeCode
from stretto.profilers.sampling.objects import ObjectReader
from stretto.profilers.sampling.process import ProcessError
from stretto.profilers.sampling.sample_forms import defaults_of, torn_sample
from stretto.profilers.sampling.shortfalls import Shortfalls
from stretto.profilers.sampling.slower import period_note
from stretto.profilers.sampling.stacks import kernel_name, running_scripts
from stretto.profilers.sampling.thread_names import read_thread_names
from stretto.protos.trace import ClockSnapshot, ProcessTree, TracePacket
from stretto.protozero.wire import bytes_field

if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.profilers.sampling.interned_stacks import FunctionKey
    from stretto.profilers.sampling.process import PythonProcess
    from stretto.profilers.sampling.settings import Settings

BOOTTIME = 6
SAMPLE_CLOCK = 64
"""The first clock id that belongs to a packet sequence."""
US = 1000

CLEARED = 1  # SEQ_INCREMENTAL_STATE_CLEARED
NEEDED = 2  # SEQ_NEEDS_INCREMENTAL_STATE
_PACKET = 1  # Trace.packet
_GONE, _NEW_FRAMES = 1, 3  # Results of `PythonSampler.run`.
_CODE_SHARE = 50
"""Reading the list of files in memory again takes at most one part in so many of the time."""


class ProcessSamples:
    """Samples one process.

    Args:
        process: The process.
        settings: What is sampled, and the form of the samples.
        sequence_id: The `trusted_packet_sequence_id` of the packets; 0 for none.
        names_itself: Returns whether the process has described itself in the trace: it knows its
            role, and the last description counts.
        scripts: See `InternedStacks`.

    Raises:
        ProcessError: The process has ended.
    """

    def __init__(
        self,
        process: PythonProcess,
        settings: Settings,
        sequence_id: int,
        *,
        names_itself: Callable[[], bool] = lambda: False,
        scripts: set[str] | None = None,
    ) -> None:
        self.pid = process.pid
        self.own: dict[FunctionKey, int] = {}
        """The number of wanted periods by the function that was the innermost call."""
        self.total: dict[FunctionKey, int] = {}
        """The number of wanted periods by each function on the stack."""
        self.problem = ""
        """Why samples have no C functions, though they should."""
        self.longest = 1
        """The largest number of wanted periods that were between two samples."""
        self._sequence_id = sequence_id
        self._settings = settings
        self._scripts = set() if scripts is None else scripts
        self._scripts.update(running_scripts(process))
        self._start_us = boottime_ns() // US
        self._sampler = process.sampler(
            settings.mode, settings.period_ns, sequence_id, self._start_us, settings.form
        )
        self._reader = ObjectReader(process.pid, process.layout)
        self._code = self._native_code() if settings.native else None
        self._process = process
        self._names_itself = names_itself
        self._threads: set[int] = set()
        self._names: dict[int, str] = {}
        self._undescribed: set[int] = set()
        """Threads that the next `drain` describes, with these names."""
        self._unnamed: set[int] = set()
        """Threads whose names in Python were not found, so that they are looked for once more."""
        self._is_described = False
        self._torn = 0
        self._shortfalls = Shortfalls(settings)
        self._factor = 1  # How many wanted periods are between two samples.
        self._forget()
        self._first = True

    def _forget(self) -> None:
        self._interned = InternedStacks(self._reader, self._scripts, self._code)
        self._hits: list[int] = []
        self._cleared = True

    def _native_code(self) -> NativeCode:
        """Let the samples have C functions."""
        try:
            code = NativeCode(self.pid)
        except OSError as error:
            raise ProcessError(f"Process {self.pid} can't be read: {error}.") from error
        self._sampler.add_native(True)
        self._set_code(code)
        self._code_due_ns = self._unknown_code = 0
        return code

    def _set_code(self, code: NativeCode) -> None:
        loops = code.loops()
        self._sampler.set_code(code.ranges, loops)
        self.problem = "" if loops else f"{LOOP} has no name in its file"

    def _update_code(self, code: NativeCode) -> None:
        """Read where the process has its code, if it has loaded more, or was just starting."""
        unknown, began = self.stats["unknown_code"], time.monotonic_ns()
        if began > self._code_due_ns and (unknown > self._unknown_code or self.problem):
            self._unknown_code = unknown
            with suppress(OSError):  # The process has ended.
                code.update()
                self._set_code(code)
            now = time.monotonic_ns()
            self._code_due_ns = now + _CODE_SHARE * (now - began)

    def run(self, duration_ns: int) -> bool:
        """Sample for some time, mostly without the GIL; return False if the process is gone."""
        if self._code is not None:
            self._update_code(self._code)
        end = time.monotonic_ns() + duration_ns
        result = _NEW_FRAMES
        while result == _NEW_FRAMES:
            result = self._sampler.run(max(end - time.monotonic_ns(), 0))
            if frames := self._sampler.take_frames():
                self._interned.add_frames(frames)
                self._read_names()  # A thread with new frames may end before the next `drain`.
        return result != _GONE

    @property
    def stats(self) -> dict[str, int]:
        """The counts of `PythonSampler.stats`."""
        return self._sampler.stats()

    def drain(self) -> bytes:
        """Return the packets of the samples since the last call, as bytes of a trace."""
        samples, stacks = self._sampler.take()
        self._interned.add_stacks(stacks)
        parts = []
        if self._first:
            parts.append(self._clock_packet())
            self._first = False
        parts += [self._new_threads(), self._interned_packet(), samples, self._torn_packets()]
        parts.append(self._notes(self._shortfalls.packets(self.stats, self.problem)))
        self._count()
        has_new_period = self.stats["factor"] != self._factor
        if has_new_period:
            parts.append(self._change_period())
        if has_new_period or self._interned.is_stale():
            self._sampler.clear()
            self._forget()  # The next packets begin with defaults, which have the period.
        return b"".join(parts)

    def _change_period(self) -> bytes:
        """Follow the period of the sampler; return packets that tell it."""
        self._factor = self.stats["factor"]
        self.longest = max(self.longest, self._factor)
        return self._notes(period_note(self._settings, self.pid, self._factor))

    def _notes(self, packets: list[TracePacket]) -> bytes:
        """Return packets of this time as bytes of a trace."""
        for packet in packets:
            packet.timestamp, packet.timestamp_clock_id = boottime_ns(), BOOTTIME
        return b"".join(map(self._framed, packets))

    def _framed(self, packet: TracePacket) -> bytes:
        """Return a packet of this sequence as a field of a trace."""
        if self._sequence_id:
            packet.trusted_packet_sequence_id = self._sequence_id
        return bytes_field(_PACKET, packet.encode())

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
        return self._framed(
            TracePacket(
                timestamp=self._start_us * US,
                timestamp_clock_id=BOOTTIME,
                clock_snapshot=ClockSnapshot(clocks=clocks, primary_trace_clock=BOOTTIME),
            )
        )

    def _interned_packet(self) -> bytes:
        data = self._interned.take()
        if data is None and not self._cleared:
            return b""
        packet = TracePacket(
            sequence_flags=NEEDED | CLEARED if self._cleared else NEEDED, interned_data=data
        )
        if self._cleared:
            packet.trace_packet_defaults = defaults_of(self._current(), SAMPLE_CLOCK)
        self._cleared = False
        return self._framed(packet)

    def _current(self) -> Settings:
        """Return the settings with the period of the samples until the next change."""
        return self._settings._replace(period_ns=self._settings.period_ns * self._factor)

    def _torn_packets(self) -> bytes:
        torn = self._sampler.stats()["torn"]
        new, self._torn = torn - self._torn, torn
        if not new:
            return b""
        packet = torn_sample(self._current(), self.pid)
        packet.timestamp, packet.timestamp_clock_id = boottime_ns(), BOOTTIME
        return new * self._framed(packet)

    def _new_threads(self) -> bytes:
        """Return a packet with the names of new threads, and of the process at first."""
        self._read_names()
        described, self._undescribed = self._undescribed, set()
        names, self._names = self._names, {}
        self._unnamed &= described
        if not described:
            return b""
        known, self._is_described = self._is_described, True
        tree = ProcessTree(
            processes=[] if known or self._names_itself() else [self._described_process()],
            threads=[
                ProcessTree.Thread(
                    tid=tid, tgid=self.pid, name=names.get(tid) or kernel_name(self.pid, tid)
                )
                for tid in sorted(described)
            ],
        )
        return self._framed(
            TracePacket(timestamp=boottime_ns(), timestamp_clock_id=BOOTTIME, process_tree=tree)
        )

    def _read_names(self) -> None:
        """Read the names of threads that are new, or had none when they were new."""
        try:
            tids = {int(name) for name in os.listdir(f"/proc/{self.pid}/task")}
        except OSError:
            return
        new = tids - self._threads
        if not (new | self._unnamed):
            return
        names = read_thread_names(self._process, self._reader)
        self._undescribed |= new | (self._unnamed & names.keys())
        self._unnamed = (self._unnamed | new) - names.keys()
        self._threads |= new
        self._names.update(names)

    def _described_process(self) -> ProcessTree.Process:
        cmdline, stat = proc_files.words(self.pid, "cmdline"), proc_files.stat(self.pid)
        ppid = int(stat[1]) if stat else None
        # The trace processor cuts a command line of one word at the first space.
        cmdline = [*named_command(cmdline), *[""] * (len(cmdline) == 1)]
        return ProcessTree.Process(pid=self.pid, ppid=ppid, cmdline=cmdline)

    def _count(self) -> None:
        """Add the samples since the last call to the counts by function."""
        hits = self._sampler.hits()
        before = self._hits + [0] * (len(hits) - len(self._hits))
        for stack, now, then in zip(self._interned.stacks, hits, before, strict=True):
            if now > then:
                self._count_stack(stack, now - then)
        self._hits = hits

    def _count_stack(self, stack: tuple[int, ...], samples: int) -> None:
        keys = self._interned.functions(stack)
        self.own[keys[-1]] = self.own.get(keys[-1], 0) + samples
        for key in set(keys):
            self.total[key] = self.total.get(key, 0) + samples
