"""Measures what sampling costs: Stretto's samplers beside py-spy, austin, pyinstrument and scalene.

    python bench/samplers.py [--json] [--pairs N] [--rounds N]

target RATE      CPU time of the sampled program, relative to the bare one. The same process does
                 the same work in turns of 25 ms, while the sampler runs and while it is stopped. A
                 turn is compared with the bare ones before and after it, because the speed of the
                 machine changes. A pair is the median of 12 turns: the host of a virtual machine
                 takes time from some, which counts as their CPU time. The figure is the upper bound
                 of the mean of all pairs at 95 %. The program has a CPU of its own, if there are
                 two: else it pays for the changes between both.
target bare RATE the same for turns without a sampler: the error of the method
target PEER      the same for a peer at 1 kHz, in pairs of whole runs, with and without it
own RATE         CPU time of `stretto attach` per CPU second of the program, in per cent, while it
                 runs for 3 s; py-spy's
... timer RATE   both for a process that only wakes at this rate: the part of a sampler's cost that
                 is the machine's, and that no sampler with a timer can avoid. On a busy machine it
                 wakes less often; its own CPU time is that of a wake-up, multiplied by the rate
split PART       what the sampler's own CPU time at 1 kHz consists of; shares by `perf record -a`,
                 which needs root: the timer's wake-ups, the reads of memory, the states of
                 threads (whether they run), the clocks, the decoding of stacks, Python's writing of
                 the trace, and the rest
own idle         the same while the program sleeps: timer wake-ups only, there is no peer
bytes VERB       bytes of the trace per sample
shares           the largest deviation of a known share of CPU time, in standard errors
impossible       stacks that mix two chains of calls, and dropped ones, in per cent of the samples

Where a row has no peer, `peer` is the figure to stay below; in the rows of the timer and
of bare turns it is ours.
Peers that aren't installed are named on standard error. CPU times are used throughout, so a busy
machine disturbs less. With all peers it takes about ten minutes on an idle machine.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path
from statistics import mean, median, stdev
from typing import TYPE_CHECKING

from _row import Row

from stretto.protos.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stretto.protos.trace import TracePacket

SCRIPT = str(Path(__file__).with_name("_sampled.py"))
STRETTO = [sys.executable, "-m", "stretto"]
FUNCTIONS = ("half", "third", "fifth")
BLOCK_S = 0.25
"""CPU time of the work between two measurements."""
TURN_S = 0.025
"""CPU time of the work with a sampler, and without it, in turns."""
TURNS = 12
"""The number of turns whose median is a pair."""
BOUND = "x CPU, 95 % bound"
LIMITS = {"1000hz": 1.01, "10000hz": 1.02}
SECONDS = 3.0
PARTS = {
    "clock_nanosleep": "wake-ups",
    "process_vm_r": "reads",
    "pread": "states",
    "clock_gettime": "clocks",
    "_native": "decoding",
    "python": "writing",
    "libz": "writing",
}
"""The parts of a sampler's work, by what their functions or files are called."""


def place(pid: int, *, first: bool) -> None:
    """Let a process run on the first CPU only, or on the others."""
    one, *others = sorted(os.sched_getaffinity(0))
    if others:
        os.sched_setaffinity(pid, [one] if first else others)


class Target:
    """The sampled program."""

    def __init__(self, mode: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, SCRIPT, mode],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = self._process.pid
        place(self.pid, first=True)
        self.used: list[float] = []
        self._answer()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def work(self, blocks: int) -> float:
        """Let the program work; return the CPU time in seconds."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{blocks}\n")
        self._process.stdin.flush()
        self.used = [float(word) for word in self._answer().split()]
        return sum(self.used)

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@contextlib.contextmanager
def target(mode: str = "blocks") -> Iterator[Target]:
    program = Target(mode)
    try:
        yield program
    finally:
        program.close()


def cpu_s(pid: int) -> float:
    """Return the CPU time of all threads of a process."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def wakes(pid: int) -> int:
    """Return how often the first thread of a process has slept."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.rpartition("nonvoluntary_ctxt_switches:")[0].split()[-1])


class Beside:
    """A process beside the program, which can be stopped and continued."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.pid = self._process.pid
        place(self.pid, first=False)

    def run(self, runs: bool) -> None:
        os.kill(self.pid, signal.SIGCONT if runs else signal.SIGSTOP)

    def end(self) -> str:
        self._process.kill()
        return self._process.communicate()[1]


