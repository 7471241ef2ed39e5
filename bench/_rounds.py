"""Compares states of a program whose difference is smaller than the machine's noise.

Threads, sockets, connections and their cores stay the same; only the compared state is switched,
after a few calls. A round consists of many blocks of calls, in random order. The figure of a state
in a round is the median of the state's calls. The cost that one state adds to another is the
median, over the rounds, of the difference between the figures of both. Each round creates all
objects again, because the memory addresses of objects change the figures by some us.
"""

from __future__ import annotations

import random
import time
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

BLOCKS = 20
CALLS = 5


class State(NamedTuple):
    """One of the states of the program that are compared, such as traced and untraced."""

    measure: Callable[[int], list[int]]
    """Takes a number of calls; makes them and returns the ns of each."""
    enter: Callable[[], object] = lambda: None
    """Switches to the state."""


def timed(call: Callable[[], object]) -> Callable[[int], list[int]]:
    """Return a function that makes `count` calls and returns the time of each call in ns."""

    def measure(count: int) -> list[int]:
        clock = time.perf_counter_ns
        figures = []
        for _ in range(count):
            begin = clock()
            call()
            figures.append(clock() - begin)
        return figures

    return measure


class Rounds:
    """Runs rounds. Keeps the time per call in each state, for each round."""

    def __init__(self) -> None:
        self._us: dict[str, list[float]] = {}

    def run(self, states: dict[str, State]) -> None:
        """Measure one round of the given states."""
        figures: dict[str, list[int]] = {name: [] for name in states}
        names = list(states)
        for _ in range(BLOCKS):
            random.shuffle(names)
            for name in names:
                state = states[name]
                state.enter()
                state.measure(1)  # the cost of switching the state is not measured
                figures[name] += state.measure(CALLS)
        for name, ns in figures.items():
            self._us.setdefault(name, []).append(median(ns) / 1000)

    def us(self, name: str) -> float:
        """Return a state's time per call in us: the median of all rounds."""
        return median(self._us[name])

    def added(self, name: str, base: str) -> float:
        """Return how many us a call takes longer in the state `name` than in `base`."""
        return median(a - b for a, b in zip(self._us[name], self._us[base], strict=True))
