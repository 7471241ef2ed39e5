"""Random traced programs, and a simple model of their traces.

A program is data: threads and asyncio tasks, each a nested list of steps. `run` executes it
with Stretto and collects the expected events. The argument `seq` of each event is a unique number.
"""

from __future__ import annotations

import asyncio
import threading
from itertools import count
from typing import Any

from hypothesis import strategies as st

import stretto

CATEGORIES = [
    stretto.Category("rp.alpha"),
    stretto.Category("rp.beta", "with a description", ["fine"]),
    stretto.Category("rp.slow", tags=["slow"]),
]
RECORDED = {"rp.alpha", "rp.beta"}
"""What a session records by default."""

_names = st.sampled_from(["load", "parse", "äöü", "a name with spaces", "x" * 300, "<lambda>"])
_keys = st.sampled_from(["a", "bb", "ccc", "key", "other"])
_text = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0"), max_size=20)
_plain = st.one_of(
    st.integers(-(2**80), 2**80),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.none(),
    _text,
    st.binary(max_size=8),
)
_values = st.recursive(
    _plain,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3),
        st.dictionaries(_keys, inner, min_size=1, max_size=3),
    ),
    max_leaves=6,
)
_arguments = st.dictionaries(_keys, _values, max_size=3)
_category = st.integers(0, len(CATEGORIES) - 1)
_leaves = st.one_of(
    st.tuples(st.just("instant"), _category, _names, _arguments),
    st.tuples(
        st.just("counter"),
        _category,
        st.sampled_from(["queue", "load"]),
        st.one_of(st.integers(-(2**40), 2**40), st.floats(-1e9, 1e9)),
    ),
    st.tuples(st.just("pause")),
    st.tuples(st.just("flow"), _category, st.integers(0, 3)),
)
_steps = st.recursive(
    _leaves,
    lambda inner: st.one_of(
        st.tuples(st.just("slice"), _category, _names, _arguments, st.lists(inner, max_size=4)),
        st.tuples(
            st.just("track"), _category, _names, st.integers(0, 2), st.lists(inner, max_size=3)
        ),
    ),
    max_leaves=12,
)
_body = st.lists(_steps, max_size=6)
programs = st.fixed_dictionaries(
    {
        "main": _body,
        "threads": st.lists(_body, max_size=3),
        "tasks": st.lists(_body, max_size=3),
    }
)


class Expected:
    """The expected content of the trace of a program."""

    def __init__(self) -> None:
        self.events: dict[int, tuple[Any, ...]] = {}
        """seq -> (name, category, seq of the enclosing slice, track or thread, arguments)."""
        self.counters: dict[str, list[float]] = {"queue": [], "load": []}
        self.flows: dict[int, list[int]] = {}
        """Flow -> the events that carry it, in order."""


def flatten(prefix: str, value: Any) -> dict[str, Any]:
    """Return an argument as the trace processor shows it: a dictionary of key paths and values."""
    if isinstance(value, dict):
        pairs = [(f"{prefix}.{key}", item) for key, item in value.items()]
    elif isinstance(value, list):
        pairs = [(f"{prefix}[{index}]", item) for index, item in enumerate(value)]
    else:
        return {prefix: shown(value)}
    return {key: leaf for pair in pairs for key, leaf in flatten(*pair).items()}


def shown(value: Any) -> Any:
    """Return the value that the trace processor shows for a simple value."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else str(value)
    if value is None:
        return "None"
    return repr(value) if isinstance(value, bytes) else value


class Runner:
    """Runs the steps of one thread or task."""

    def __init__(self, program: Program, where: str) -> None:
        self.program = program
        self.where = where

    def note(self, name: str, category: int, parent: int | None, arguments: dict[str, Any]) -> int:
        seq = next(self.program.numbers)
        chosen = CATEGORIES[category].name
        if chosen in RECORDED:
            flat = flatten("debug", {**arguments, "seq": seq}) if arguments else {"debug.seq": seq}
            self.program.expected.events[seq] = (name, chosen, parent, self.where, flat)
        return seq

    async def run(self, steps: list[Any], parent: int | None) -> None:
        for step in steps:
            await getattr(self, step[0])(parent, *step[1:])

    async def pause(self, _parent: int | None) -> None:
        if self.program.in_task(self):
            await asyncio.sleep(0)

    async def instant(
        self, parent: int | None, category: int, name: str, arguments: dict[str, Any]
    ) -> None:
        seq = self.note(name, category, parent, arguments)
        CATEGORIES[category].instant(name, seq=seq, **arguments)

    async def counter(self, _parent: int | None, category: int, name: str, value: float) -> None:
        with self.program.lock:
            CATEGORIES[category].counter(name, value)
            if CATEGORIES[category].name in RECORDED:
                self.program.expected.counters[name].append(float(value))

    async def flow(self, parent: int | None, category: int, flow: int) -> None:
        with self.program.lock:
            seq = self.note("hop", category, parent, {})
            with CATEGORIES[category].slice("hop", seq=seq, flow=self.program.flows[flow]):
                pass
            if seq in self.program.expected.events:
                self.program.expected.flows.setdefault(flow, []).append(seq)

    async def slice(
        self,
        parent: int | None,
        category: int,
        name: str,
        arguments: dict[str, Any],
        inner: list[Any],
    ) -> None:
        seq = self.note(name, category, parent, arguments)
        recorded = seq in self.program.expected.events
        with CATEGORIES[category].slice(name, seq=seq, args=arguments):
            await self.run(inner, seq if recorded else parent)

    async def track(
        self, _parent: int | None, category: int, name: str, track: int, inner: list[Any]
    ) -> None:
        """Write BEGIN on a new track, run the steps on the thread's track, and write END."""
        where = f"{self.where} track {track} {next(self.program.numbers)}"
        row = stretto.Track(where)
        elsewhere = Runner(self.program, where)
        seq = elsewhere.note(name, category, None, {})
        CATEGORIES[category].begin(name, track=row, seq=seq)
        await self.run(inner, _parent)
        CATEGORIES[category].end(track=row)


class Program:
    """A random program, given as data."""

    def __init__(self, source: dict[str, Any]) -> None:
        self.source = source
        self.numbers = count(1)
        self.expected = Expected()
        self.lock = threading.RLock()
        self.flows = [stretto.Flow() for _ in range(4)]
        self.tasks: set[Runner] = set()

    def in_task(self, runner: Runner) -> bool:
        return runner in self.tasks

    def run(self) -> Expected:
        """Run the program; return the expected content of the trace."""
        self._run_here("MainThread", self.source["main"])
        threads = [
            threading.Thread(target=self._run_here, args=(f"worker {n}", body), name=f"worker {n}")
            for n, body in enumerate(self.source["threads"])
        ]
        if self.source["tasks"]:
            threads.append(threading.Thread(target=self._run_tasks, name="loop"))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self.expected

    def _run_here(self, where: str, body: list[Any]) -> None:
        coroutine = Runner(self, where).run(body, None)
        try:
            coroutine.send(None)
        except StopIteration:
            return
        raise AssertionError("a body outside of a task was suspended")

    def _run_tasks(self) -> None:
        async def main() -> None:
            await asyncio.gather(*(self._task(body) for body in self.source["tasks"]))

        asyncio.run(main())

    async def _task(self, body: list[Any]) -> None:
        runner = Runner(self, "Program._task")
        self.tasks.add(runner)
        await runner.run(body, None)
