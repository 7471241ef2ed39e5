"""Compares our tracing service with Perfetto's, with our producers.

    python bench/service.py [--json] [--rounds N]

Four programs write 25 MB/s each, and drop events when their shared memory is full:

kept_4mb/written              events in the trace, relative to all written events; the shared
                              memory of each program has 4 MiB
kept_256kb/reference          events in the trace, relative to Perfetto's service; each shared
                              memory has 256 KiB
daemon_cpu_4mb/reference      CPU time of the service for 100 MB of events; also with 256 KiB
flush_idle/reference          time of a flush of all producers while they write nothing
flush_busy/reference          time of a flush of all producers while they write
read_back/reference           transfer of the trace over the consumer's socket
event_system/in_process       CPU time of an event with a service, relative to an event that is
                              recorded in process
trace_buffer_.../reference    throughput of the trace buffer for writing, reading and both; ours
                              validates chunks when they arrive, Perfetto's when they are read

answer_median/ATTACK, answer_max/...
                              latency of 1,000 small requests of a connected consumer during an
                              attack on the service. The functions of bench/_attacker.py are the
                              attacks. `most` is the maximum of `ours`; the peer is native v56
trace_500mb_from_.../perfetto MB/s at which `stretto trace` reads from a service, relative to the
                              `perfetto` command (v56); the service is ours or v56's

Each round measures both services; losses are sums, the other figures are medians. `target` is the
maximum of `ratio`, `at_least` its minimum. The variable STRETTO_ORACLE names the folder of
Perfetto's service; without the service, rows have no peer, and stderr reports the reason.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from _answers import ATTACKS, measure_answers
from _producer import CATEGORY, FLUSHED, MARK
from _reading import measure_reading
from _services import Consumer, Producers, Service, config, missing_reference, missing_v56

HERE = Path(__file__).parent
PRODUCERS = 4
RATE_MB = 25.0
QUIET_S = 1.0
FLUSHED_S = 0.5
"""The producers write so long without flushes, then so long with some."""
FLUSH_PERIOD_S = 0.02
IDLE_FLUSHES = 20
SHM = {"4mb": (4096, 32), "256kb": (256, 4)}
"""KiB of shared memory, and of its pages."""

Figures = dict[str, float]
Rows = list[dict[str, object]]


def measure_load(kind: str, shm: str) -> Figures:
    """Measure one session under load."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Service(kind, folder) as service,
        Producers(service, PRODUCERS) as producers,
    ):
        consumer = Consumer(service)
        names = consumer.wait_for_producers(FLUSHED, PRODUCERS)
        consumer.start(config(CATEGORY, FLUSHED, names, *SHM[shm]))
        begin = service.cpu_s()
        producers.begin(RATE_MB, QUIET_S)
        quiet = producers.end()
        consumer.flush_s()
        cpu_s = service.cpu_s() - begin
        producers.begin(RATE_MB, FLUSHED_S)
        busy_s = flush_for(consumer, FLUSHED_S)
        written = quiet + producers.end()
        idle_s = [consumer.flush_s() for _ in range(IDLE_FLUSHES)]
        trace, read_s = consumer.stop()
    mb, kept = len(trace) / 1e6, trace.count(MARK.encode())
    return {
        "written": written,
        "kept": kept,
        "cpu": cpu_s * 1000 / (mb * quiet / written) * 100,
        "flush_busy": median(busy_s) * 1000,
        "flush_idle": median(idle_s) * 1000,
        "read_back": mb / read_s,
    }


def flush_for(consumer: Consumer, seconds: float) -> list[float]:
    times = []
    for _ in range(int(seconds / FLUSH_PERIOD_S)):
        times.append(consumer.flush_s())
        consumer.sleep(max(0, FLUSH_PERIOD_S - times[-1]))
    return times


def measure_cost() -> Figures:
    """Run bench/_cost.py, which measures the CPU time of an event."""
    with tempfile.TemporaryDirectory() as folder, Service("stretto", folder) as service:
        return worker("_cost.py", service.environment)


def worker(name: str, environment: dict[str, str] | None = None) -> Figures:
    """Run a program in bench/; return the figures that the program printed."""
    command = [sys.executable, str(HERE / name)]
    return json.loads(subprocess.check_output(command, env=environment))


def row(
    name: str, ours: float, peer: float | None, unit: str, **bounds: float
) -> dict[str, object]:
    """Return one row of the table."""
    ratio = round(ours / peer, 3) if peer else None
    peer = peer if peer is None else round(peer, 3)
    return {
        "name": name, "ours": round(ours, 3), "peer": peer, "unit": unit, "ratio": ratio, **bounds
    }  # fmt: skip


