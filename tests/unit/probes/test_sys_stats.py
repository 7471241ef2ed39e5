"""`linux.sys_stats`, on files of Linux 6.18 (the folder `machine`), and lines of other kernels."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stretto import _native
from stretto.probes import sys_stats_files as files
from stretto.probes.sys_stats import SysStats
from stretto.protos.config import MeminfoCounters, SysStatsConfig, VmstatCounters
from stretto.protos.trace import SysStats as Message
from stretto.protos.trace import TracePacket
from tests.support.probing import Probing, write_files

MACHINE = Path(__file__).parent / "machine"
GROUPS = [name for name in SysStatsConfig.LAYOUT.by_name if name.endswith("_period_ms")]
NS_PER_TICK = 10**9 // os.sysconf("SC_CLK_TCK")


def written(group: str, text: bytes, parts: int = 0, resource: int = 0) -> Message:
    """Return the message to which the contents of a group's file are converted."""
    counters = {"meminfo": MeminfoCounters, "vmstat": VmstatCounters}
    names = files.counters(text, counters[group], ()) if group in counters else ()
    with tempfile.NamedTemporaryFile() as file:
        file.write(text)
        file.flush()
        native = _native.MachineFile(file.name, group, names, parts, resource)
        packet = TracePacket.decode(_native.sys_stats_packet((native,), 5, b"", lambda: 7))
    assert (packet.timestamp, packet.sys_stats.collection_end_timestamp) == (5, 7)
    packet.sys_stats.clear("collection_end_timestamp")
    return packet.sys_stats


def composed(write: Callable[..., object], *arguments: Any) -> Message:
    """Return the message that a function of `sys_stats_files` writes."""
    stats = Message.Writer()
    write(*arguments, stats)
    return Message.decode(stats.finish())


def sampled(root: Path, **config: Any) -> Message:
    """Return the first packet of the data source."""
    (packet,) = Probing(SysStats, root, sys_stats_config=SysStatsConfig(**config)).take()
    assert packet.sys_stats is not None
    return packet.sys_stats


def values(rows: list[Any]) -> dict[int, int]:
    return {row.key: row.value for row in rows}


def test_meminfo_has_every_known_counter() -> None:
    stats = sampled(MACHINE, meminfo_period_ms=1000)
    found = values(stats.meminfo)
    for name, kernel_name in {
        "MEM_TOTAL": "MemTotal",
        "ACTIVE_ANON": "Active(anon)",
        "SLAB_RECLAIMABLE": "SReclaimable",
        "SLAB_UNRECLAIMABLE": "SUnreclaim",
        "COMMITED_AS": "Committed_AS",
        "VMALLOC_CHUNK": "VmallocChunk",
    }.items():
        text = (MACHINE / "proc/meminfo").read_text()
        (value,) = re.findall(rf"^{re.escape(kernel_name)}: +(\d+)", text, re.M)
        assert found[MeminfoCounters.value_of(f"MEMINFO_{name}")] == int(value)
    assert len(found) == 31


def test_vmstat_has_every_known_counter() -> None:
    found = values(sampled(MACHINE, vmstat_period_ms=1000).vmstat)
    lines = (line.split() for line in (MACHINE / "proc/vmstat").read_text().splitlines())
    expected = {
        VmstatCounters.VALUES[key]: int(value)
        for name, value in lines
        if (key := f"VMSTAT_{name.upper()}") in VmstatCounters.VALUES
    }
    assert found == expected
    assert len(found) == 148


def test_only_chosen_counters_are_written() -> None:
    stats = sampled(
        MACHINE,
        meminfo_period_ms=1000,
        meminfo_counters=[MeminfoCounters.MEMINFO_CACHED],
        vmstat_period_ms=1000,
        vmstat_counters=[VmstatCounters.VMSTAT_PGFAULT, VmstatCounters.VMSTAT_PGMAJFAULT],
    )
    assert list(values(stats.meminfo)) == [MeminfoCounters.MEMINFO_CACHED]
    assert len(stats.vmstat) == 2


def test_file_without_a_group_is_no_table() -> None:
    attribute = _native.MachineFile("/proc/stat")
    with pytest.raises(ValueError, match="no group"):
        _native.sys_stats_packet((attribute,), 1, b"", lambda: 2)
    with pytest.raises(TypeError, match="MachineFile"):
        _native.sys_stats_packet(("stat",), 1, b"", lambda: 2)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no file has the counter group cpu"):
        _native.MachineFile("/proc/stat", "cpu")


def test_packet_without_a_table_has_the_other_fields() -> None:
    rest = Message(cpufreq_khz=[3]).encode()
    packet = TracePacket.decode(_native.sys_stats_packet((), 1, rest, lambda: 2))
    assert packet.sys_stats == Message(cpufreq_khz=[3], collection_end_timestamp=2)


