"""`linux.process_stats`: memory and CPU time of selected processes, from /proc.

    for source in ProcessCounters.instances():
        source.sample(pids)

Memory is written as ProcessStats packets, which the trace processor converts to the counters
`mem.rss`, `mem.virt` and so on of each process. CPU use is a counter track of the process, in per
cent of one core since the previous sample. A viewer draws a counter until its next value, so zeros
are written for a process that has ended.
"""

from __future__ import annotations

import os

import stretto
from stretto.base import proc_files
from stretto.client.track_event.process import uuid_of_process
from stretto.protos.trace import (
    CounterDescriptor,
    ProcessDescriptor,
    ProcessStats,
    TracePacket,
    TrackDescriptor,
    TrackEvent,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_TICK_NS = 10**9 // os.sysconf("SC_CLK_TCK")
_STATUS_FIELDS = {
    b"VmSize": "vm_size_kb",
    b"VmRSS": "vm_rss_kb",
    b"RssAnon": "rss_anon_kb",
    b"RssFile": "rss_file_kb",
    b"RssShmem": "rss_shmem_kb",
    b"VmSwap": "vm_swap_kb",
    b"VmHWM": "vm_hwm_kb",
}
_COUNTER = TrackEvent.TYPE_COUNTER
_CPU_TRACK = 0x6370755F74696D65
"""Mixed into a process's uuid: the uuid of its CPU track."""


def _memory(pid: int) -> ProcessStats.Process | None:
    """Return memory sizes in KiB; None if the process has ended."""
    process = ProcessStats.Process(pid=pid)
    for line in proc_files.read(pid, "status").splitlines():
        name, _, rest = line.partition(b":")
        if name in _STATUS_FIELDS:
            setattr(process, _STATUS_FIELDS[name], int(rest.split()[0]))
    return process if process.has("vm_rss_kb") else None


def _cpu(pid: int) -> tuple[int, int] | None:
    """Return (CPU time in ns, start time in ticks); None if the process has ended."""
    fields = proc_files.stat(pid)
    if len(fields) < 20:
        return None
    return (int(fields[11]) + int(fields[12])) * _TICK_NS, int(fields[19])


def _no_memory(pid: int) -> ProcessStats.Process:
    """Return memory sizes of 0, for a process that has ended."""
    process = ProcessStats.Process(pid=pid)
    for field in _STATUS_FIELDS.values():
        setattr(process, field, 0)
    return process


class _Usage:
    """The CPU time of one process at its last sample."""

    __slots__ = ("cpu_ns", "start", "timestamp", "uuid", "written")

    def __init__(self, pid: int, start: int, cpu_ns: int, timestamp: int) -> None:
        self.start = start
        self.cpu_ns = cpu_ns
        self.timestamp = timestamp
        self.uuid = uuid_of_process(pid, start)
        self.written = False

    def percent(self, cpu_ns: int, timestamp: int) -> float:
        """Return the CPU use since the last sample in per cent; store the new sample."""
        elapsed = max(1, timestamp - self.timestamp)
        used = cpu_ns - self.cpu_ns
        self.cpu_ns, self.timestamp = cpu_ns, timestamp
        return 100 * used / elapsed


class ProcessCounters(stretto.DataSource):
    """Samples the processes that are passed to `sample`."""

    name = "linux.process_stats"

    def __init__(self) -> None:
        super().__init__()
        self._usage: dict[int, _Usage] = {}
        self._living: set[int] = set()
        self._described: set[int] = set()

    def on_clear_incremental_state(self) -> None:
        self._described.clear()

    @property
    def living(self) -> set[int]:
        """The sampled processes that were running at the last sample."""
        return self._living.copy()

    def sample(self, pids: Iterable[int]) -> None:
        """Write the counters of processes; zeros for processes that have ended."""
        now = stretto.now()
        pids = sorted(pids)
        memory = {pid: _memory(pid) for pid in pids}
        ended = [pid for pid in pids if memory[pid] is None and pid in self._living]
        self._living.difference_update(ended)
        self._living.update(pid for pid in pids if memory[pid] is not None)
        processes = [process for process in memory.values() if process is not None]
        self._write_memory(processes + [_no_memory(pid) for pid in ended], now)
        for pid in ended:
            self._end_cpu(pid, now)
        for pid in pids:
            if pid not in ended:
                self._write_cpu(pid, now)

    def _write_memory(self, processes: list[ProcessStats.Process], now: int) -> None:
        if processes:
            stats = ProcessStats(processes=processes, collection_end_timestamp=stretto.now())
            self.write(TracePacket(timestamp=now, process_stats=stats))

    def _end_cpu(self, pid: int, now: int) -> None:
        usage = self._usage.pop(pid, None)
        if usage is not None and usage.written:
            self._describe(pid, usage.uuid)
            self._write_use(usage, 0.0, now)

    def _write_cpu(self, pid: int, now: int) -> None:
        cpu = _cpu(pid)
        if cpu is None:
            self._usage.pop(pid, None)
            return
        cpu_ns, start = cpu
        usage = self._usage.get(pid)
        if usage is None or usage.start != start:
            self._usage[pid] = _Usage(pid, start, cpu_ns, now)
            return
        self._describe(pid, usage.uuid)
        self._write_use(usage, usage.percent(cpu_ns, now), now)

    def _write_use(self, usage: _Usage, percent: float, now: int) -> None:
        usage.written = True
        track = usage.uuid ^ _CPU_TRACK
        event = TrackEvent(type=_COUNTER, track_uuid=track, double_counter_value=percent)
        self.write(TracePacket(timestamp=now, track_event=event))

    def _describe(self, pid: int, uuid: int) -> None:
        """Write the descriptors of a process and its CPU track, unless they are written already.

        After the incremental state was cleared, they are written again."""
        if uuid in self._described:
            return
        self._described.add(uuid)
        process = TrackDescriptor(uuid=uuid, process=ProcessDescriptor(pid=pid))
        counter = TrackDescriptor(
            uuid=uuid ^ _CPU_TRACK,
            parent_uuid=uuid,
            name="CPU",
            counter=CounterDescriptor(unit_name="%"),
        )
        for descriptor in (process, counter):
            self.write(TracePacket(track_descriptor=descriptor))
