"""Measures what a recording adds to the start of programs and of their children.

    python bench/start.py [--json] [--rounds N]

record_empty/bare     `stretto record` on an empty program, relative to the program alone
recording/bare        an empty `stretto.recording()` block, relative to an empty program
spawned_child/bare    the time that a recording adds to each child process, relative to the time
                      of an interpreter start
fork/limit            the time that a recording adds to each fork, relative to its maximum
stream_finish/limit   from the last line of a program that writes 45 MB/s for 4 s until
                      `stretto record --full` has ended, relative to its maximum
stream_memory/limit   the largest resident size of this recorder until then, relative to its maximum
record_empty/viztracer, ...
                      the same figures relative to viztracer, if viztracer is installed

What the time is spent on, most of it first: an empty `recording()` executes the modules of the
bundle `in_process` (stretto/_bundle.py), half of which is decoding, and the interpreter takes
about 2 ms longer to end; a spawned child executes the bundle `recorded`, then connects; a fork
copies pages, twice as many if the child's interpreter ends normally. A child that records an event
at once also connects: that takes 4 to 5 ms.

Each round runs all commands once, in random order. Figures are medians, over the rounds, of wall
times and of differences within a round. `target` is the maximum of `ratio`.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

CHILDREN = 8
FORKS = 40
FORK_LIMIT_MS = 1.5
FINISH_LIMIT_MS = 500
MEMORY_LIMIT_MB = 100

PROGRAMS = {
    "empty": "",
    "spawn": f"""
import subprocess, sys
for _ in range({CHILDREN}):
    subprocess.run([sys.executable, "-c", ""], check=True)
""",
    "fork": f"""
import os
for _ in range({FORKS}):
    pid = os.fork()
    if not pid:
        break
    os.waitpid(pid, 0)
""",
    "recording": """
import sys, stretto
with stretto.recording(sys.argv[1]):
    pass
""",
}
STREAM = """
import time, stretto
category, text = stretto.Category("bench"), 80 * "x"
begin, written = time.perf_counter(), 0
while written < 4 * 45e6:
    for number in range(2000):
        category.instant("event", text=text, number=number)
    written += 2000 * 108
    time.sleep(max(0, begin + written / 45e6 - time.perf_counter()))
print(time.time(), flush=True)
"""
COUNTS = {"spawn": CHILDREN, "fork": FORKS}


def make_commands(folder: Path) -> dict[str, list[str]]:
    """Write the programs into a folder; return a command line for each `runner.program`."""
    python, trace = sys.executable, str(folder / "trace")
    runners = {
        "bare": [python],
        "stretto": [python, "-m", "stretto", "record", "-q", "-o", trace, "--"],
    }
    if importlib.util.find_spec("viztracer"):
        runners["viztracer"] = [python, "-m", "viztracer", "--quiet", "-o", f"{trace}.json", "--"]
    commands = {}
    for name, text in PROGRAMS.items():
        path = folder / f"{name}.py"
        path.write_text(text)
        for runner, command in runners.items():
            if name != "recording":
                commands[f"{runner}.{name}"] = [*command, str(path)]
    commands["recording"] = [python, str(folder / "recording.py"), trace]
    return commands


def run_rounds(commands: dict[str, list[str]], rounds: int) -> dict[str, list[float]]:
    """Return the wall times of each command in ms, one for each round."""
    times: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(rounds):
        for name in random.sample(list(commands), len(commands)):
            begin = time.perf_counter_ns()
            subprocess.run(commands[name], check=True, stdout=subprocess.DEVNULL)
            times[name].append((time.perf_counter_ns() - begin) / 1e6)
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
    return times


def run_stream(folder: Path) -> tuple[float, float]:
    """Record the program STREAM; return the recorder's finishing time in ms and its size in MB."""
    path = folder / "stream.py"
    path.write_text(STREAM)
    options = ["record", "-q", "--full", "-o", str(folder / "trace"), "--", str(path)]
    command = [sys.executable, "-m", "stretto", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as recorder:
        assert recorder.stdout is not None
        end = float(recorder.stdout.readline())
        status = Path(f"/proc/{recorder.pid}/status").read_text()
    finish = (time.time() - end) * 1e3
    peak = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    return finish, int(peak) / 1024


def added(times: dict[str, list[float]], runner: str, program: str) -> float:
    """Return the ms that a runner adds to each child process of a program.

    What it adds to an empty program is subtracted first.
    """
    figures = zip(
        times[f"{runner}.{program}"],
        times[f"{runner}.empty"],
        times[f"bare.{program}"],
        times["bare.empty"],
        strict=True,
    )
    return median((a - b) - (c - d) for a, b, c, d in figures) / COUNTS[program]


def row(
    name: str, ours: float, peer: float, target: float | None = None, unit: str = "ms"
) -> dict[str, object]:
    """Return one row of the table."""
    return {
        "name": name,
        "ours": round(ours, 2),
        "peer": round(peer, 2),
        "unit": unit,
        "ratio": round(ours / peer, 3),
        "target": target,
    }


def make_rows(times: dict[str, list[float]]) -> list[dict[str, object]]:
    """Return the rows of the table."""
    bare, record = median(times["bare.empty"]), median(times["stretto.empty"])
    spawned, forked = added(times, "stretto", "spawn"), added(times, "stretto", "fork")
    rows = [
        row("record_empty/bare", record, bare, 6.0),
        row("recording/bare", median(times["recording"]), bare, 2.0),
        row("spawned_child/bare", spawned, bare, 1.5),
        row("fork/limit", forked, FORK_LIMIT_MS, 1.0),
    ]
    if "viztracer.empty" in times:
        rows += [
            row("record_empty/viztracer", record, median(times["viztracer.empty"])),
            row("spawned_child/viztracer", spawned, added(times, "viztracer", "spawn")),
            row("fork/viztracer", forked, added(times, "viztracer", "fork")),
        ]
    return rows


def main() -> int:
    """Measure and print all rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON object per row")
    parser.add_argument("--rounds", type=int, default=9, help="rounds through all commands")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        times = run_rounds(make_commands(Path(folder)), options.rounds)
        streams = [run_stream(Path(folder)) for _ in range(max(1, options.rounds // 3))]
    finish, memory = (median(values) for values in zip(*streams, strict=True))
    rows = make_rows(times)
    rows.append(row("stream_finish/limit", finish, FINISH_LIMIT_MS, 1.0))
    rows.append(row("stream_memory/limit", memory, MEMORY_LIMIT_MB, 1.0, "MB"))
    for line in rows:
        if options.json:
            print(json.dumps(line))
        else:
            goal = f"  (target {line['target']})" if line["target"] else ""
            figures_text = f"{line['ours']:>9} {line['peer']:>9} {line['unit']}"
            print(f"{line['name']:26} {figures_text}  x{line['ratio']}{goal}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