def test_error_of_the_clock_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        _native.sys_stats_packet((), 1, b"", lambda: 1 // 0)


STAT = b"""\
cpu  300 20 30 400 50 6 7 8 9 10
cpu0 100 10 10 200 20 3 3 4 0 0
cpu1 200 10 20 200 30 3 4 4 0 0
intr 70 0 60 0 10
ctxt 12345
processes 678
softirq 33 11 0 22
"""


def test_stat_has_cpu_times_and_counts_of_interrupts_and_forks() -> None:
    stats = written("stat", STAT)
    assert [row.cpu_id for row in stats.cpu_stat] == [0, 1]
    first = vars(stats.cpu_stat[0])
    assert [value // NS_PER_TICK for value in first.values()] == [0, 100, 10, 10, 200, 20, 3, 3, 4]
    assert [(row.irq, row.count) for row in stats.num_irq] == [(1, 60), (3, 10)]
    assert [(row.irq, row.count) for row in stats.num_softirq] == [(0, 11), (1, 0), (2, 22)]
    assert (stats.num_irq_total, stats.num_softirq_total, stats.num_forks) == (70, 33, 678)


@pytest.mark.parametrize(
    ("chosen", "fields"),
    [
        (SysStatsConfig.STAT_CPU_TIMES, {"cpu_stat"}),
        (SysStatsConfig.STAT_IRQ_COUNTS, {"num_irq_total", "num_irq"}),
        (SysStatsConfig.STAT_SOFTIRQ_COUNTS, {"num_softirq_total", "num_softirq"}),
        (SysStatsConfig.STAT_FORK_COUNT, {"num_forks"}),
    ],
)
def test_only_the_chosen_parts_of_proc_stat_are_written(chosen: int, fields: set[str]) -> None:
    assert set(vars(written("stat", STAT, 1 << chosen))) == fields


def test_buddyinfo_has_the_free_blocks_of_each_zone() -> None:
    text = b"Node 0, zone      DMA      1      0      3 \nNode 1, zone   Normal   5   6   7 \n"
    rows = written("buddyinfo", text).buddy_info
    assert [(row.node, row.zone, row.order_pages) for row in rows] == [
        ("0", "DMA", [1, 0, 3]),
        ("1", "Normal", [5, 6, 7]),
    ]


def test_diskstat_has_discards_and_flushes_only_where_the_kernel_counts_them() -> None:
    old = b" 259       0 nvme0n1 1 2 3 4 5 6 7 8 9 10 11\n"
    new = b" 259       0 nvme0n1 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n"
    (row,) = written("diskstat", old).disk_stat
    assert list(vars(row).values()) == ["nvme0n1", 3, 4, 7, 8]
    (row,) = written("diskstat", new).disk_stat
    assert list(vars(row).values()) == ["nvme0n1", 3, 4, 7, 8, 14, 15, 16, 17]


def test_psi_is_in_nanoseconds() -> None:
    text = b"some avg10=0.00 avg60=0.00 avg300=0.00 total=12\nfull avg10=1.00 total=5\n"
    rows = written("psi", text, 0, files.PSI["io"]).psi
    assert [(row.resource, row.total_ns) for row in rows] == [
        (Message.PsiSample.PSI_RESOURCE_IO_SOME, 12_000),
        (Message.PsiSample.PSI_RESOURCE_IO_FULL, 5000),
    ]


def test_slab_has_pages_and_slabs_of_each_cache() -> None:
    text = (MACHINE / "proc/slabinfo").read_bytes() + (
        b"dentry  61257  61257  192  21    2 : tunables  0  0  0 : slabdata   2917   2919  0\n"
    )
    rows = written("slab", text).slab_info
    assert len(rows) == 7
    assert list(vars(rows[-1]).values()) == ["dentry", 2, 2919]


SYSFS = {
    "sys/class/thermal/thermal_zone0/type": "x86_pkg_temp\n",
    "sys/class/thermal/thermal_zone0/temp": "48500\n",
    "sys/class/thermal/thermal_zone1/type": "broken\n",
    "sys/class/thermal/cooling_device0/temp": "1\n",
    "sys/class/devfreq/soc:gpu/cur_freq": "585000000\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq": "1800000\n",
    "sys/devices/system/cpu/cpu1/online": "0\n",
    "sys/devices/system/cpu/cpufreq/boost": "1\n",
    "sys/devices/system/cpu/cpu0/cpuidle/state0/name": "POLL\n",
    "sys/devices/system/cpu/cpu0/cpuidle/state0/time": "77\n",
    "sys/devices/system/cpu/cpu0/cpuidle/state1/name": "C1\n",
    "sys/devices/system/cpu/cpu0/cpuidle/state1/time": "88\n",
}


def test_sysfs_groups_are_read_from_their_folders(tmp_path: Path) -> None:
    write_files(tmp_path, SYSFS)
    stats = sampled(tmp_path, **dict.fromkeys(GROUPS, 1000))
    (zone,) = stats.thermal_zone
    assert (zone.name, zone.temp, zone.type) == ("thermal_zone0", 48, "x86_pkg_temp")
    (device,) = stats.devfreq
    assert (device.key, device.value) == ("soc:gpu", 585_000_000)
    assert stats.cpufreq_khz == [1_800_000, 0]
    idle = [[vars(e) for e in row.cpuidle_state_entry] for row in stats.cpuidle_state]
    assert idle == [
        [{"state": "POLL", "duration_us": 77}, {"state": "C1", "duration_us": 88}],
        [],
    ]


@pytest.mark.parametrize(
    ("path", "text", "mhz"),
    [
        ("sys/class/kgsl/kgsl-3d0/devfreq/cur_freq", "305000000\n", [305]),
        ("sys/class/drm/card0/gt_act_freq_mhz", "1150\n", [1150]),
        ("sys/class/drm/card0/device/pp_dpm_sclk", "0: 200Mhz \n1: 700Mhz *\n2: 800Mhz \n", [700]),
        ("sys/class/drm/card0/device/pp_dpm_sclk", "0: 200Mhz \n", []),
    ],
)
def test_gpu_frequency_is_in_megahertz(
    path: str, text: str, mhz: list[int], tmp_path: Path
) -> None:
    write_files(tmp_path, {path: text})
    assert sampled(tmp_path, gpufreq_period_ms=1000).gpufreq_mhz == mhz


def test_groups_with_different_periods_share_packets_when_both_are_due() -> None:
    config = SysStatsConfig(meminfo_period_ms=1, psi_period_ms=15)
    probing = Probing(SysStats, MACHINE, sys_stats_config=config)
    probing.take()
    packets = probing.advance(30)
    assert [(p.timestamp // 10**6 - 1000, *list(vars(p.sys_stats))[:-1]) for p in packets] == [
        (5, "psi"),
        (10, "meminfo"),
        (20, "meminfo", "psi"),
        (30, "meminfo"),
    ]  # The shortest period is 10 ms; the clock starts at 1 s, which is 10 ms past 66 * 15 ms.


def test_session_without_periods_or_after_its_stop_writes_nothing() -> None:
    probing = Probing(SysStats, MACHINE)
    assert not probing.advance(1000)
    probing.source.on_stop()
    probing = Probing(SysStats, MACHINE, sys_stats_config=SysStatsConfig(psi_period_ms=10))
    probing.source.on_stop()
    probing.take()
    assert not probing.advance(1000)


def test_machine_without_files_gives_empty_groups(tmp_path: Path) -> None:
    stats = sampled(tmp_path, **dict.fromkeys(GROUPS, 1000))
    assert set(vars(stats)) == {"collection_end_timestamp"}


GROUPS_BY_PATH = {
    "proc/meminfo": "meminfo",
    "proc/vmstat": "vmstat",
    "proc/stat": "stat",
    "proc/buddyinfo": "buddyinfo",
    "proc/diskstats": "diskstat",
    "proc/pressure/cpu": "psi",
    "proc/slabinfo": "slab",
}
GARBAGE = st.one_of(
    st.binary(),
    st.integers(-(2**70), 2**70).map(lambda number: str(number).encode()),
    st.sampled_from([b"\n", b" ", b"0", b"cpu", b": ", b"\xd9\xa1", b"4" * 5000]),
)


@pytest.mark.parametrize("path", GROUPS_BY_PATH)
@given(data=st.data())
def test_damaged_file_is_parsed_without_an_error(path: str, data: st.DataObject) -> None:
    text = (MACHINE / path).read_bytes()[:1500]
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        text = text[:start] + data.draw(GARBAGE) + text[start + data.draw(st.integers(0, 20)) :]
    written(GROUPS_BY_PATH[path], text)


@given(GARBAGE, GARBAGE)
def test_garbage_in_sysfs_is_parsed_without_an_error(first: bytes, second: bytes) -> None:
    composed(files.thermal, "thermal_zone0", "x86", second)
    composed(files.cpuidle, 0, [("C1", first)])
    files.counters(first + second, VmstatCounters, ())
    for unit in files.GPU_FILES.values():
        mhz = files.gpu_mhz(first + second, unit)
        assert mhz is None or 0 <= mhz <= files.U32_MAX


@pytest.mark.parametrize("path", GROUPS_BY_PATH)
def test_long_line_is_parsed_in_linear_time(path: str) -> None:
    for text in (MACHINE / path).read_bytes().splitlines()[:4]:
        for middle in (b"4" * 5000, b" " * 5000, b" 4" * 5000, b"x" * 5000):
            for place in (3, len(text) // 2, len(text)):  # A slow pattern takes far too long.
                written(GROUPS_BY_PATH[path], text[:place] + middle + text[place:] + b"!\n")


def test_numbers_beyond_the_range_of_a_field_are_cut() -> None:
    text = b"MemTotal: 99999999999999999999 kB\nMemFree: 1 kB\n"
    assert values(written("meminfo", text).meminfo) == {1: 2**64 - 1, 2: 1}


def test_tick_of_all_groups_reads_the_whole_machine(tmp_path: Path) -> None:
    shutil.copytree(MACHINE, tmp_path / "m")
    write_files(tmp_path / "m", {**SYSFS, "sys/class/drm/card0/gt_act_freq_mhz": "1150\n"})
    stats = sampled(tmp_path / "m", **dict.fromkeys(GROUPS, 500))
    assert set(vars(stats)) == set(Message.LAYOUT.by_name)
