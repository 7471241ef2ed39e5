"""`linux.sys_stats`: counters of the whole machine, from /proc and /sys.

Each group of counters has a period of its own. Groups that are due together share a packet.
"""

from __future__ import annotations

from stretto import _native
from stretto.probes import sys_stats_files as files
from stretto.probes.budget import Budget
from stretto.probes.probe import Probe
from stretto.protos.config import MeminfoCounters, SysStatsConfig, VmstatCounters
from stretto.protos.trace import SysStats as Message
from stretto.protos.trace import TracePacket
from stretto.protozero.wire import bytes_field, varint_field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stretto.protozero.enums import Enum

    Stats = Message.Writer

MIN_PERIOD_MS = 10
CPUS = "sys/devices/system/cpu"
DEVFREQ = "sys/class/devfreq"
THERMAL = "sys/class/thermal"
TIMESTAMP, SYS_STATS = (TracePacket.LAYOUT.by_name[n].number for n in ("timestamp", "sys_stats"))
END_TIMESTAMP = Message.LAYOUT.by_name["collection_end_timestamp"].number


class SysStats(Probe):
    """Samples the groups that a session's SysStatsConfig has a period for.

    A file is opened when its group is sampled for the first time, and stays open.
    """

    name = "linux.sys_stats"

    def start(self) -> None:
        self._options = self.config.sys_stats_config or SysStatsConfig()
        self._parts = sum({1 << part for part in self._options.stat_counters})
        self._files: dict[str, _native.MachineFile] = {}
        self._texts: dict[str, str] = {}
        self._states: dict[str, list[str]] = {}
        self._cpus = self.machine.names(CPUS, "cpu")
        frequencies = [f"{CPUS}/{cpu}/cpufreq/scaling_cur_freq" for cpu in self._cpus]
        self._has_frequency = {path: bool(self.machine.read(path)) for path in frequencies}
        self._gpu_files = {
            path: unit for path, unit in files.GPU_FILES.items() if self.machine.read(path)
        }
        self._groups: dict[str, Callable[[], bytes]] = {
            "meminfo": lambda: self._counters("meminfo", MeminfoCounters),
            "vmstat": lambda: self._counters("vmstat", VmstatCounters),
            "stat": lambda: self._file("proc/stat").sys_stats("stat", self._parts),
            "devfreq": lambda: _written(self._devfreq),
            "cpufreq": lambda: _written(self._cpufreq),
            "buddyinfo": lambda: self._file("proc/buddyinfo").sys_stats("buddyinfo"),
            "diskstat": lambda: self._file("proc/diskstats").sys_stats("diskstat"),
            "psi": self._psi,
            "thermal": lambda: _written(self._thermal),
            "cpuidle": lambda: _written(self._cpuidle),
            "gpufreq": lambda: _written(self._gpufreq),
            "slab": lambda: self._file("proc/slabinfo").sys_stats("slab"),
        }
        periods = {name: getattr(self._options, f"{name}_period_ms") for name in self._groups}
        periods = {name: max(ms, MIN_PERIOD_MS) for name, ms in periods.items() if ms}
        self._poll = self.poll(periods, self._sample, Budget())

    def stop(self) -> None:
        self._poll.stop()
        self._files.clear()

    def _sample(self, groups: Iterable[str]) -> None:
        start = varint_field(TIMESTAMP, self.machine.now_ns())
        stats = b"".join([self._groups[name]() for name in groups])
        end = varint_field(END_TIMESTAMP, self.machine.now_ns())
        self.write(start + bytes_field(SYS_STATS, stats + end))

    def _file(self, path: str) -> _native.MachineFile:
        file = self._files.get(path)
        if file is None:
            file = self._files[path] = _native.MachineFile(self.machine.path(path))
        return file

    def _read(self, path: str) -> bytes:
        return self._file(path).read()

    def _text(self, path: str) -> str:
        """Return the contents of a file that never changes."""
        text = self._texts.get(path)
        if text is None:
            text = self._texts[path] = self.machine.read(path).decode(errors="replace").strip()
        return text

    def _counters(self, group: str, enum: type[Enum]) -> bytes:
        path = f"proc/{group}"
        if path not in self._files:
            chosen = getattr(self._options, f"{group}_counters")
            names = files.counters(self.machine.read(path), enum, chosen)
            self._files[path] = _native.MachineFile(self.machine.path(path), names)
        return self._files[path].sys_stats(group)

    def _psi(self) -> bytes:
        rows = [
            self._file(f"proc/pressure/{resource}").sys_stats("psi", 0, some)
            for resource, some in files.PSI.items()
        ]
        return b"".join(rows)

    def _devfreq(self, stats: Stats) -> None:
        for device in self.machine.all_names(DEVFREQ):
            frequency = files.signed(self._read(f"{DEVFREQ}/{device}/cur_freq"))
            if frequency is not None and frequency >= 0:
                with stats.add_devfreq() as row:
                    row.set_key(device)
                    row.set_value(frequency)

    def _cpufreq(self, stats: Stats) -> None:
        for path, is_there in self._has_frequency.items():
            khz = files.signed(self._read(path)) if is_there else 0
            stats.add_cpufreq_khz(max(0, min(khz or 0, files.U32_MAX)))

    def _thermal(self, stats: Stats) -> None:
        for zone in self.machine.names(THERMAL, "thermal_zone"):
            kind = self._text(f"{THERMAL}/{zone}/type")
            files.thermal(zone, kind, self._read(f"{THERMAL}/{zone}/temp"), stats)

    def _cpuidle(self, stats: Stats) -> None:
        for number, cpu in enumerate(self._cpus):
            states = [f"{CPUS}/{cpu}/cpuidle/{state}" for state in self._idle_states(cpu)]
            times = [(self._text(f"{s}/name"), self._read(f"{s}/time")) for s in states]
            files.cpuidle(number, times, stats)

    def _idle_states(self, cpu: str) -> list[str]:
        states = self._states.get(cpu)
        if states is None:
            states = self._states[cpu] = self.machine.names(f"{CPUS}/{cpu}/cpuidle", "state")
        return states

    def _gpufreq(self, stats: Stats) -> None:
        for path, unit in self._gpu_files.items():
            if (mhz := files.gpu_mhz(self._read(path), unit)) is not None:
                stats.add_gpufreq_mhz(mhz)
                return


def _written(group: Callable[[Stats], None]) -> bytes:
    """Return the encoded fields that a function writes."""
    stats = Message.Writer()
    group(stats)
    return stats.finish()
