"""CPU time per event of the kernel: `stretto probes` beside Perfetto's `traced_probes` v56.

    python bench/ftrace.py [--json] [--rounds N]

Needs root and a mounted tracefs. Both producers record the same events at the same time, each in an
instance of its own. A figure is the CPU time of a producer divided by the number of its events: the
median of all rounds.

raw syscalls     sys_enter and sys_exit
compact sched    sched_switch and sched_waking, as CompactSched
bytes            the size of an event in the trace
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from statistics import median

from _services import Consumer, Service, innermost, missing_v56, v56_command
from probes import cpu_us

from stretto.probes.tracefs import Tracefs, TracefsError
from stretto.protos.config import DataSourceConfig, FtraceConfig, TraceConfig
from stretto.protos.trace import Trace

CASES = {
    "raw syscalls": (
        ["raw_syscalls/sys_enter", "raw_syscalls/sys_exit"],
        "import os\nfor _ in range(150_000): os.getppid()",
    ),
    "compact sched": (
        ["sched/sched_switch", "sched/sched_waking"],
        """if True:
            import os
            r, w = os.pipe(); a, b = os.pipe()
            if os.fork():
                for _ in range(15_000): os.write(w, b'x'); os.read(a, 1)
            else:
                for _ in range(15_000): os.read(r, 1); os.write(b, b'x')
        """,
    ),
}


def measure(service: Service, case: str, pids: tuple[int, int]) -> list[tuple[float, float]]:
    """Run a session; return each producer's CPU time, in ns, and bytes, per event."""
    events, work = CASES[case]
    config = TraceConfig(
        buffers=[TraceConfig.BufferConfig(size_kb=262_144)],
        data_sources=[
            TraceConfig.DataSource(
                config=DataSourceConfig(
                    name="linux.ftrace",
                    ftrace_config=FtraceConfig(ftrace_events=events, buffer_size_kb=32768),
                )
            )
        ],
    )
    consumer = Consumer(service)
    consumer.start(config)
    consumer.sleep(0.3)
    before = [cpu_us(pid) for pid in pids]
    subprocess.run([sys.executable, "-c", work], check=True)
    consumer.flush_s()
    used = [cpu_us(pid) - start for pid, start in zip(pids, before, strict=True)]
    trace = Trace.decode(consumer.stop()[0])
    return [
        (1e3 * us / count, size / count)
        for us, (count, size) in zip(used, (events_of(trace, pid) for pid in pids), strict=True)
    ]


def events_of(trace: Trace, pid: int) -> tuple[int, int]:
    """Return the number of a producer's events, and their bytes."""
    count = size = 0
    for packet in trace.packet:
        bundle = packet.ftrace_events
        if packet.trusted_pid == pid and bundle is not None:
            compact = bundle.compact_sched
            count += len(bundle.event)
            count += len(compact.switch_timestamp) + len(compact.waking_timestamp) if compact else 0
            size += len(bundle.encode())
    return count, size


def rows(rounds: int) -> list[dict[str, object]]:
    with tempfile.TemporaryDirectory() as folder, Service("stretto", folder) as service:
        commands = [sys.executable, "-m", "stretto", "probes"], v56_command(folder, "traced_probes")
        probes = [
            subprocess.Popen(each, env=service.environment, stderr=subprocess.DEVNULL)
            for each in commands
        ]
        try:
            Consumer(service).wait_for_producers("linux.ftrace", 2)
            pids = probes[0].pid, innermost(probes[1].pid)
            found = {case: [measure(service, case, pids) for _ in range(rounds)] for case in CASES}
        finally:
            for process in probes:
                subprocess.run(["kill", str(innermost(process.pid))], check=False)
                process.wait()
    return [
        row(f"{case}{suffix}", unit, *(median(r[who][what] for r in found[case]) for who in (0, 1)))
        for case in CASES
        for what, (suffix, unit) in enumerate((("", "ns CPU"), (" bytes", "bytes")))
    ]


def row(name: str, unit: str, ours: float, peer: float) -> dict[str, object]:
    figures = {"ours": round(ours, 1), "peer": round(peer, 1), "unit": unit}
    return {"name": name, **figures, "ratio": round(ours / peer, 2)}


def main() -> int:
    """Measure all rows and print them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON object per row")
    parser.add_argument("--rounds", type=int, default=5, help="sessions of each kind")
    options = parser.parse_args()
    try:
        Tracefs("/")
        reason = missing_v56()
    except TracefsError as error:
        reason = str(error)
    if reason:
        print(f"ftrace: nothing is measured: {reason}", file=sys.stderr)
        return 0
    for line in rows(options.rounds):
        if options.json:
            print(json.dumps(line))
        else:
            print("{name:20} {ours:>9} {peer:>9} {unit:7} x{ratio}".format(**line))
    return 0


if __name__ == "__main__":
    sys.exit(main())