class Timer(Beside):
    """A process that wakes at a rate, and does nothing else."""

    def __init__(self, rate: str, folder: Path) -> None:
        program = str(folder / "timer")
        source = str(Path(__file__).with_name("_timer.c"))
        subprocess.run(["cc", "-O2", "-o", program, source], check=True)
        super().__init__([program, str(10**9 // int(rate.removesuffix("hz")))])


class Attached(Beside):
    """`stretto attach`."""

    def __init__(self, pid: int, rate: str, path: Path, *options: str) -> None:
        super().__init__([*STRETTO, "attach", str(pid), "--rate", rate, "-o", str(path), *options])
        assert self._process.stderr is not None
        while "sampling process" not in self._process.stderr.readline():
            pass

    def end(self) -> str:
        """End the sampler; return its summary."""
        self.run(True)
        self._process.send_signal(signal.SIGINT)
        return self._process.communicate()[1]


def blocks_of(program: Target) -> int:
    """Return how many blocks of work take about BLOCK_S."""
    program.work(5)
    return max(1, round(BLOCK_S / (program.work(20) / 20)))


def bound(ratios: list[float]) -> float:
    """Return the upper bound of the mean, at 95 %."""
    if len(ratios) < 2:
        return ratios[0]
    return mean(ratios) + 1.7 * stdev(ratios) / math.sqrt(len(ratios))


def turns(program: Target, beside: dict[str, Beside], blocks: int) -> dict[str, float]:
    """Return the relative CPU time of the program beside each process: a pair of each."""
    ratios: dict[str, list[float]] = {name: [] for name in [*beside, "bare "]}
    before = program.work(blocks)
    for _ in range(TURNS):
        for name in random.sample([*ratios], len(ratios)):
            each = beside.get(name)
            if each:
                each.run(True)
            taken = program.work(blocks)
            if each:
                each.run(False)
            after = program.work(blocks)
            ratios[name].append(2 * taken / (before + after))
            before = after
    return {name: median(found) for name, found in ratios.items()}


def own_percent(program: Target, beside: Beside, blocks: int) -> float:
    """Return the CPU time of a process per CPU second of the program, in per cent."""
    beside.run(True)
    program.work(blocks // 4)
    before = cpu_s(beside.pid)
    taken = program.work(blocks)
    used = cpu_s(beside.pid) - before
    beside.run(False)
    return 100 * used / taken


def timer_percent(program: Target, timer: Beside, hertz: int, blocks: int) -> float:
    """Return the CPU time of `hertz` wake-ups of a process, in per cent of a second."""
    before, slept = cpu_s(timer.pid), wakes(timer.pid)
    own_percent(program, timer, blocks)
    return 100 * hertz * (cpu_s(timer.pid) - before) / max(1, wakes(timer.pid) - slept)


def pairs(rate: str, count: int, seconds: float, folder: Path) -> Iterator[Row]:
    """Measure the cost for the program, and the sampler's own, at one rate."""
    hertz = int(rate.removesuffix("hz"))
    with target() as program:
        blocks = blocks_of(program)
        sampler, timer = Attached(program.pid, rate, folder / rate), Timer(rate, folder)
        beside: dict[str, Beside] = {"": sampler, "timer ": timer}
        timer.run(False)
        work = round(seconds / BLOCK_S) * blocks
        own = {"": own_percent(program, sampler, work)}
        own["timer "] = timer_percent(program, timer, hertz, work)
        blocks = max(1, round(blocks * TURN_S / BLOCK_S))
        found = [turns(program, beside, blocks) for _ in range(count)]
        for each in beside.values():
            each.end()
    own_of_peer = py_spy_own(rate) if rate == "1000hz" else 0
    bounds = {name: bound([pair[name] for pair in found]) for name in found[0]}
    for name, ratio in bounds.items():
        yield Row(f"target {name}{rate}", ratio, bounds[""] if name else LIMITS[rate], BOUND)
    for name, percent in own.items():
        yield Row(f"own {name}{rate}", percent, own[""] if name else own_of_peer, "% of a core")


def part_of(stack: str) -> str:
    """Return the part of the sampler's work to which a stack belongs, as perf prints it."""
    return next((part for name, part in PARTS.items() if name in stack), "rest")


def split(seconds: float, folder: Path) -> Iterator[Row]:
    """Measure what the sampler's own CPU time consists of."""
    if shutil.which("perf") is None:
        print("samplers: without the split: there is no perf", file=sys.stderr)
        return
    data = folder / "perf.data"
    command = ["perf", "record", "-q", "-a", "-g", "-e", "cpu-clock", "-F", "4999", "-o", str(data)]
    with target() as program:
        blocks = blocks_of(program) * round(seconds / BLOCK_S)
        sampler = Attached(program.pid, "1000hz", folder / "split")
        program.work(blocks // 4)
        before = cpu_s(sampler.pid)
        taken = program.work(blocks)
        used = cpu_s(sampler.pid) - before
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as perf:
            program.work(blocks)
            perf.send_signal(signal.SIGINT)
        sampler.end()
    printed = subprocess.run(
        ["perf", "script", "-i", str(data), "--pid", str(sampler.pid), "-F", "ip,sym,dso"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    stacks = [part_of(stack) for stack in printed.split("\n\n") if stack.strip()]
    for part in [*dict.fromkeys(PARTS.values()), "rest"] if stacks else []:
        share = stacks.count(part) / len(stacks)
        yield Row(f"split {part}", 100 * used / taken * share, 0, "% of a core")


def idle(seconds: float, folder: Path) -> Row:
    """Measure the sampler's own cost while the program sleeps."""
    with target() as program:
        sampler = Attached(program.pid, "1000hz", folder / "idle")
        before, begin = cpu_s(sampler.pid), time.monotonic()
        time.sleep(seconds)
        used = (cpu_s(sampler.pid) - before) / (time.monotonic() - begin)
        sampler.end()
    return Row("own idle", 100 * used, 0, "% of a core")


def tool(name: str) -> str:
    """Return the path of a peer's command beside this Python, or else its name."""
    beside = Path(sys.executable).parent / name
    return str(beside) if beside.exists() else name


def py_spy_own(rate: str) -> float:
    """Return the CPU time of py-spy per CPU second of the program, in per cent; 0 without it."""
    if shutil.which(tool("py-spy")) is None:
        return 0
    with target() as program, tempfile.TemporaryDirectory() as folder:
        options = ["-r", rate.removesuffix("hz"), "-f", "raw", "-o", f"{folder}/raw", "-d", "3600"]
        with subprocess.Popen(
            [tool("py-spy"), "record", "-p", str(program.pid), *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as peer:
            blocks = blocks_of(program)
            program.work(blocks * 4)
            before = cpu_s(peer.pid)
            taken = program.work(blocks * 8)
            used = cpu_s(peer.pid) - before
            peer.send_signal(signal.SIGINT)
    return 100 * used / taken


PEERS = {
    "py-spy": "TOOL record -r 1000 -f raw -o OUT -- PYTHON",
    "austin": "TOOL -i 1ms -o OUT PYTHON",
    "tachyon": "PYTHON -m profiling.sampling run -r 1000 --binary -o OUT",
    "pyinstrument": "PYTHON -m pyinstrument -i 0.001 -o OUT",
    "scalene": "PYTHON -m scalene run --cpu-only -o OUT",
}
"""The commands before the script, by name."""


def run_s(name: str, folder: Path, blocks: int) -> float:
    """Run the program with a peer; return the CPU time of its work. "" is the bare program."""
    words = {"OUT": str(folder / name), "PYTHON": sys.executable, "TOOL": tool(name)}
    command = [words.get(word, word) for word in PEERS.get(name, "PYTHON").split()]
    done = subprocess.run(  # A missing command is an OSError.
        [*command, SCRIPT, "work", str(blocks)], capture_output=True, text=True, check=False
    )
    used = re.findall(r"^[0-9.e-]+ [0-9.e-]+ [0-9.e-]+$", done.stdout, re.MULTILINE)
    if not used:
        raise OSError(f"{name} failed: {done.stderr.strip()[-200:] or done.stdout.strip()[-200:]}")
    return sum(map(float, used[0].split()))


def peers(rounds: int, folder: Path) -> Iterator[Row]:
    """Measure the cost of the peers for the program, in whole runs."""
    with target() as program:
        blocks = blocks_of(program) * 4
    found: dict[str, list[float]] = {name: [] for name in PEERS}
    for _ in range(rounds):
        bare = run_s("", folder, blocks)
        for name in list(found):
            try:
                found[name].append(run_s(name, folder, blocks) / bare)
            except OSError as error:
                print(f"samplers: without {name}: {error}", file=sys.stderr)
                del found[name]
    for name, ratios in found.items():
        if ratios:
            yield Row(f"target {name}", 1, bound(ratios), BOUND)


def packets_of(path: Path) -> Iterator[TracePacket]:
    """Yield the packets of a trace, also those inside compressed ones."""
    for packet in Trace.decode(path.read_bytes()).packet:
        if packet.compressed_packets:
            yield from Trace.decode(zlib.decompress(packet.compressed_packets)).packet
        else:
            yield packet


def stacks_of(path: Path) -> tuple[list[list[str]], int]:
    """Return the sampled stacks, as names of functions, and the number of dropped samples."""
    names: dict[int, str] = {}
    frames: dict[int, str] = {}
    stacks: dict[int, list[str]] = {}
    found, dropped = [], 0
    for packet in packets_of(path):
        if data := packet.interned_data:
            names.update((each.iid, bytes(each.str).decode()) for each in data.function_names)
            frames.update((each.iid, names[each.function_name_id]) for each in data.frames)
            stacks.update((s.iid, [frames[f] for f in s.frame_ids]) for s in data.callstacks)
        if sample := packet.perf_sample:
            if sample.callstack_iid:
                found.append(stacks[sample.callstack_iid])
            else:
                dropped += 1
    return found, dropped


def size_and_shares(seconds: float, folder: Path) -> Iterator[Row]:
    """Measure the bytes of a sample, and the deviation of the shares."""
    path = folder / "shares"
    with target() as program:
        sampler = Attached(program.pid, "1000hz", path)
        program.work(round(seconds / BLOCK_S) * blocks_of(program))
        sampler.end()
        used = program.used
    stacks, _ = stacks_of(path)
    inner = [stack[-1] for stack in stacks if stack[-1] in FUNCTIONS]
    shares = [each / sum(used) for each in used]
    errors = [
        abs(inner.count(name) / len(inner) - share) / math.sqrt(share * (1 - share) / len(inner))
        for name, share in zip(FUNCTIONS, shares, strict=True)
    ]
    yield Row("shares", max(errors), 3, "standard errors")
    yield Row("bytes attach", path.stat().st_size / len(stacks), 20, "bytes a sample")
    command = [*STRETTO, "record", "-q", "--sample", "1000hz", "--no-counters"]
    path = folder / "record"
    with target() as program:
        blocks = blocks_of(program) * round(seconds / BLOCK_S)
    subprocess.run(
        [*command, "-o", str(path), SCRIPT, "work", str(blocks)],
        stdout=subprocess.DEVNULL,
        check=True,
    )
    recorded, _ = stacks_of(path)
    yield Row("bytes record", path.stat().st_size / len(recorded), 20, "bytes a sample")


def impossible(seconds: float, folder: Path) -> Row:
    """Measure how many stacks of a hostile program are impossible or dropped."""
    path = folder / "hostile"
    with target("hostile") as program:
        sampler = Attached(program.pid, "10000hz", path, "--wall")
        time.sleep(seconds)
        sampler.end()
    stacks, dropped = stacks_of(path)
    wrong = sum(not _is_possible(stack) for stack in stacks)
    return Row("impossible", 100 * (wrong + dropped) / (len(stacks) + dropped), 0.2, "%")


def _is_possible(stack: list[str]) -> bool:
    """Return whether a stack has only one chain, from its start on."""
    calls = [name for name in stack if name.startswith(("left_", "right_"))]
    chains = ["left_one", "left_two", "left_three"], ["right_one", "right_two", "right_three"]
    return any(calls == chain[: len(calls)] for chain in chains)


def rows(options: argparse.Namespace) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for rate in LIMITS:
            yield from pairs(rate, options.pairs, options.seconds, folder)
        yield from split(options.seconds, folder)
        yield idle(options.seconds, folder)
        yield from size_and_shares(options.seconds, folder)
        yield impossible(options.seconds, folder)
        yield from peers(options.rounds, folder)


def main() -> None:
    """Measure all rows and print them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON object per row")
    parser.add_argument("--pairs", type=int, default=30, help="pairs of each rate")
    parser.add_argument("--rounds", type=int, default=30, help="pairs with each peer")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="time of the other rows")
    options = parser.parse_args()
    for row in rows(options):
        if options.json:
            print(row.as_json(), flush=True)
        else:
            print(f"{row.name:16} {row.ours:>9.3f} {row.peer:>9.3f} {row.unit}", flush=True)


if __name__ == "__main__":
    main()
