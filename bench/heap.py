"""Measures what heap profiles and object graphs cost: Stretto's beside memray and tracemalloc.

    python bench/heap.py [--json] [--rounds N]

cpu INTERVAL     CPU time of a program with a heap profile, relative to the bare program, at a
                 sampling interval of 64 KiB and of 4 KiB; frees are followed. One process does
                 the same work in each state, in random order, the first time without being
                 measured. The peer is the limit.
cpu PEER         the same work under memray (with Python's allocators) and tracemalloc (1 frame):
                 median of the ratios of whole processes, interleaved. Ours is that of 64 KiB
rss              what a profile adds to the program's largest memory, in MB; the peer is memray
file             bytes of the trace, with all dumps; the peer is the file of memray
graph pause      how long the program stops for an object graph of a million objects, in ms; the
                 peer is a bare fork of the same process
graph cpu        CPU time of the copy and of the packets per million objects, in s; the peer asks
                 `gc.get_referents` for the references of each object that the collector knows
graph memory     pages that only the copy has, at most, in MB; the peer is the program's memory
graph bytes      bytes in the trace per object; the peer is the size of the objects

The program makes and frees more than ten million objects, lists and strings per second: it does
nothing else. A peer that is not installed is named on standard error. CPU times are used
throughout.
"""

from __future__ import annotations

import argparse
import gc
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
from typing import TYPE_CHECKING

from _row import Row

if TYPE_CHECKING:
    from collections.abc import Callable

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


# --- the object graph

OBJECTS = 1_000_000


class Page:
    """What the graph consists of: an object with its list and its text."""

    def __init__(self, number: int) -> None:
        self.lines = [f"{number}"]


def make_pages(count: int) -> list[Page]:
    return [Page(i) for i in range(count)]


def ms_of(action: Callable[[], object]) -> float:
    before = time.perf_counter_ns()
    action()
    return (time.perf_counter_ns() - before) / 1e6


def fork() -> int:
    """Return the pid of a child that ends at once."""
    pid = os.fork()
    if not pid:
        os._exit(0)
    return pid


def fork_ms() -> float:
    pids: list[int] = []
    duration = ms_of(lambda: pids.append(fork()))
    os.waitpid(pids[0], 0)
    return duration


def private_mb(pid: int) -> float:
    """Return the memory that a process shares with no other one."""
    with open(f"/proc/{pid}/smaps_rollup") as file:
        sizes = dict(line.split(":", 1) for line in file if ":" in line)
    return sum(int(sizes[f"Private_{kind}"].split()[0]) for kind in ("Clean", "Dirty")) / 1024


def copy_figures() -> tuple[float, float, float]:
    """Start a copy, and read its graph; return its pause in ms, its memory in MB, its bytes."""
    from stretto import _pyhooks

    ours, its = os.pipe()
    pids: list[int] = []
    options = its, OBJECTS * 4, 60 * 10**9
    pause = ms_of(lambda: pids.append(_pyhooks.object_graph(*options)))
    os.close(its)
    size, memory, looked_at = 0, 0.0, 0
    while part := os.read(ours, 1 << 20):
        size += len(part)
        if size - looked_at > 1 << 20:  # The copy waits meanwhile, for the pipe is full.
            looked_at, memory = size, max(memory, private_mb(pids[0]))
    os.close(ours)
    os.waitpid(pids[0], 0x40000000)
    return pause, memory, size


def dump_cpu() -> float:
    """Return the CPU time in s of a dump: of the copy, and of this process."""
    from stretto.profilers.heap.object_graph import write_graph

    before = sum(os.times()[:4])
    write_graph(bool)
    return sum(os.times()[:4]) - before


def referents_cpu() -> float:
    """Return the CPU time in s of a walk in Python."""
    before = time.process_time()
    references = sum(len(gc.get_referents(each)) for each in gc.get_objects())
    assert references > OBJECTS
    return time.process_time() - before


def run_graph() -> None:
    """The process with a million objects: prints its figures, each with its peer's."""
    kept = make_pages(OBJECTS // 3)  # Each of them is three objects.
    pause, memory, size = copy_figures()
    with open("/proc/self/statm") as file:
        own = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    objects = 3 * len(kept)
    sizes = sum(map(sys.getsizeof, (kept[-1], kept[-1].lines, kept[-1].lines[0]))) / 3
    cpus = [(dump_cpu(), referents_cpu()) for _ in range(3)]
    print(
        json.dumps(
            {
                "pause": [[pause, fork_ms()], "ms"],
                "cpu": [[1e6 / objects * median(each) for each in zip(*cpus, strict=True)], "s"],
                "memory": [[memory, own], "MB"],
                "bytes": [[size / objects, sizes], "bytes"],
            }
        )
    )


def measure_graph() -> list[Row]:
    command = [sys.executable, os.fspath(Path(__file__).resolve()), "--run", "graph"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    figures = json.loads(done.stdout)
    return [Row(f"graph {name}", *values, unit) for name, (values, unit) in figures.items()]


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
    return rows + measure_graph()


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--run", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        run_graph() if options.run == "graph" else run_work(options.run)
        return
    for row in measure(options.rounds):
        text = f"{row.name:<24} {row.ours:>12.3f} {row.peer:>12.3f} {row.unit}"
        print(row.as_json() if options.json else text)


if __name__ == "__main__":
    main()
