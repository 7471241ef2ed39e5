"""The files of `linux.sys_stats`: each function converts a file's text to fields of SysStats.

Text that isn't of the kernel's form is left out, and numbers beyond a field's range are cut. No
pattern has two ways to match the same text, so matching takes linear time.
Source: proc(5), and the kernel's Documentation/filesystems/proc.rst, admin-guide/iostats.rst and
accounting/psi.rst.
"""

from __future__ import annotations

import os
import re

from stretto.protos.config import SysStatsConfig
from stretto.protos.trace import SysStats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from stretto.protozero.enums import Enum

    Stats = SysStats.Writer

U32_MAX = 2**32 - 1
U64_MAX = 2**64 - 1
NS_PER_TICK = 10**9 // os.sysconf("SC_CLK_TCK")
NS_PER_US = 1000

_MEMINFO = re.compile(rb"^([\w()]+): +(\d{1,20})", re.M)
_VMSTAT = re.compile(rb"^(\w+) (\d{1,20})$", re.M)
_CPU = re.compile(rb"^cpu(\d{1,9})((?: \d{1,20})+)$", re.M)
_IRQS = re.compile(rb"^intr (\d{1,20})((?: \d{1,20})*)", re.M)
_SOFTIRQS = re.compile(rb"^softirq (\d{1,20})((?: \d{1,20})*)", re.M)
_FORKS = re.compile(rb"^processes (\d{1,20})$", re.M)
_BUDDY = re.compile(rb"^Node (\d+), zone +(\S+)((?: +\d{1,20})+)", re.M)
_DISK = re.compile(rb"^ *\d+ +\d+ (\S+)((?: \d{1,20})+)$", re.M)
_PSI = re.compile(rb"^(some|full) .*\btotal=(\d{1,20})$", re.M)
_SLAB = re.compile(rb"^(\S+)(?: +\d+){4} +(\d{1,20}) : .* : slabdata +\d+ +(\d{1,20})", re.M)
_SIGNED = re.compile(rb"(-?\d{1,18})\n?")
_GPU_CLOCK = re.compile(rb"(\d{1,20})Mhz \*")

_IRREGULAR = {
    "MEMINFO_SLAB_RECLAIMABLE": b"SReclaimable",
    "MEMINFO_SLAB_UNRECLAIMABLE": b"SUnreclaim",
    "MEMINFO_COMMITED_AS": b"Committed_AS",
}
"""Counters whose names in Perfetto differ from the kernel's in more than the way of writing."""


def u32(digits: bytes) -> int:
    return min(int(digits), U32_MAX)


def u64(digits: bytes, scale: int = 1) -> int:
    return min(int(digits) * scale, U64_MAX)


def signed(text: bytes) -> int | None:
    """Return the number that is a file's only content; None if there is none."""
    found = _SIGNED.fullmatch(text)
    return int(found[1]) if found else None


def _plain(name: bytes) -> bytes:
    return re.sub(rb"[^a-z0-9]", b"", name.lower())


class Counters:
    """The counters of /proc/meminfo or /proc/vmstat that a session has chosen.

    Args:
        enum: The counters that Perfetto knows.
        chosen: Values of `enum`; if empty, all are chosen.
    """

    def __init__(self, enum: type[Enum], chosen: Collection[int]) -> None:
        self._keys: dict[bytes, int] = {}
        for name, key in enum.VALUES.items():
            if key and (not chosen or key in chosen):
                kernel_name = _IRREGULAR.get(name, name.partition("_")[2].encode())
                self._keys[_plain(kernel_name)] = key
        self._known: dict[bytes, int] = {}

    def key(self, name: bytes) -> int:
        """Return the number of the chosen counter with this kernel name; 0 if there is none."""
        key = self._known.get(name)
        if key is None:
            key = self._keys.get(_plain(name), 0)
            if len(self._known) < 1000:
                self._known[name] = key
        return key


def meminfo(text: bytes, counters: Counters, stats: Stats) -> None:
    """Add the counters of /proc/meminfo to the stats, in kB."""
    for name, value in _MEMINFO.findall(text):
        if key := counters.key(name):
            with stats.add_meminfo() as row:
                row.set_key(key)
                row.set_value(u64(value))


def vmstat(text: bytes, counters: Counters, stats: Stats) -> None:
    """Add the counters of /proc/vmstat to the stats."""
    for name, value in _VMSTAT.findall(text):
        if key := counters.key(name):
            with stats.add_vmstat() as row:
                row.set_key(key)
                row.set_value(u64(value))


