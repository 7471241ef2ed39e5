"""Measures the cost of a connection to a tracing service while no session records.

    python bench/always_on.py [--json] [--rounds N]

connected_idle/not_connected    an instrumented function with an idle service connected, relative
                                to the same function without a connection
after_functions/not_connected   the same function with a connection, after a session has recorded
                                its calls, relative to the function without a connection
autostart_absent/limit          the .pth file at interpreter start while STRETTO_CONNECT is not
                                set, relative to its maximal cost

Each round measures all states; figures are medians, over the rounds, of the calling thread's CPU
time. `target` is the maximum of `ratio`, which is 1 plus the noise of a shared machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import stretto
from stretto.cli.autostart import LINE
from stretto.protos.config import DataSourceConfig, TraceConfig, TrackEventConfig

CALLS = 100_000
REPEATS = 5
STARTS = 25
AUTOSTART_LIMIT_US = 100.0
DEADLINE_S = 30.0
IDLE_TARGET = 1.03

app = stretto.Category("bench")

PTH = """
import os, site, sys, time
os.environ.pop("STRETTO_CONNECT", None)
begin = time.thread_time_ns()
site.addpackage(sys.argv[1], "stretto-autostart.pth", set())
print(time.thread_time_ns() - begin)
"""


def helper(number: int) -> int:
    return number + 1


@app.traced
def handle(number: int) -> int:
    """Record a slice that contains another slice and an instant."""
    with app.slice("work", number=number):
        app.instant("step")
        return helper(number)


def per_call() -> float:
    """Return the CPU time of a call in ns: the minimum of several runs."""
    best = float("inf")
    for _ in range(REPEATS):
        begin = time.thread_time_ns()
        for number in range(CALLS):
            handle(number)
        best = min(best, (time.thread_time_ns() - begin) / CALLS)
    return best


def connect() -> None:
    connection = stretto.connect()
    deadline = time.monotonic() + DEADLINE_S
    while not connection.connected:
        if time.monotonic() > deadline:
            raise SystemExit(f"always_on: not connected: {connection.problem}")
        time.sleep(0.01)


def trace_functions() -> None:
    """Run a session that records every function call."""
    events = TrackEventConfig(enabled_categories=["python.functions"])
    source = DataSourceConfig(name="track_event", track_event_config=events)
    config = TraceConfig(
        buffers=[TraceConfig.BufferConfig(size_kb=1024)],
        data_sources=[TraceConfig.DataSource(config=source)],
    )
    with stretto.TracingSession(config, backend="system"):
        handle(1)
    functions = stretto.Category("python.functions")
    while functions.enabled:
        time.sleep(0.001)
    handle(1)


def measure_round() -> dict[str, float]:
    figures = {"not_connected": per_call()}
    connect()
    figures["connected_idle"] = per_call()
    trace_functions()
    figures["after_functions"] = per_call()
    stretto.disconnect()
    return figures


def autostart_us() -> float:
    """Return the time in us that the .pth file adds to one interpreter start."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "stretto-autostart.pth").write_text(LINE)
        command = [sys.executable, "-c", PTH, folder]
        times = [int(subprocess.check_output(command)) for _ in range(STARTS)]
    return median(times) / 1000


def row(name: str, ours: float, peer: float, unit: str, target: float) -> dict[str, object]:
    return {
        "name": name,
        "ours": round(ours, 2),
        "peer": round(peer, 2),
        "unit": unit,
        "ratio": round(ours / peer, 3),
        "target": target,
    }


def make_rows(rounds: int) -> list[dict[str, object]]:
    figures: dict[str, list[float]] = {}
    for _ in range(rounds):
        for state, ns in measure_round().items():
            figures.setdefault(state, []).append(ns)
    idle, before, after = (
        median(figures[state]) for state in ("connected_idle", "not_connected", "after_functions")
    )
    return [
        row("connected_idle/not_connected", idle, before, "ns", IDLE_TARGET),
        row("after_functions/not_connected", after, before, "ns", IDLE_TARGET),
        row("autostart_absent/limit", autostart_us(), AUTOSTART_LIMIT_US, "us", 1.0),
    ]


def with_service(rounds: int) -> list[dict[str, object]]:
    """Measure all rows, with a tracing service that no other program uses."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PERFETTO_PRODUCER_SOCK_NAME"] = f"{folder}/producer"
        os.environ["PERFETTO_CONSUMER_SOCK_NAME"] = f"{folder}/consumer"
        service = subprocess.Popen(
            [sys.executable, "-m", "stretto", "traced"], stderr=subprocess.DEVNULL
        )
        try:
            return make_rows(rounds)
        finally:
            service.terminate()
            service.wait()


def main() -> int:
    """Measure all rows and print them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON object per row")
    parser.add_argument("--rounds", type=int, default=5, help="rounds through all states")
    options = parser.parse_args()
    for line in with_service(options.rounds):
        if options.json:
            print(json.dumps(line))
        else:
            print(
                f"{line['name']:32} {line['ours']:>9} {line['peer']:>9} {line['unit']}  "
                f"x{line['ratio']}  (target {line['target']})"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
