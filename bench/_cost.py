"""Measures the CPU time of an event, in process and with a service; for bench/service.py.

    python bench/_cost.py

prints {"in_process": ns, "system": ns}, the CPU time of the whole process per event. Each round
measures both; the figures are medians of the rounds. Environment variables name the service's
sockets. The program fails if a trace lacks events, so dropping events gives no advantage.
"""

from __future__ import annotations

import json
import time
from statistics import median

import stretto
from stretto.protos.config import DataSourceConfig, TraceConfig, TrackEventConfig

EVENTS = 100_000
"""These fit into a producer's shared memory, even if the service frees none of it."""
ROUNDS = 9
MODES = ("in_process", "system")
NAME = "cost of an event"

category = stretto.Category("bench.cost")


def trace_config() -> TraceConfig:
    events = TrackEventConfig(enabled_categories=[category.name], disabled_categories=["*"])
    source = DataSourceConfig(name="track_event", track_event_config=events)
    return TraceConfig(
        buffers=[TraceConfig.BufferConfig(size_kb=32 * 1024)],
        data_sources=[TraceConfig.DataSource(config=source)],
    )


def emit(count: int) -> None:
    instant = category.instant
    for _ in range(count):
        instant("event")


def per_event(mode: str) -> float:
    """Return the CPU time of one event in ns, including the loop."""
    with stretto.TracingSession(trace_config(), backend=mode) as session:
        emit(1)  # the first event also writes the descriptor of the thread
        begin = time.process_time_ns()
        emit(EVENTS)
        ns = time.process_time_ns() - begin
        category.instant(NAME)
        session.stop()
        trace = session.read()
    found = trace.count(b"\x68\x02\x5a")  # the encoded fields sequence_flags = 2 and track_event
    if found != EVENTS + 2:
        raise SystemExit(f"{mode}: wrote {EVENTS + 2} events, found {found}")
    return ns / EVENTS


def main() -> None:
    figures: dict[str, list[float]] = {mode: [] for mode in MODES}
    for mode in MODES:
        per_event(mode)
    for _ in range(ROUNDS):
        for mode in MODES:
            figures[mode].append(per_event(mode))
    print(json.dumps({mode: median(values) for mode, values in figures.items()}))


if __name__ == "__main__":
    main()
