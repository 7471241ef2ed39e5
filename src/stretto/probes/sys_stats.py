"""`linux.sys_stats`: counters of the whole machine, from /proc and /sys.

Each group of counters has a period of its own. Groups that are due together share a packet.
"""

from __future__ import annotations

from stretto.probes import sys_stats_files as files
from stretto.probes.poll import Poll
from stretto.probes.probe import Probe
from stretto.protos.config import MeminfoCounters, SysStatsConfig, VmstatCounters
from stretto.protos.trace import TracePacket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stretto.protos.trace import SysStats as Message

    Stats = Message.Writer

MIN_PERIOD_MS = 10
CPUS = "sys/devices/system/cpu"
DEVFREQ = "sys/class/devfreq"
THERMAL = "sys/class/thermal"


class SysStats(Probe):
    """Samples the groups that a session's SysStatsConfig has a period for."""

    name = "linux.sys_stats"

    def start(self) -> None:
        config = self.config.sys_stats_config or SysStatsConfig()
        self._meminfo_counters = files.Counters(MeminfoCounters, config.meminfo_counters)
        self._vmstat_counters = files.Counters(VmstatCounters, config.vmstat_counters)
        self._stat_counters = config.stat_counters
        read = self.machine.read
        self._cpus = self.machine.names(CPUS, "cpu")
        self._gpu_files = {p: unit for p, unit in files.GPU_FILES.items() if read(p)}
        self._groups: dict[str, Callable[[Stats], None]] = {
            "meminfo": lambda s: files.meminfo(read("proc/meminfo"), self._meminfo_counters, s),
            "vmstat": lambda s: files.vmstat(read("proc/vmstat"), self._vmstat_counters, s),
            "stat": lambda s: files.stat(read("proc/stat"), self._stat_counters, s),
            "devfreq": self._devfreq,
            "cpufreq": self._cpufreq,
            "buddyinfo": lambda s: files.buddyinfo(read("proc/buddyinfo"), s),
            "diskstat": lambda s: files.diskstat(read("proc/diskstats"), s),
            "psi": self._psi,
            "thermal": self._thermal,
            "cpuidle": self._cpuidle,
            "gpufreq": self._gpufreq,
            "slab": lambda s: files.slab(read("proc/slabinfo"), s),
        }
        periods = {name: getattr(config, f"{name}_period_ms") for name in self._groups}
        periods = {name: max(ms, MIN_PERIOD_MS) for name, ms in periods.items() if ms}
        self._poll = Poll(self.machine, periods, self._sample)

    def stop(self) -> None:
        self._poll.stop()

    def _sample(self, groups: Iterable[str]) -> None:
        packet = TracePacket.Writer()
        packet.set_timestamp(self.machine.now_ns())
        with packet.set_sys_stats() as stats:
            for name in groups:
                self._groups[name](stats)
            stats.set_collection_end_timestamp(self.machine.now_ns())
        self.write(packet.finish())

    def _devfreq(self, stats: Stats) -> None:
        for device in self.machine.all_names(DEVFREQ):
            frequency = files.signed(self.machine.read(f"{DEVFREQ}/{device}/cur_freq"))
            if frequency is not None and frequency >= 0:
                with stats.add_devfreq() as row:
                    row.set_key(device)
                    row.set_value(frequency)

    def _cpufreq(self, stats: Stats) -> None:
        for cpu in self._cpus:
            khz = files.signed(self.machine.read(f"{CPUS}/{cpu}/cpufreq/scaling_cur_freq"))
            stats.add_cpufreq_khz(max(0, min(khz or 0, files.U32_MAX)))

    def _psi(self, stats: Stats) -> None:
        for resource, some in files.PSI.items():
            files.psi(self.machine.read(f"proc/pressure/{resource}"), some, stats)

    def _thermal(self, stats: Stats) -> None:
        for zone in self.machine.names(THERMAL, "thermal_zone"):
            kind = self.machine.read(f"{THERMAL}/{zone}/type")
            files.thermal(zone, kind, self.machine.read(f"{THERMAL}/{zone}/temp"), stats)

    def _cpuidle(self, stats: Stats) -> None:
        read = self.machine.read
        for number, cpu in enumerate(self._cpus):
            states = [f"{CPUS}/{cpu}/cpuidle/{s}" for s in self._idle_states(cpu)]
            files.cpuidle(number, {read(f"{s}/name"): read(f"{s}/time") for s in states}, stats)

    def _idle_states(self, cpu: str) -> list[str]:
        return self.machine.names(f"{CPUS}/{cpu}/cpuidle", "state")

    def _gpufreq(self, stats: Stats) -> None:
        for path, unit in self._gpu_files.items():
            if (mhz := files.gpu_mhz(self.machine.read(path), unit)) is not None:
                stats.add_gpufreq_mhz(mhz)
                return
