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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stretto.protozero.enums import Enum

    Stats = Message.Writer
    Plan = tuple[tuple[_native.MachineFile, ...], list[Callable[[Stats], None]], bytes]

MIN_PERIOD_MS = 10
CPUS = "sys/devices/system/cpu"
DEVFREQ = "sys/class/devfreq"
THERMAL = "sys/class/thermal"
MAX_PLANS = 64
"""The most sets of groups, which were due together, whose files are known."""


class SysStats(Probe):
    """Samples the groups that a session's SysStatsConfig has a period for.

    A file is opened when its group is sampled for the first time, and stays open.
    """

    name = "linux.sys_stats"

    def start(self) -> None:
        self._options = self.config.sys_stats_config or SysStatsConfig()
        self._parts = sum({1 << part for part in self._options.stat_counters})
        self._files: dict[str, _native.MachineFile] = {}
        self._opened: dict[str, tuple[_native.MachineFile, ...]] = {}
        self._texts: dict[str, str] = {}
        self._states: dict[str, list[str]] = {}
        self._cpus = self.machine.names(CPUS, "cpu")
        frequencies = [f"{CPUS}/{cpu}/cpufreq/scaling_cur_freq" for cpu in self._cpus]
        self._gpu_files = {
            path: unit for path, unit in files.GPU_FILES.items() if self.machine.read(path)
        }
        self._tables: dict[str, Callable[[], list[_native.MachineFile]]] = {
            "meminfo": lambda: self._counters("meminfo", MeminfoCounters),
            "vmstat": lambda: self._counters("vmstat", VmstatCounters),
            "stat": lambda: self._table("proc/stat", "stat", self._parts),
            "cpufreq": lambda: self._cpufreq(frequencies),
            "buddyinfo": lambda: self._table("proc/buddyinfo", "buddyinfo"),
            "diskstat": lambda: self._table("proc/diskstats", "diskstat"),
            "psi": self._psi,
            "slab": lambda: self._table("proc/slabinfo", "slab"),
        }
        self._attributes: dict[str, Callable[[Stats], None]] = {
            "devfreq": self._devfreq,
            "thermal": self._thermal,
            "cpuidle": self._cpuidle,
            "gpufreq": self._gpufreq,
        }
        self._plans: dict[tuple[str, ...], Plan] = {}
        groups = (*self._tables, *self._attributes)
        periods = {name: getattr(self._options, f"{name}_period_ms") for name in groups}
        periods = {name: max(ms, MIN_PERIOD_MS) for name, ms in periods.items() if ms}
        self._poll = self.poll(periods, self._sample, Budget())

    def stop(self) -> None:
        self._poll.stop()
        self._files.clear()
        self._opened.clear()
        self._plans.clear()

    def _sample(self, groups: Iterable[str]) -> None:
        key = tuple(groups)
        plan = self._plans.get(key)
        if plan is None:
            if len(self._plans) >= MAX_PLANS:
                self._plans.clear()
            plan = self._plans[key] = self._plan(key)
        tables, writers, rest = plan
        now_ns = self.machine.now_ns
        start = now_ns()
        if writers:
            rest += _written(writers)
        self.writer().write(_native.sys_stats_packet(tables, start, rest, now_ns))

    def _plan(self, groups: Iterable[str]) -> Plan:
        """Return the tables of some groups, which one native call reads, and the others."""
        tables: list[_native.MachineFile] = []
        for name in groups:
            if name in self._tables:
                if name not in self._opened:
                    self._opened[name] = tuple(self._tables[name]())
                tables += self._opened[name]
        writers = [self._attributes[name] for name in groups if name in self._attributes]
        # Most virtual machines have no idle states: their CPUs have only numbers.
        constant = b""
        if self._cpuidle in writers and not any(map(self._idle_states, self._cpus)):
            writers.remove(self._cpuidle)
            constant = _written([self._cpuidle])
        return tuple(tables), writers, constant

    def _table(self, path: str, group: str, parts: int = 0) -> list[_native.MachineFile]:
        return [_native.MachineFile(self.machine.path(path), group, parts=parts)]

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

    def _counters(self, group: str, enum: type[Enum]) -> list[_native.MachineFile]:
        path = f"proc/{group}"
        chosen = getattr(self._options, f"{group}_counters")
        names = files.counters(self.machine.read(path), enum, chosen)
        return [_native.MachineFile(self.machine.path(path), group, names)]

    def _psi(self) -> list[_native.MachineFile]:
        return [
            _native.MachineFile(self.machine.path(f"proc/pressure/{name}"), "psi", resource=some)
            for name, some in files.PSI.items()
        ]

    def _cpufreq(self, paths: Iterable[str]) -> list[_native.MachineFile]:
        """Return the file of each CPU, also of those that have none."""
        found = (self.machine.path(path) if self.machine.read(path) else "" for path in paths)
        return [_native.MachineFile(path, "cpufreq") for path in found]

    def _devfreq(self, stats: Stats) -> None:
        for device in self.machine.all_names(DEVFREQ):
            frequency = files.signed(self._read(f"{DEVFREQ}/{device}/cur_freq"))
            if frequency is not None and frequency >= 0:
                with stats.add_devfreq() as row:
                    row.set_key(device)
                    row.set_value(frequency)

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


def _written(groups: Iterable[Callable[[Stats], None]]) -> bytes:
    """Return the encoded fields that functions write."""
    stats = Message.Writer()
    for write in groups:
        write(stats)
    return stats.finish()
