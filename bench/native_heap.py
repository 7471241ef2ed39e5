"""Measures what the library of `stretto record --native-heap` costs a program.

    python bench/native_heap.py [--json] [--rounds N]

malloc INTERVAL    a C program that does nothing but malloc and free, at a sampling interval
                   of 64 KiB and of 4 KiB
malloc off         the same with the library, without samples: what the detour of the calls costs
python INTERVAL    the program of bench/heap.py, with all objects from malloc (PYTHONMALLOC=malloc)

A figure is the CPU time of the process relative to that of the bare program: the median of ratios
of neighbours in a random order. The peer is the limit.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from _row import Row
from heap import run

from stretto.recorder.host.workspace_folder import MALLOC_LIBRARY, MALLOC_VARIABLE

INTERVALS = {"64k": 64 << 10, "4k": 4 << 10, "off": 0, "bare": 0}
LIMITS = {
    "malloc 64k": 1.3, "malloc 4k": 2.0, "malloc off": 1.2, "python 64k": 1.1, "python 4k": 1.3,
}  # fmt: skip
HERE = Path(__file__).parent


def environment(state: str, folder: str) -> dict[str, str]:
    """Return the variables for a state: bare, off, or an interval."""
    variables = {"PYTHONMALLOC": "malloc"}
    if state != "bare":
        variables["LD_PRELOAD"] = MALLOC_LIBRARY
    if INTERVALS[state]:
        variables[MALLOC_VARIABLE] = f"{INTERVALS[state]}:{folder}"
    return variables


def ratios(command: list[str], states: list[str], rounds: int) -> dict[str, float]:
    """Return the CPU time of a command in each state, relative to bare."""
    found: dict[str, list[float]] = {state: [] for state in states}
    for _ in range(rounds):
        for state in random.sample(states, len(states)):
            times = {}
            for each in random.sample(["bare", state], 2):
                with tempfile.TemporaryDirectory() as folder:
                    variables = environment(each, folder)
                    times[each], _ = run(["env", *map("=".join, variables.items()), *command])
            found[state].append(times[state] / times["bare"])
    return {state: median(each) for state, each in found.items()}


def measure(rounds: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "malloc")
        source = os.fspath(HERE / "_malloc.c")
        subprocess.run(["cc", "-O2", "-fno-builtin", "-o", program, source], check=True)
        found = {
            f"malloc {state}": ratio
            for state, ratio in ratios([program], ["64k", "4k", "off"], rounds).items()
        }
    python = [sys.executable, os.fspath(HERE / "heap.py"), "--run", "bare"]
    states = ratios(python, ["64k", "4k"], rounds)
    found |= {f"python {state}": ratio for state, ratio in states.items()}
    return [Row(f"native heap {name}", found[name], LIMITS[name], "x bare") for name in LIMITS]


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    for row in measure(options.rounds):
        text = f"{row.name:<24} {row.ours:>12.3f} {row.peer:>12.3f} {row.unit}"
        print(row.as_json() if options.json else text)


if __name__ == "__main__":
    main()
