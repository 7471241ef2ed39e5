"""The settings of a profile."""

from __future__ import annotations

from typing import NamedTuple

from stretto.profilers.sampling.process import CPU, GIL, PERF_SAMPLE, WALL

SOURCES = {CPU: "python.cpu", WALL: "python.wall", GIL: "python.gil"}
"""The names of the data sources, by mode."""


class Settings(NamedTuple):
    """What is sampled, and how often.

    Attributes:
        mode: CPU, WALL or GIL of `process`.
        period_ns: The time between two samples.
        children: Whether child processes are sampled, too.
        numbered: Whether the packets have sequence ids; else the writer has to add them.
        form: PERF_SAMPLE or STACK_SAMPLE of `process`.
        native: Whether samples have C functions, too; threads that run are stopped for that.
    """

    mode: int
    period_ns: int
    children: bool = True
    numbered: bool = True
    form: int = PERF_SAMPLE
    native: bool = False
