"""The files of `linux.sys_stats` that are small: numbers and names in /sys.

The tables in /proc are converted natively (native/probes/sys_files.h). Text that isn't of the
kernel's form is left out, and numbers beyond a field's range are cut.
"""

from __future__ import annotations

import re

from stretto.protos.trace import SysStats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from stretto.protozero.enums import Enum

    Stats = SysStats.Writer

U32_MAX = 2**32 - 1
U64_MAX = 2**64 - 1

_LINE_NAME = re.compile(rb"^([^ :\n]+):? ", re.M)
_SIGNED = re.compile(rb"(-?\d{1,18})\n?")
_GPU_CLOCK = re.compile(rb"(\d{1,20})Mhz \*")

_IRREGULAR = {
    "MEMINFO_SLAB_RECLAIMABLE": b"SReclaimable",
    "MEMINFO_SLAB_UNRECLAIMABLE": b"SUnreclaim",
    "MEMINFO_COMMITED_AS": b"Committed_AS",
}
"""Counters whose names in Perfetto differ from the kernel's in more than the way of writing."""


def signed(text: bytes) -> int | None:
    """Return the number that is a file's only content; None if there is none."""
    found = _SIGNED.fullmatch(text)
    return int(found[1]) if found else None


def _plain(name: bytes) -> bytes:
    return re.sub(rb"[^a-z0-9]", b"", name.lower())


def counters(
    text: bytes, enum: type[Enum], chosen: Collection[int]
) -> tuple[tuple[bytes, int], ...]:
    """Return the name of each line in /proc/meminfo or /proc/vmstat, and its number in Perfetto.

    Args:
        text: The file.
        enum: The counters that Perfetto knows.
        chosen: Values of `enum`; if empty, all are chosen. Other lines have the number 0.
    """
    keys: dict[bytes, int] = {}
    for name, key in enum.VALUES.items():
        if key and (not chosen or key in chosen):
            kernel_name = _IRREGULAR.get(name, name.partition("_")[2].encode())
            keys[_plain(kernel_name)] = key
    return tuple((name, keys.get(_plain(name), 0)) for name in _LINE_NAME.findall(text))


PSI = {
    "cpu": SysStats.PsiSample.PSI_RESOURCE_CPU_SOME,
    "io": SysStats.PsiSample.PSI_RESOURCE_IO_SOME,
    "memory": SysStats.PsiSample.PSI_RESOURCE_MEMORY_SOME,
}
"""The files in /proc/pressure with the number of their `some` line; that of `full` follows."""


def thermal(name: str, kind: str, temperature: bytes, stats: Stats) -> None:
    """Add the temperature of a zone of /sys/class/thermal to the stats, in degrees Celsius."""
    if (value := signed(temperature)) is not None:
        with stats.add_thermal_zone() as row:
            row.set_name(name)
            row.set_temp(int(value / 1000) & U64_MAX)  # The field is unsigned.
            row.set_type(kind)


def cpuidle(cpu: int, times: Iterable[tuple[str, bytes]], stats: Stats) -> None:
    """Add the time that a CPU has spent in each idle state to the stats."""
    with stats.add_cpuidle_state() as row:
        row.set_cpu_id(cpu)
        for name, time in times:
            with row.add_cpuidle_state_entry() as entry:
                entry.set_state(name)
                entry.set_duration_us(max(0, signed(time) or 0))


GPU_FILES = {
    "sys/class/kgsl/kgsl-3d0/devfreq/cur_freq": 1_000_000,
    "sys/class/drm/card0/gt_act_freq_mhz": 1,
    "sys/class/drm/card0/device/pp_dpm_sclk": 1,
}
"""The files with the frequency of a GPU (Adreno, Intel, AMD), and their units in Hz or MHz."""


def gpu_mhz(text: bytes, unit: int) -> int | None:
    """Return the frequency in one of GPU_FILES; None if there is none."""
    if marked := _GPU_CLOCK.search(text):
        return min(int(marked[1]), U32_MAX)
    value = signed(text)
    return None if value is None else max(0, min(value // unit, U32_MAX))