def stat(text: bytes, chosen: Collection[int], stats: Stats) -> None:
    """Add the chosen counters of /proc/stat to the stats; if none is chosen, all of them."""
    if not chosen or SysStatsConfig.STAT_CPU_TIMES in chosen:
        for cpu, times in _CPU.findall(text):
            _cpu_times(int(cpu), times.split(), stats)
    if (not chosen or SysStatsConfig.STAT_IRQ_COUNTS in chosen) and (found := _IRQS.search(text)):
        stats.set_num_irq_total(u64(found[1]))
        for number, count in enumerate(found[2].split()):
            if count != b"0":  # Most of the hundreds of interrupts are unused.
                with stats.add_num_irq() as row:
                    row.set_irq(number)
                    row.set_count(u64(count))
    if (not chosen or SysStatsConfig.STAT_SOFTIRQ_COUNTS in chosen) and (
        found := _SOFTIRQS.search(text)
    ):
        stats.set_num_softirq_total(u64(found[1]))
        for number, count in enumerate(found[2].split()):
            with stats.add_num_softirq() as row:
                row.set_irq(number)
                row.set_count(u64(count))
    if (not chosen or SysStatsConfig.STAT_FORK_COUNT in chosen) and (forks := _FORKS.search(text)):
        stats.set_num_forks(u64(forks[1]))


def _cpu_times(cpu: int, times: list[bytes], stats: Stats) -> None:
    with stats.add_cpu_stat() as row:
        row.set_cpu_id(cpu)
        fields = (
            row.set_user_ns,
            row.set_user_nice_ns,
            row.set_system_mode_ns,
            row.set_idle_ns,
            row.set_io_wait_ns,
            row.set_irq_ns,
            row.set_softirq_ns,
            row.set_steal_ns,
        )
        for write, ticks in zip(fields, times, strict=False):
            write(u64(ticks, NS_PER_TICK))


def buddyinfo(text: bytes, stats: Stats) -> None:
    """Add /proc/buddyinfo to the stats: free blocks of 1, 2, 4, … pages in each memory zone."""
    for node, zone, counts in _BUDDY.findall(text):
        with stats.add_buddy_info() as row:
            row.set_node(node.decode())
            row.set_zone(zone.decode(errors="replace"))
            for count in counts.split():
                row.add_order_pages(u32(count))


def diskstat(text: bytes, stats: Stats) -> None:
    """Add /proc/diskstats to the stats. In old kernels it has neither discards nor flushes."""
    for name, numbers in _DISK.findall(text):
        with stats.add_disk_stat() as row:
            row.set_device_name(name.decode(errors="replace"))
            columns = {
                2: row.set_read_sectors,
                3: row.set_read_time_ms,
                6: row.set_write_sectors,
                7: row.set_write_time_ms,
                13: row.set_discard_sectors,
                14: row.set_discard_time_ms,
                15: row.set_flush_count,
                16: row.set_flush_time_ms,
            }
            for column, number in enumerate(numbers.split()):
                if column in columns:
                    columns[column](u64(number))


PSI = {
    "cpu": SysStats.PsiSample.PSI_RESOURCE_CPU_SOME,
    "io": SysStats.PsiSample.PSI_RESOURCE_IO_SOME,
    "memory": SysStats.PsiSample.PSI_RESOURCE_MEMORY_SOME,
}
"""The files in /proc/pressure with the number of their `some` line; that of `full` follows."""


def psi(text: bytes, some: int, stats: Stats) -> None:
    """Add a file of /proc/pressure to the stats: how long some, or all, tasks have waited."""
    for kind, total in _PSI.findall(text):
        with stats.add_psi() as row:
            row.set_resource(some + (kind == b"full"))
            row.set_total_ns(u64(total, NS_PER_US))


def thermal(name: str, kind: bytes, temperature: bytes, stats: Stats) -> None:
    """Add the temperature of a zone of /sys/class/thermal to the stats, in degrees Celsius."""
    if (value := signed(temperature)) is not None:
        with stats.add_thermal_zone() as row:
            row.set_name(name)
            row.set_temp(int(value / 1000) & U64_MAX)  # The field is unsigned.
            row.set_type(kind.decode(errors="replace").strip())


def cpuidle(cpu: int, times: Mapping[bytes, bytes], stats: Stats) -> None:
    """Add the time that a CPU has spent in each idle state to the stats."""
    with stats.add_cpuidle_state() as row:
        row.set_cpu_id(cpu)
        for name, time in times.items():
            with row.add_cpuidle_state_entry() as entry:
                entry.set_state(name.decode(errors="replace").strip())
                entry.set_duration_us(max(0, signed(time) or 0))


def slab(text: bytes, stats: Stats) -> None:
    """Add /proc/slabinfo to the stats: the kernel's caches of objects, and their sizes in pages."""
    for name, pages, slabs in _SLAB.findall(text):
        with stats.add_slab_info() as row:
            row.set_name(name.decode(errors="replace"))
            row.set_pages_per_slab(u32(pages))
            row.set_num_slabs(u32(slabs))


GPU_FILES = {
    "sys/class/kgsl/kgsl-3d0/devfreq/cur_freq": 1_000_000,
    "sys/class/drm/card0/gt_act_freq_mhz": 1,
    "sys/class/drm/card0/device/pp_dpm_sclk": 1,
}
"""The files with the frequency of a GPU (Adreno, Intel, AMD), and their units in Hz or MHz."""


def gpu_mhz(text: bytes, unit: int) -> int | None:
    """Return the frequency in one of GPU_FILES; None if there is none."""
    if marked := _GPU_CLOCK.search(text):
        return u32(marked[1])
    value = signed(text)
    return None if value is None else max(0, min(value // unit, U32_MAX))
