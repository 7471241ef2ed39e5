"""`linux.perf`: samples of what runs on each CPU, with stacks; or counters; by perf_event_open.

    start      one group of events for each CPU; the defaults packet
    each tick  the rings are read and converted natively (native/probes/perf_sampler.h); new
               processes, files, functions and stacks are named
    flush      the same, until the rings are empty
    stop       the same; the events are closed

The sequence has packets with ProcessTree, InternedData and PerfSample. If the set-up fails, an
instant event on the track `linux.perf` gives the reason, and the session has no samples. Such an
event also tells when sampling was stopped by a limit, or paused by the kernel.
"""

from __future__ import annotations

import errno
import os
from random import randrange

from stretto import _native
from stretto.probes.perf_config import BOOTTIME, PerfError, settings_of
from stretto.probes.perf_frames import Frames
from stretto.probes.perf_mappings import AddressSpaces, Mapping
from stretto.probes.perf_processes import Processes
from stretto.probes.perf_scope import Scope
from stretto.probes.probe import Probe
from stretto.protos.config import PerfEventConfig
from stretto.protos.trace import (
    PerfSample,
    TracePacket,
    TracePacketDefaults,
)
from stretto.protozero.wire import bytes_field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, ClassVar

    from stretto.probes.perf_config import PerfSettings
    from stretto.probes.poll import Poll

CLEARED, NEEDED = 1, 2  # SEQ_INCREMENTAL_STATE_CLEARED, SEQ_NEEDS_INCREMENTAL_STATE
INTERNED_DATA = TracePacket.LAYOUT.field("interned_data").number
MEMORY_PERIOD_MS = 1000
MAX_READS = 64
"""How often a flush reads the rings, at most."""
KB = 1024
MAX_SHARDS = 1000
ADDRESSES = 1 << 64


