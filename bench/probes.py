"""CPU time of `stretto probes` beside Perfetto's `traced_probes` v56, in the same sessions.

    python bench/probes.py [--json] [--rounds N]

Both producers sample the same machine at the same time. Each figure is the CPU time of a producer
in a session, divided by the number of its samples; the median of the rounds is shown.

sys_stats          one tick with all groups that every user may read
sys_stats slab     one tick of /proc/slabinfo, which the kernel takes long to write
process_scan       a scan of 100 processes with the names of their threads
process_poll       one poll of 100 processes
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from _services import Consumer, Service, innermost, missing_v56, v56_command

from stretto.protos.config import (
    DataSourceConfig,
    ProcessStatsConfig,
    SysStatsConfig,
    TraceConfig,
)
from stretto.protos.trace import Trace

SECONDS = 2
GROUPS = ("meminfo", "vmstat", "stat", "cpufreq", "buddyinfo", "diskstat", "psi", "cpuidle")
PERIODS = {f"{group}_period_ms": 20 for group in GROUPS}
SYS, PROCESS = "linux.sys_stats", "linux.process_stats"
SCAN = ProcessStatsConfig(
    scan_all_processes_on_start=True, record_thread_names=True, skip_main_thread_message=True
)
CASES = {
    "sys_stats": DataSourceConfig(name=SYS, sys_stats_config=SysStatsConfig(**PERIODS)),
    "sys_stats slab": DataSourceConfig(
        name=SYS, sys_stats_config=SysStatsConfig(slab_period_ms=20)
    ),
    "process_scan": DataSourceConfig(name=PROCESS, process_stats_config=SCAN),
    "process_poll": DataSourceConfig(
        name=PROCESS, process_stats_config=ProcessStatsConfig(proc_stats_poll_ms=100)
    ),
}


def cpu_us(pid: int) -> float:
    """Return the CPU time that all threads of a process have used."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e3


def measure(service: Service, case: str, pids: tuple[int, int]) -> list[float]:
    """Run a session; return each producer's CPU time per sample, in us."""
    config = TraceConfig(
        buffers=[TraceConfig.BufferConfig(size_kb=65536)],
        data_sources=[TraceConfig.DataSource(config=CASES[case])],
    )
    consumer = Consumer(service)
    before = [cpu_us(pid) for pid in pids]
    consumer.start(config)
    consumer.sleep(0 if case == "process_scan" else SECONDS)
    consumer.flush_s()
    used = [cpu_us(pid) - start for pid, start in zip(pids, before, strict=True)]
    trace = Trace.decode(consumer.stop()[0])
    return [us / samples(trace, case, pid) for us, pid in zip(used, pids, strict=True)]


def samples(trace: Trace, case: str, pid: int) -> float:
    """Return how many samples a producer has written; 100 processes are one sample."""
    packets = [packet for packet in trace.packet if packet.trusted_pid == pid]
    if case.startswith("sys_stats"):
        return sum(packet.sys_stats is not None for packet in packets)
    field = "process_tree" if case == "process_scan" else "process_stats"
    found = (getattr(packet, field) for packet in packets)
    return sum(len(each.processes) for each in found if each is not None) / 100


def rows(rounds: int) -> list[dict[str, object]]:
    with tempfile.TemporaryDirectory() as folder, Service("stretto", folder) as service:
        commands = [sys.executable, "-m", "stretto", "probes"], v56_command(folder, "traced_probes")
        probes = [
            subprocess.Popen(each, env=service.environment, stderr=subprocess.DEVNULL)
            for each in commands
        ]
        try:
            Consumer(service).wait_for_producers(SYS, 2)
            pids = probes[0].pid, innermost(probes[1].pid)
            figures: dict[str, list[list[float]]] = {case: [] for case in CASES}
            for _ in range(rounds):
                for case, found in figures.items():
                    found.append(measure(service, case, pids))
        finally:
            for process in probes:
                subprocess.run(["kill", str(innermost(process.pid))], check=False)
                process.wait()
    return [
        row(case, *(median(each) for each in zip(*f, strict=True))) for case, f in figures.items()
    ]


def row(name: str, ours: float, peer: float) -> dict[str, object]:
    figures = {"ours": round(ours, 1), "peer": round(peer, 1), "unit": "us CPU"}
    return {"name": name, **figures, "ratio": round(ours / peer, 2)}


def main() -> int:
    """Measure all rows and print them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON object per row")
    parser.add_argument("--rounds", type=int, default=5, help="sessions of each kind")
    options = parser.parse_args()
    if reason := missing_v56():
        print(f"probes: no traced_probes to compare with: {reason}", file=sys.stderr)
        return 0
    for line in rows(options.rounds):
        if options.json:
            print(json.dumps(line))
        else:
            print(f"{line['name']:16} {line['ours']:>9} {line['peer']:>9} us CPU  x{line['ratio']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
