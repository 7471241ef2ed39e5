"""Measures how a batch of traces scales with processes.

    python bench/batch.py [--json] [--rounds N] [--traces N]

batch_2_processes   the time of a query on 100 traces of 50,000 slices, by one process and by two;
                    `ratio` compares two processes with one; `target` is its maximum

The rounds alternate; the figure is the median. The processes exist before the clock starts.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median

import stretto
from stretto.analysis import Batch

SLICES = 50_000
TARGET = 1 / 1.8
SQL = "select name, count(*) as n, sum(dur) as total from slice group by name"


def record(path: Path) -> None:
    category = stretto.Category("bench")
    with stretto.recording(path, buffer="64mb"):
        for number in range(SLICES // 2):
            with category.slice("request", number=number), category.slice("query"):
                pass


def seconds(batch: Batch) -> float:
    begin = time.perf_counter()
    batch.query(SQL).fetchall()
    return time.perf_counter() - begin


def measure(rounds: int, traces: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.pftrace"
        record(path)
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, spawn) as one, ProcessPoolExecutor(2, spawn) as two:
            batches = [Batch([path] * traces, executor=pool) for pool in (one, two)]
            for batch in batches:
                batch.query(SQL)
            times = [[seconds(batch) for batch in batches] for _ in range(rounds)]
    peer, ours = (median(each) for each in zip(*times, strict=True))
    ratio = median(b / a for a, b in times)
    return {
        "name": "batch_2_processes", "ours": ours, "peer": peer, "unit": "s",
        "ratio": ratio, "target": TARGET,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--traces", type=int, default=100)
    given = parser.parse_args()
    row = measure(given.rounds, given.traces)
    print(
        json.dumps(row)
        if given.json
        else f"1 process {row['peer']:.2f} s, 2 processes {row['ours']:.2f} s, "
        f"{row['ratio']:.2f} times the time"
    )


if __name__ == "__main__":
    main()