def load_rows(rounds: int, kinds: list[str]) -> Rows:
    """Measure the rows for which four producers write events."""
    runs: dict[tuple[str, str], list[Figures]] = {}
    for number in range(rounds):
        for shm in SHM:
            for kind in kinds:
                runs.setdefault((kind, shm), []).append(measure_load(kind, shm))
        print(f"round {number + 1} of {rounds}", file=sys.stderr)

    def total(kind: str, shm: str, name: str) -> float:
        return sum(figures[name] for figures in runs[kind, shm])

    def kept(kind: str, shm: str) -> float | None:
        """Return how many percent of the written events were kept."""
        if kind not in kinds:
            return None
        return 100 * total(kind, shm, "kept") / total(kind, shm, "written")

    def of(kind: str, shm: str, name: str) -> float | None:
        return median(figures[name] for figures in runs[kind, shm]) if kind in kinds else None

    def compare(label: str, shm: str, name: str, unit: str, **bounds: float) -> dict[str, object]:
        ours = of("stretto", shm, name)
        assert ours is not None
        return row(f"{label}/reference", ours, of("reference", shm, name), unit, **bounds)

    small = kept("stretto", "256kb")
    assert small is not None
    written, arrived = (total("stretto", "4mb", name) for name in ("written", "kept"))
    return [
        row("kept_4mb/written", arrived, written, "events", at_least=1.0),
        row("kept_256kb/reference", small, kept("reference", "256kb"), "%", at_least=1.0),
        compare("daemon_cpu_4mb", "4mb", "cpu", "ms/100MB"),
        compare("daemon_cpu_256kb", "256kb", "cpu", "ms/100MB"),
        compare("flush_idle", "4mb", "flush_idle", "ms"),
        compare("flush_busy", "4mb", "flush_busy", "ms"),
        compare("read_back", "4mb", "read_back", "MB/s", at_least=1.0),
    ]


def cost_row(rounds: int) -> dict[str, object]:
    figures = [measure_cost() for _ in range(rounds)]
    system, alone = (median(each[mode] for each in figures) for mode in ("system", "in_process"))
    return row("event_system/in_process", system, alone, "ns", target=1.1)


def trace_buffer_rows() -> Rows:
    """Run bench/_trace_buffer.py, which measures the throughput of the trace buffer."""
    rows = []
    for name, kinds in worker("_trace_buffer.py").items():
        bounds = {"at_least": 1.0} if name.startswith("both") else {}
        ours, peer = kinds["stretto"], kinds.get("reference")
        rows.append(row(f"trace_buffer_{name}/reference", ours, peer, "MB/s", **bounds))
    return rows


def answer_rows(rounds: int, kinds: list[str]) -> Rows:
    """Run bench/_answers.py, which measures the latency during each attack."""
    rows = []
    for attack in ATTACKS:
        runs: dict[str, list[Figures]] = {}
        for kind in kinds * rounds:
            runs.setdefault(kind, []).append(measure_answers(kind, attack))
        for name, pick, most in (("median", median, 50), ("max", max, 250)):
            ours, peer = (
                pick([run[name] for run in runs[kind]]) if kind in runs else None
                for kind in ("stretto", "v56")
            )
            assert ours is not None
            rows.append(row(f"answer_{name}/{attack}", ours, peer, "ms", most=most))
    return rows


def reading_rows(rounds: int, kinds: list[str]) -> Rows:
    """Run bench/_reading.py, which measures how fast a long trace is read; return its rows."""
    commands = ["stretto", "perfetto"] if "v56" in kinds else ["stretto"]
    speeds: dict[tuple[str, str], list[float]] = {}
    for kind in kinds * rounds:
        for command in commands:
            speeds.setdefault((command, kind), []).append(measure_reading(command, kind))
    rows = []
    for kind in kinds:
        ours, peer = (
            median(speeds[command, kind]) if command in commands else None
            for command in ("stretto", "perfetto")
        )
        assert ours is not None
        rows.append(row(f"trace_500mb_from_{kind}/perfetto", ours, peer, "MB/s", at_least=1.0))
    return rows


def make_rows(rounds: int) -> Rows:
    """Measure all rows."""
    kinds = ["stretto", "reference"]
    if why := missing_reference():
        print(f"left out Perfetto's service: {why}", file=sys.stderr)
        kinds.remove("reference")
    native = ["stretto", "v56"]
    if why := missing_v56():
        print(f"left out Perfetto's native programs: {why}", file=sys.stderr)
        native.remove("v56")
    return [
        *load_rows(rounds, kinds),
        cost_row(rounds),
        *trace_buffer_rows(),
        *answer_rows(rounds, native),
        *reading_rows(rounds, native),
    ]


def main() -> int:
    """Measure all rows and print them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON object per row")
    parser.add_argument("--rounds", type=int, default=5, help="rounds through both services")
    options = parser.parse_args()
    for line in make_rows(options.rounds):
        if options.json:
            print(json.dumps(line))
            continue
        goal = "".join(
            f"  ({key} {line[key]})" for key in ("target", "at_least", "most") if key in line
        )
        peer = "none" if line["peer"] is None else line["peer"]
        ratio = "" if line["ratio"] is None else f"  x{line['ratio']}"
        print(f"{line['name']:44} {line['ours']:>11} {peer:>11} {line['unit']}{ratio}{goal}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
