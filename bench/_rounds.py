"""Comparing states of one thing where the machine is noisier than they differ.

Threads, sockets, connections and their places on cores stay the same; only what is compared is
switched, after every few calls. A round is many such blocks, in an order of chance; its figure
for a state is the median of the state's calls. What a state adds to another one is the median, over
the rounds, of the difference within the round. Each round makes its things anew: where they lie in
memory makes a difference of some us, too.
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
    """Something to be compared."""

    measure: Callable[[int], list[int]]
    """So many calls: the ns of each."""
    enter: Callable[[], object] = lambda: None
    """Switches to it."""


def timed(call: Callable[[], object]) -> Callable[[int], list[int]]:
    """How a call is measured that is just called."""

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
    """What was measured."""

    def __init__(self) -> None:
        self._us: dict[str, list[float]] = {}

    def run(self, states: dict[str, State]) -> None:
        """One round of states, by name."""
        figures: dict[str, list[int]] = {name: [] for name in states}
        names = list(states)
        for _ in range(BLOCKS):
            random.shuffle(names)
            for name in names:
                state = states[name]
                state.enter()
                state.measure(1)  # the first call pays for the switch
                figures[name] += state.measure(CALLS)
        for name, ns in figures.items():
            self._us.setdefault(name, []).append(median(ns) / 1000)

    def us(self, name: str) -> float:
        """Of a call."""
        return median(self._us[name])

    def added(self, name: str, base: str) -> float:
        """What a state adds to another one, in us a call."""
        return median(a - b for a, b in zip(self._us[name], self._us[base], strict=True))
