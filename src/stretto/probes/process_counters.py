"""`linux.process_stats`: memory and CPU time of selected processes, from /proc.

    for source in ProcessCounters.instances():
        source.sample(pids)

Each value is a counter track of its process, with a unit. CPU use is in per cent of one core since
the previous sample. A subclass may add counts that only grow; their counters show the growth in a
second. A counter that was always 0 has no track. A viewer draws a counter until its
next value, so zeros are written when the process has ended.
"""

from __future__ import annotations

import os

from stretto.base import proc_files
from stretto.base.hashes import fnv1a
from stretto.client import api
from stretto.client.data_source import DataSource
from stretto.client.track_event.process import uuid_of_process
from stretto.protozero.wire import FIXED64, bytes_field, tag, varint_field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from struct import Struct
else:
    from _struct import Struct  # The module `struct` around it takes half a millisecond more.

# Numbers of fields. Message classes aren't used: to make that of TracePacket, with more than a
# hundred fields, takes a millisecond at the start of each recording.
_TIMESTAMP, _TRACK_EVENT, _TRACK_DESCRIPTOR = 8, 11, 60  # TracePacket
_TYPE, _TRACK_UUID, _DOUBLE_VALUE = 9, 11, 44  # TrackEvent
_TYPE_COUNTER = 4
_UUID, _NAME, _PROCESS, _PARENT_UUID, _COUNTER = 1, 2, 3, 5, 8  # TrackDescriptor
_PID = 1  # ProcessDescriptor
_UNIT, _UNIT_NAME = 3, 6  # CounterDescriptor
_UNIT_SIZE_BYTES = 3
_DOUBLE = Struct("<d")

_TICK_NS = 10**9 // os.sysconf("SC_CLK_TCK")
_CPU = "CPU"
_MEMORY = {
    b"VmSize": "mem.virt",
    b"VmRSS": "mem.rss",
    b"RssAnon": "mem.rss.anon",
    b"RssFile": "mem.rss.file",
    b"RssShmem": "mem.rss.shmem",
    b"VmSwap": "mem.swap",
    b"VmHWM": "mem.rss.watermark",
}
"""Perfetto's names of the values in /proc/PID/status."""
_PERCENT = bytes_field(_UNIT_NAME, b"%")
_PER_SECOND = bytes_field(_UNIT_NAME, b"/s")
_BYTES = varint_field(_UNIT, _UNIT_SIZE_BYTES)


def _memory(pid: int) -> dict[str, int]:
    """Return memory sizes in bytes by counter name; empty if the process has ended."""
    lines = (line.partition(b":") for line in proc_files.read(pid, "status").splitlines())
    return {
        _MEMORY[name]: int(rest.split()[0]) * 1024 for name, _, rest in lines if name in _MEMORY
    }


def _cpu(pid: int) -> tuple[int, int] | None:
    """Return (CPU time in ns, start time in ticks); None if the process has ended."""
    fields = proc_files.stat(pid)
    if len(fields) < 20:
        return None
    return (int(fields[11]) + int(fields[12])) * _TICK_NS, int(fields[19])


def _unit(name: str) -> bytes:
    """Return the encoded CounterDescriptor."""
    if name == _CPU:
        return _PERCENT
    return _BYTES if name.startswith("mem.") else _PER_SECOND


