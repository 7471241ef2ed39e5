"""Measures what recording costs real programs, with Stretto and with other profilers.

    python bench/programs.py [--json] [--rounds N] [--seconds S] [NAME ...]

    NAME/auto           `stretto record --auto`, relative to the bare program
    NAME/PEER           viztracer, cProfile and pyinstrument, relative to the bare program
    NAME/rss            peak resident size of the recorded program, relative to the bare program
    NAME/recorder       largest proportional size (PSS) of the recorder, relative to 100 MB
    NAME/bytes          size of the trace, relative to 256 MB
    mean/auto, mean/PEER  geometric means of NAME/auto and NAME/PEER over all programs
    cpu/auto, cpu/PEER    geometric means of the CPU time, including all child processes

Figures are medians of wall time over interleaved rounds. The times include the start and the
saving of the trace. On a busy machine, the CPU times are more reliable. Each bare program uses
the CPU for at least `--seconds`. The benchmark opens each trace, and fails if the trace lacks a
phase of the program, or a slice of its last second.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import geometric_mean, median
from typing import TYPE_CHECKING, Any, NamedTuple

from _programs import PROGRAMS

from stretto.analysis.trace_tables import import_trace, table_columns

if TYPE_CHECKING:
    from collections.abc import Iterator

SCRIPT = str(Path(__file__).with_name("_programs.py"))
PEERS = ("viztracer", "cprofile", "pyinstrument")
TARGET = 1.2
SIZE = 256 << 20
PHASES = {"load", "work", "finish"} if sys.version_info >= (3, 12) else {"work"}
"""On 3.11 only stack samples find calls: the other two phases may be too short."""


class Run(NamedTuple):
    """The figures of one run of a program."""

    wall_s: float
    cpu_s: float
    rss_kb: int
    """Peak resident size of the program."""
    pss_kb: int
    """Largest proportional size of the process that was started: of the recorder, if any."""


def command(state: str, folder: Path) -> list[str]:
    """Return the part of the command line before the script."""
    python = sys.executable
    return {
        "bare": [python],
        "auto": [python, "-m", "stretto", "record", "-q", "--auto", "-o", f"{folder}/auto"],
        "viztracer": [python, "-m", "viztracer", "--quiet", "-o", f"{folder}/viz.json"],
        "cprofile": [python, "-m", "cProfile", "-o", f"{folder}/profile"],
        "pyinstrument": [python, "-m", "pyinstrument", "-o", f"{folder}/pyinstrument"],
    }[state]


def largest_size(pid: int, ended: threading.Event) -> int:
    """Return a process's largest proportional size while it runs, in KB."""
    size = 0
    while not ended.wait(0.05):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/smaps_rollup").read_text().split()
            size = max(size, int(fields[fields.index("Pss:") + 1]))
    return size


def run(state: str, name: str, count: int, folder: Path) -> Run:
    """Run a program.

    Raises:
        subprocess.CalledProcessError: The program failed.
    """
    arguments = [*command(state, folder), SCRIPT, name, str(count)]
    ended = threading.Event()
    with open(folder / "output", "w", encoding="utf-8") as output, ThreadPoolExecutor() as pool:
        begin = time.perf_counter()
        process = subprocess.Popen(arguments, stdout=output, stderr=output)
        size = pool.submit(largest_size, process.pid, ended)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begin
        ended.set()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        print((folder / "output").read_text(), file=sys.stderr)
        raise subprocess.CalledProcessError(process.returncode, arguments)
    figures = (folder / "output").read_text().rpartition("phases ")[2].split()
    cpu = usage.ru_utime + usage.ru_stime
    return Run(wall, cpu, int(figures[2]), size.result())


def count_for(name: str, seconds: float, folder: Path) -> int:
    """Return a number of steps that takes the bare program at least `seconds` of CPU time."""
    count = 1
    while (figures := run("bare", name, count, folder)).cpu_s < seconds:
        missing = 1.1 * (seconds - figures.cpu_s) / figures.cpu_s
        count += max(1, math.ceil(missing * count))
    return count


def check_trace(path: Path) -> int:
    """Check that a trace has all phases of the program; return the size of the trace.

    Raises:
        SystemExit: A phase is missing, or the last second of the trace is empty.
    """
    last = 0
    names: dict[str, int] = {}
    for name, timestamp in table_columns(import_trace(path), "slice", "name", "ts"):
        last = max(last, timestamp)
        names[name] = timestamp
    missing = PHASES - set(names)
    if missing or last - names.get("finish", last) > 10**9:
        raise SystemExit(f"{path}: the phases {sorted(missing)} are missing")
    return path.stat().st_size


def measure(name: str, states: list[str], rounds: int, seconds: float) -> Iterator[dict[str, Any]]:
    """Yield the rows of one program's figures."""
    runs: dict[str, list[Run]] = {state: [] for state in states}
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        count = count_for(name, seconds, folder)
        for _ in range(rounds):
            for state in states:
                runs[state].append(run(state, name, count, folder))
                if state == "auto":
                    size = check_trace(folder / "auto")
    bare = runs.pop("bare")
    for state, figures in runs.items():
        for kind, unit in (("", "s"), ("cpu/", "s")):
            index = 1 if kind else 0
            ours, peer = (median(figure[index] for figure in of) for of in (figures, bare))
            yield row(f"{kind}{name}/{state}", ours, peer, unit)
    rss = [max(figure.rss_kb for figure in of) for of in (runs["auto"], bare)]
    yield row(f"{name}/rss", rss[0] / 1024, rss[1] / 1024, "MB")
    pss = max(figure.pss_kb for figure in runs["auto"])
    yield row(f"{name}/recorder", pss / 1024, 100, "MB")
    yield row(f"{name}/bytes", size / 2**20, SIZE / 2**20, "MB")


def row(name: str, ours: float, peer: float, unit: str) -> dict[str, Any]:
    """Return a row of the table, as JSON data."""
    return {"name": name, "ours": ours, "peer": peer, "unit": unit, "ratio": ours / peer}


def means(rows: list[dict[str, Any]], states: list[str]) -> Iterator[dict[str, Any]]:
    """Yield additional rows, which have the geometric means over all programs."""
    for state in states[1:]:
        for kind, prefix in (("mean", ""), ("cpu", "cpu/")):
            ratios = [
                item["ratio"]
                for item in rows
                if item["name"].endswith(f"/{state}")
                and item["name"].startswith("cpu/") == bool(prefix)
            ]
            yield {**row(f"{kind}/{state}", geometric_mean(ratios), 1.0, "x"), "target": TARGET}


def main() -> None:
    """Measure all programs and print the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--peers", default=",".join(PEERS), help="comma-separated; empty for none")
    parser.add_argument("names", nargs="*", choices=[*PROGRAMS, []])
    options = parser.parse_args()
    states = ["bare", "auto", *filter(None, options.peers.split(","))]
    rows: list[dict[str, Any]] = []
    for name in options.names or PROGRAMS:
        for item in measure(name, states, options.rounds, options.seconds):
            rows.append(item)
            show(item, as_json=options.json)
    for item in means(rows, states):
        show(item, as_json=options.json)


def show(item: dict[str, Any], *, as_json: bool) -> None:
    """Print a row."""
    if as_json:
        print(json.dumps(item), flush=True)
    else:
        figures = f"{item['ours']:10.3f} {item['peer']:10.3f} {item['unit']:3}"
        print(f"{item['name']:32} {figures} {item['ratio']:6.2f}", flush=True)


if __name__ == "__main__":
    main()