class Perf(Probe):
    """Takes the samples that a session's PerfEventConfig asks for."""

    name = "linux.perf"
    sampler: ClassVar[type[_native.PerfSampler]] = _native.PerfSampler
    _shards: ClassVar[dict[tuple[int, int], int]] = {}
    """By session and number of shards: the chosen one, which all its data sources share."""

    def start(self) -> None:
        self._options = self.config.perf_event_config or PerfEventConfig()
        self._open: _native.PerfSampler | None = None
        self._poll: Poll | None = None
        self._throttled = 0
        try:
            self._settings = settings_of(self._options, self.machine)
            self._set_up(self._settings)
        except PerfError as error:
            self._close()
            self.note(f"not recorded: {error}")

    def stop(self) -> None:
        if self._open is None:
            return
        self._open.enable(False)
        self.flush()
        if self._throttled:
            self.note(f"the kernel has paused the event {self._throttled} times: it took too long")
        self._close()

    def _is_closed(self) -> bool:
        return self._open is None

    def _close(self) -> None:
        if self._poll is not None:
            self._poll.stop()
        if self._open is not None:
            self._open.close()
            self._open = None

    def flush(self) -> None:
        """Write all samples that the rings have."""
        reads = 0
        while self._open is not None and self._read() and reads < MAX_READS:
            reads += 1

    def clear_incremental_state(self) -> None:
        if self._open is None:
            return
        self._frames.clear()
        self._processes.forget_descriptions()
        self._write_defaults()

    # --- set-up

    def _set_up(self, settings: PerfSettings) -> None:
        cpus = self._cpus()
        self._open = sampler = self.sampler(
            len(cpus),
            settings.kernel_frames,
            settings.user_frames,
            settings.ring_pages,
            settings.max_samples,
            self._options.max_enqueued_footprint_kb * KB,
            settings.user_stack,
        )
        opened = [cpu for cpu in cpus if self._open_cpu(sampler, cpu, settings)]
        if not opened:
            raise PerfError("no CPU has these events")
        shard = self._shard()
        self._spaces = AddressSpaces(self.machine, unwind_tables=settings.user_stack)
        self._frames = Frames(sampler, self._spaces, self._kernel_symbols(settings))
        self._processes = Processes(
            self.machine, Scope(self._options, shard), kernel_frames=settings.kernel_frames
        )
        self._write_defaults()
        sampler.enable(True)
        periods = {"read": settings.read_period_ms}
        if self._options.max_daemon_memory_kb:
            periods["memory"] = MEMORY_PERIOD_MS
        if self._options.unwind_state_clear_period_ms:
            periods["files"] = self._options.unwind_state_clear_period_ms
        self._poll = self.poll(periods, self._tick)  # The first tick is now.
        if self._is_closed():
            self._poll.stop()

    def _cpus(self) -> list[int]:
        """Return the CPUs that are online, and that the config asks for."""
        text = self.machine.read("sys/devices/system/cpu/online").decode(errors="replace")
        wanted = set(self._options.target_cpu)
        cpus = [cpu for cpu in _listed(text) if not wanted or cpu in wanted]
        if not cpus:
            raise PerfError("no CPU of target_cpu is online")
        return cpus

    def _shard(self) -> int:
        stacks = self._options.callstack_sampling
        count = stacks.scope.process_shard_count if stacks and stacks.scope else 0
        if not count:
            return 0
        if len(self._shards) >= MAX_SHARDS:
            self._shards.clear()
        key = (self.config.tracing_session_id, count)
        shard = self._shards.setdefault(key, randrange(count))
        self._settings.defaults.process_shard_count = count
        self._settings.defaults.chosen_process_shard = shard
        return shard

    def _kernel_symbols(self, settings: PerfSettings) -> _native.KernelSymbols | None:
        if not settings.kernel_frames:
            return None
        try:
            symbols = _native.KernelSymbols(self.machine.path("proc/kallsyms"))
        except OSError:
            symbols = None
        if not symbols:
            self.note("the kernel hides its symbols (kptr_restrict): its frames have no names")
        return symbols

    def _open_cpu(self, sampler: _native.PerfSampler, cpu: int, settings: PerfSettings) -> bool:
        """Open the events of a CPU. Returns False if the config allows that it fails."""
        try:
            sampler.open(cpu, settings.events, settings.frequency, settings.period, settings.clock)
        except OSError as error:
            if self._options.ignore_open_failure:
                return False
            raise PerfError(f"CPU {cpu}: {self._reason(error)}") from None
        return True

    def _reason(self, error: OSError) -> str:
        """Return why the kernel refuses an event, and what to do."""
        level = self.machine.read("proc/sys/kernel/perf_event_paranoid").decode().strip()
        if error.errno in (errno.EACCES, errno.EPERM):
            if os.geteuid() == 0:
                return "perf_event_open is forbidden, by seccomp or a missing CAP_PERFMON"
            return (
                "samples of all processes need root or CAP_PERFMON, or perf_event_paranoid 0 or "
                f"less (-1 for tracepoints); it is {level or 'unknown'}"
            )
        if error.errno in (errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV, errno.ENXIO):
            return (
                "this machine has no such counter (virtual machines often have no hardware "
                "counters; SW_CPU_CLOCK works everywhere)"
            )
        if error.errno == errno.ENOSYS:
            return "this kernel has no perf events, or a filter of system calls forbids them"
        if error.errno == errno.EINVAL:
            return (
                "the kernel refuses the event: its filter, its clock (hardware events can't have "
                "boottime) or its frequency (above perf_event_max_sample_rate)"
            )
        return str(error)

    # --- recording

    def _tick(self, due: Iterable[str]) -> None:
        if self._open is None:
            return
        if "files" in due:
            self._spaces.forget_files()
            self._open.clear_code()
        if self._settings.is_polled:
            self._write_counts(self._open)
        else:
            self._read()
        if "memory" in due and self._memory_kb() > self._options.max_daemon_memory_kb:
            self._stop_by_limit()

    def _read(self) -> bool:
        """Convert and write what the rings have; return whether they have more."""
        sampler = self._open
        if sampler is None:
            return False
        if self._settings.is_polled:
            self._write_counts(sampler)
            return False
        more = sampler.read()
        self._spaces.begin()
        while (event := sampler.next()) is not None:
            self._handle(sampler, *event)
        packets, stacks = sampler.take()
        self._write_state(stacks)
        for packet in packets:
            self.write(packet)
        if self._frames.is_full():
            self.clear_incremental_state()
        return more

    def _handle(self, sampler: _native.PerfSampler, kind: str, number: int, *rest: Any) -> None:
        """Handle what the sampler has stopped at; `number` is a pid, or a CPU."""
        if kind == "frames":
            self._frames.add(number, rest[0])
        elif kind == "code":
            self._add_code(sampler, number, rest[0])
        elif kind == "thread":
            tid, has_user_stack = rest
            wanted = self._processes.has(number, tid, has_user_stack=has_user_stack)
            sampler.decide(number, wanted)
        elif kind == "lost":
            self._write_lost(number, rest[0])
            self._spaces.forget()  # Mappings may be among the lost records.
        elif kind == "throttle":
            self._throttled += 1
        else:
            self._change(sampler, kind, number, *rest)

    def _add_code(self, sampler: _native.PerfSampler, pid: int, address: int) -> None:
        """Tell the sampler which file has an address, so that it can unwind its functions."""
        mapping = self._spaces.find(pid, address)
        if mapping is None:
            return
        offset, elf = address - mapping.start + mapping.offset, mapping.elf
        bias = address - (offset if elf is None else elf.address(offset))
        sampler.add_code(mapping.start, mapping.end, bias % ADDRESSES, elf)

    def _change(self, sampler: _native.PerfSampler, kind: str, pid: int, *rest: Any) -> None:
        if kind == "mapping":
            start, size, offset, path = rest
            if self._spaces.map(pid, Mapping(start, start + size, offset, path)):
                sampler.renew(pid)
        elif kind == "name":
            tid, name, is_exec = rest
            self._processes.name(tid, name)
            if is_exec:
                self._processes.run(pid)
                self._spaces.run(pid)
        elif kind == "fork":
            self._spaces.fork(pid, rest[0])
        else:
            self._processes.end(pid, rest[0])
            if pid == rest[0]:
                self._spaces.end(pid)

    # --- packets

    def _write_defaults(self) -> None:
        defaults = TracePacketDefaults(
            timestamp_clock_id=self._settings.trace_clock,
            perf_sample_defaults=self._settings.defaults,
        )
        self._write_now(TracePacket(sequence_flags=CLEARED, trace_packet_defaults=defaults))

    def _write_state(self, stacks: list[tuple[int, ...]]) -> None:
        """Write the descriptions and names that the next samples need."""
        if (tree := self._processes.take()) is not None:
            self._write_now(TracePacket(process_tree=tree))
        if data := self._frames.take(stacks):
            packet = TracePacket(timestamp=self.machine.now_ns(), timestamp_clock_id=BOOTTIME)
            packet.sequence_flags = NEEDED
            self.write(packet.encode() + bytes_field(INTERNED_DATA, data))

    def _write_counts(self, sampler: _native.PerfSampler) -> None:
        for cpu, (count, *followers) in sampler.counts():
            sample = PerfSample(cpu=cpu, timebase_count=count, follower_counts=followers)
            self._write_now(TracePacket(sequence_flags=NEEDED, perf_sample=sample))

    def _write_lost(self, cpu: int, records: int) -> None:
        sample = PerfSample(cpu=cpu, kernel_records_lost=records)
        self._write_now(TracePacket(sequence_flags=NEEDED, perf_sample=sample))

    def _write_now(self, packet: TracePacket) -> None:
        packet.timestamp, packet.timestamp_clock_id = self.machine.now_ns(), BOOTTIME
        self.write(packet)

    # --- limits

    def _memory_kb(self) -> int:
        """Return the memory of this process that is in no file, as Perfetto counts it."""
        text = self.machine.read("proc/self/status").decode(errors="replace")
        words = [line.split() for line in text.splitlines()]
        return sum(int(line[1]) for line in words if line[:1] in (["RssAnon:"], ["VmSwap:"]))

    def _stop_by_limit(self) -> None:
        event = PerfSample.ProducerEvent(
            source_stop_reason=PerfSample.ProducerEvent.PROFILER_STOP_GUARDRAIL
        )
        self._write_now(
            TracePacket(sequence_flags=NEEDED, perf_sample=PerfSample(producer_event=event))
        )
        limit = self._options.max_daemon_memory_kb
        self.note(f"stopped: this process has more memory than max_daemon_memory_kb, {limit} KiB")
        self._close()


def _listed(text: str) -> list[int]:
    """Return the numbers of a list such as `0-3,6`."""
    numbers: list[int] = []
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first.isdecimal():
            numbers += range(int(first), int(last or first) + 1)
    return numbers