class _Process:
    """A sampled process, and its CPU time at the last sample."""

    __slots__ = ("counters", "counts", "cpu_ns", "pid", "start", "timestamp", "uuid")

    def __init__(self, pid: int, start: int, cpu_ns: int, timestamp: int) -> None:
        self.pid = pid
        self.start = start
        self.cpu_ns = cpu_ns
        self.timestamp = timestamp
        self.uuid = uuid_of_process(pid, start)
        self.counts: dict[str, int] = {}
        """The counts that only grow, at the last sample."""
        self.counters: set[str] = set()
        """Names of counters that have had a value other than 0."""

    def rates(self, counts: dict[str, int], timestamp: int) -> dict[str, float]:
        """Return the growth of the counts in a second since the last sample; store the counts.

        It has to be called before `percent`, which stores the time of the sample.
        """
        before, self.counts = self.counts, counts
        elapsed = max(1, timestamp - self.timestamp)
        return {
            name: (count - before[name]) * 10**9 / elapsed
            for name, count in counts.items()
            if count >= before.get(name, count + 1)
        }

    def percent(self, cpu_ns: int, timestamp: int) -> float:
        """Return the CPU use since the last sample in per cent; store the new sample."""
        elapsed = max(1, timestamp - self.timestamp)
        used = cpu_ns - self.cpu_ns
        self.cpu_ns, self.timestamp = cpu_ns, timestamp
        return 100 * used / elapsed


class ProcessCounters(DataSource):
    """Samples the processes that are passed to `sample`."""

    name = "linux.process_stats"

    def __init__(self) -> None:
        super().__init__()
        self._processes: dict[int, _Process] = {}
        self._described: set[int] = set()

    def on_clear_incremental_state(self) -> None:
        self._described.clear()

    @property
    def living(self) -> set[int]:
        """The sampled processes that were running at the last sample."""
        return set(self._processes)

    def counts(self, pid: int) -> dict[str, int]:
        """Return counts of a process that only grow, by the names of their counters.

        They are not asked for at a process's first sample: many processes end before the second.
        """
        return {}

    def sample(self, pids: Iterable[int]) -> None:
        """Write the counters of processes; zeros for processes that have ended."""
        now = api.now()
        for pid in sorted(pids):
            cpu, memory = _cpu(pid), _memory(pid)
            if cpu is None or "mem.rss" not in memory:
                self._end(pid, now)
            else:
                self._sample(pid, *cpu, memory, now)

    def _sample(self, pid: int, cpu_ns: int, start: int, memory: dict[str, int], now: int) -> None:
        process = self._processes.get(pid)
        values: dict[str, float] = {**memory}
        if process is None or process.start != start:
            process = self._processes[pid] = _Process(pid, start, cpu_ns, now)
        else:
            values.update(process.rates(self.counts(pid), now))
            values[_CPU] = process.percent(cpu_ns, now)
        process.counters.update(name for name, value in values.items() if value)
        self._write(process, values, now)

    def _end(self, pid: int, now: int) -> None:
        process = self._processes.pop(pid, None)
        if process is not None:
            self._write(process, dict.fromkeys(process.counters, 0), now)

    def _write(self, process: _Process, values: dict[str, float], now: int) -> None:
        for name in sorted(process.counters & set(values)):
            track = self._track(process, name, now)
            event = varint_field(_TYPE, _TYPE_COUNTER) + varint_field(_TRACK_UUID, track)
            event += tag(_DOUBLE_VALUE, FIXED64) + _DOUBLE.pack(values[name])
            self.write(varint_field(_TIMESTAMP, now) + bytes_field(_TRACK_EVENT, event))

    def _track(self, process: _Process, name: str, now: int) -> int:
        """Return the uuid of a counter's track.

        The track and its process are described once, and again after the incremental state was
        cleared."""
        uuid = process.uuid ^ fnv1a(name.encode())
        if process.uuid not in self._described:
            owner = bytes_field(_PROCESS, varint_field(_PID, process.pid))
            self._describe(process.uuid, owner, now)
        if uuid not in self._described:
            counter = bytes_field(_NAME, name.encode()) + bytes_field(_COUNTER, _unit(name))
            self._describe(uuid, varint_field(_PARENT_UUID, process.uuid) + counter, now)
        return uuid

    def _describe(self, uuid: int, fields: bytes, now: int) -> None:
        """Write the TrackDescriptor of a track."""
        self._described.add(uuid)
        descriptor = bytes_field(_TRACK_DESCRIPTOR, varint_field(_UUID, uuid) + fields)
        self.write(varint_field(_TIMESTAMP, now) + descriptor)
