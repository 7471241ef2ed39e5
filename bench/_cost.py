"""What an event costs a producer of bench/service.py: in its own process, and into a service.

    python bench/_cost.py

prints {"in_process": ns, "system": ns} of CPU time of the whole process, medians of rounds that
go through both. The service is the one that the environment names. Nobody wins by dropping: all
events must be in the traces.
"""

from __future__ import annotations

import json
import time
from statistics import median

import stretto
from stretto.protos.config import DataSourceConfig, TraceConfig, TrackEventConfig

EVENTS = 100_000
"""Fit into a producer's memory, even while the service does nothing."""
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
    """Ns of CPU time of one event, the loop around it included."""
    with stretto.TracingSession(trace_config(), backend=mode) as session:
        emit(1)  # describes the thread
        begin = time.process_time_ns()
        emit(EVENTS)
        ns = time.process_time_ns() - begin
        category.instant(NAME)
        session.stop()
        trace = session.read()
    found = trace.count(b"\x68\x02\x5a")  # needs state, is a track event
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
