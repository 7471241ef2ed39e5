"""Measures what heap profiles cost: Stretto's beside memray and tracemalloc.

    python bench/heap.py [--json] [--rounds N]

cpu INTERVAL     CPU time of a program with a heap profile, relative to the bare program, at a
                 sampling interval of 64 KiB and of 4 KiB; frees are followed. One process does
                 the same work in each state, in random order, the first time without being
                 measured. The peer is the limit.
cpu PEER         the same work under memray (with Python's allocators) and tracemalloc (1 frame):
                 median of the ratios of whole processes, interleaved. Ours is that of 64 KiB
rss              what a profile adds to the program's largest memory, in MB; the peer is memray
file             bytes of the trace, with all dumps; the peer is the file of memray

The program makes and frees more than ten million objects, lists and strings per second: it does
nothing else. A peer that is not installed is named on standard error. CPU times are used
throughout.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from _row import Row

INTERVALS = {"64k": (64 << 10, 1.05), "4k": (4 << 10, 1.10)}
PAIRS = 40
"""Runs of the work in each state, in a round."""
WORK = 40
"""Repetitions of the program's work in a process of a peer."""


# --- the program


class Node:
    """An object with a list."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.near = [number, number + 1]


def make_nodes(count: int) -> list[Node]:
    return [Node(i) for i in range(count)]


def index(count: int) -> dict[str, tuple[int, float]]:
    return {str(i): (i, float(i)) for i in range(count)}


def double(words: dict[str, tuple[int, float]]) -> list[str]:
    return [word * 2 for word in words]


def work() -> None:
    """Do the work once; it takes some 10 ms."""
    nodes = make_nodes(10_000)
    words = index(15_000)
    doubled = double(words)
    assert len(nodes) + len(doubled) == 25_000


# --- the processes


def cpu_ns() -> int:
    """Return the CPU time of the work, done for the second time."""
    work()
    before = time.process_time_ns()
    work()
    return time.process_time_ns() - before


def measure_states(pairs: int) -> dict[str, float]:
    """Return the ratio of profiled and bare work by interval, in this process.

    The figure of a state is that of the fastest tenth of its runs: other programs only add.
    """
    from stretto import _pyhooks

    def profiled(interval: int) -> int:
        _pyhooks.heap_start(interval)
        try:
            return cpu_ns()
        finally:
            _pyhooks.heap_stop()

    work()
    times: dict[str, list[int]] = {name: [] for name in ("bare", *INTERVALS)}
    for _ in range(pairs):
        for name in random.sample([*times], len(times)):
            times[name].append(profiled(INTERVALS[name][0]) if name in INTERVALS else cpu_ns())
    fastest = {name: sorted(each)[len(each) // 10] for name, each in times.items()}
    return {name: fastest[name] / fastest["bare"] for name in INTERVALS}


def run_work(mode: str) -> None:
    """The process that is measured as a whole: prints its CPU time of the work, and its memory."""
    if mode == "tracemalloc":
        import tracemalloc

        tracemalloc.start()
    before = time.process_time()
    for _ in range(WORK):
        work()
    cpu = time.process_time() - before
    print(json.dumps([cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))


def run(command: list[str]) -> tuple[float, float]:
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    cpu, memory = json.loads(
        next(line for line in done.stdout.splitlines() if line.startswith("["))
    )
    return cpu, memory


class Processes:
    """Runs whole processes, interleaved."""

    def __init__(self, folder: Path) -> None:
        this = [os.fspath(Path(__file__).resolve()), "--run"]
        record = [sys.executable, "-m", "stretto", "record", "-q", "--no-functions"]
        self.files = {"stretto": folder / "t.pftrace", "memray": folder / "memray.bin"}
        memray = [sys.executable, "-m", "memray", "run", "-q", "-f", "--trace-python-allocators"]
        self._commands = {
            "bare": [sys.executable, *this, "bare"],
            "stretto": [*record, "--heap", "-o", str(self.files["stretto"]), *this, "stretto"],
            "tracemalloc": [sys.executable, *this, "tracemalloc"],
        }
        if is_installed("memray"):
            self._commands["memray"] = [*memray, "-o", str(self.files["memray"]), *this, "memray"]
        self._results: dict[str, list[tuple[float, float]]] = {}

    def run(self) -> None:
        for name, command in random.sample([*self._commands.items()], len(self._commands)):
            self._results.setdefault(name, []).append(run(command))

    def has(self, name: str) -> bool:
        return name in self._results

    def ratio(self, name: str) -> float:
        pairs = zip(self._results[name], self._results["bare"], strict=True)
        return median(ours[0] / bare[0] for ours, bare in pairs)

    def memory(self, name: str) -> float:
        pairs = zip(self._results[name], self._results["bare"], strict=True)
        return median(ours[1] - bare[1] for ours, bare in pairs)


def is_installed(module: str) -> bool:
    from importlib.util import find_spec

    if find_spec(module) is not None:
        return True
    print(f"{module} is not installed: pip install stretto[bench]", file=sys.stderr)
    return False


def measure(rounds: int) -> list[Row]:
    ratios = measure_states(rounds * PAIRS)
    rows = [
        Row(f"heap cpu {name}", ratios[name], limit, "x bare")
        for name, (_, limit) in INTERVALS.items()
    ]
    ours = rows[0].ours
    with tempfile.TemporaryDirectory() as folder:
        processes = Processes(Path(folder))
        for _ in range(rounds):
            processes.run()
        peers = [name for name in ("memray", "tracemalloc") if processes.has(name)]
        rows += [Row(f"heap cpu {name}", ours, processes.ratio(name), "x bare") for name in peers]
        if processes.has("memray"):
            memory = [processes.memory(name) for name in ("stretto", "memray")]
            rows.append(Row("heap rss", *memory, "MB"))
            sizes = [processes.files[name].stat().st_size for name in ("stretto", "memray")]
            rows.append(Row("heap file", *sizes, "bytes"))
    return rows


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--run", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        run_work(options.run)
        return
    for row in measure(options.rounds):
        text = f"{row.name:<24} {row.ours:>12.3f} {row.peer:>12.3f} {row.unit}"
        print(row.as_json() if options.json else text)


if __name__ == "__main__":
    main()
