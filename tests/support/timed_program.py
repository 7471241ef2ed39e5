"""Programs whose calls take known times, and the slices that auto detail records of them.

A program sleeps or computes for given times, none of them near a threshold. It prints each call of
20 ms and more with its times and its callers, and the times of the recorder's looks. A look reads
the stacks of the program's threads once. Where the recorder could not look for long, the trace
has the instant `no stack samples`, or `no stack samples of this thread`.
"""

from __future__ import annotations

import bisect
import itertools
import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from hypothesis import strategies as st

from stretto.analysis.trace_tables import import_trace
from tests.support.recorded import Run, record

if TYPE_CHECKING:
    from pathlib import Path

LONG_NS = 20_000_000
SECOND_LOOK_NS = 50_000
PAUSE_NS = 1_000_000
"""The pauses between two rounds of looks are longer."""
CLOCK_NS = 100
"""The recorder's clock differs from the program's by less (native/core/fast_clock.h)."""
SAMPLED_NS = 20_000_000
"""A thread has two samples in this time, or the trace says that it has a gap of 10 ms there."""
GAPS = ("no stack samples", "no stack samples of this thread")

PRELUDE = '''
import json, sys, threading, time

LONG = []
LOOKS = set()
HOOKS = sys.modules["stretto._pyhooks"]

def now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)

def callers(frame):
    while frame:
        yield frame.f_code.co_name
        frame = frame.f_back

def note_looks(last=[0]):
    """Keep the times of the looks at the stacks, before the recorder forgets them."""
    if now() - last[0] > 200_000_000:
        last[0] = now()
        LOOKS.update(HOOKS.looks())

def timed(name, *step):
    before = now()
    begin, end = globals()[name](*step)
    after = now()
    if end - begin >= 20_000_000:
        above = [*callers(sys._getframe())]
        LONG.append((name, before, begin, end, after, threading.get_native_id(), above))
    note_looks()

def body(name, depth, seconds, inner, kind):
    begin = now()
    if seconds and kind == "sleep":
        time.sleep(seconds)  # sleep: the recorded duration of the call
    elif seconds and kind == "burn":
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            pass
    elif seconds:
        try:
            time.sleep(seconds)  # sleep: the recorded duration of the call
            raise KeyError(kind)
        except KeyError:
            pass
    for step in inner:
        timed(*step)
    return begin, now()

# f0 and f1 call functions of other names: the name of a slice tells its depth.
def f0(*step): return body("f0", *step)
def f1(*step): return body("f1", *step)
def g0(*step): return body("g0", *step)
def g1(*step): return body("g1", *step)
def h0(*step): return body("h0", *step)
def h1(*step): return body("h1", *step)

def warm_up(names, count):
    """Many short calls: the functions are switched off."""
    for name in names:
        function = globals()[name]
        arguments = (("body",) if name == "body" else ()) + (0, 0, (), "warm")
        for _ in range(count):
            function(*arguments)
    time.sleep(0.005)  # sleep: the recorded duration of the call

def main(program):
    warm_up(program["warm"], program["count"])
    threads = [threading.Thread(target=run, args=(steps,)) for steps in program["threads"]]
    for thread in threads:
        thread.start()
    run(program["steps"])
    for thread in threads:
        thread.join()
    LOOKS.update(HOOKS.looks())
    json.dump({"long": LONG, "looks": sorted(LOOKS)}, sys.stdout)

def run(steps):
    for step in steps:
        timed(*step)
'''

NAMES = ("f0", "f1", "g0", "g1", "h0", "h1")
FRAMES = {*NAMES, "timed", "body", "run"}
DURATIONS = (0.0, 0.0003, 0.0025, 0.005, 0.03, 0.06)


def steps(depth: int = 0) -> st.SearchStrategy[list[Any]]:
    """Return a strategy of call trees."""
    inner: st.SearchStrategy[list[Any]] = st.just([]) if depth == 2 else steps(depth + 1)
    step = st.tuples(
        st.sampled_from(NAMES[2 * depth : 2 * depth + 2]),
        st.just(depth),
        st.sampled_from(DURATIONS),
        inner,
        st.sampled_from(("sleep", "burn", "raise")),
    )
    return st.lists(step, min_size=1 if not depth else 0, max_size=3)


PROGRAMS = st.fixed_dictionaries(
    {
        "warm": st.lists(st.sampled_from((*NAMES, "body")), unique=True),
        "count": st.sampled_from((10, 100_000)),
        "steps": steps(),
        "threads": st.lists(steps(1), max_size=3),
    }
)


class Call(NamedTuple):
    """A long call: it lasts from `begin` to `end` at least, from `before` to `after` at most."""

    name: str
    before: int
    begin: int
    end: int
    after: int
    tid: int
    callers: list[str]
    """The names of the functions on the stack, the innermost first."""

    def is_around(self, other: Call) -> bool:
        """Whether the other call is made in this one."""
        return self.tid == other.tid and self.begin < other.begin and other.end < self.end


class Slice(NamedTuple):
    """A slice that the recorder wrote for a function call."""

    id: int
    parent: int | None
    name: str
    begin: int
    end: int
    tid: int
    arguments: dict[str, int]

    @property
    def certain_begin(self) -> int:
        """The time at which the call was certainly open."""
        return self.begin + self.arguments.get("begins_up_to_ns_later", 0)

    def is_of(self, call: Call) -> bool:
        """Whether both have certainly been open at some moment."""
        return self.certain_begin < call.end and call.begin < self.end

    def fits(self, call: Call) -> bool:
        """Whether the slice lies in the call, and is as accurate as it says."""
        begin = self.begin - self.arguments.get("begins_up_to_ns_earlier", 0) - CLOCK_NS
        end = self.end + self.arguments.get("ends_up_to_ns_later", 0) + CLOCK_NS
        inside = call.before - CLOCK_NS <= self.certain_begin and self.end <= call.after + CLOCK_NS
        return inside and begin <= call.begin and call.end <= end


class Looks:
    """The begins and ends of the recorder's looks at the stacks of the program."""

    def __init__(self, looks: list[tuple[int, int]]) -> None:
        self.begins = [begin for begin, _ in looks]
        self.ends = [end for _, end in looks]

    def within(self, begin: int, end: int) -> list[tuple[int, int]]:
        """Return the looks that are completely within this time."""
        first = bisect.bisect_left(self.begins, begin)
        last = bisect.bisect_right(self.ends, end)
        return list(zip(self.begins[first:last], self.ends[first:last], strict=True))

    def chance(self, duration: float) -> float:
        """Return the probability that a round of looks begins within a call at a random time.

        A second look, which begins soon after the first one ends, is of the same round.
        """
        looks = zip(self.ends, self.begins[1:], strict=False)
        rounds = [begin for end, begin in looks if begin - end > PAUSE_NS]
        pauses = [later - begin for begin, later in itertools.pairwise(rounds)]
        return sum(min(pause, duration) for pause in pauses) / sum(pauses)

    def show(self, begin: int, end: int, apart: int = SECOND_LOOK_NS) -> bool:
        """Whether two looks are within a call of this time, and at least `apart` ns apart.

        If so, the call must be a slice, even if only looks can find it.
        """
        within = self.within(begin, end)
        return len(within) > 1 and within[-1][0] - within[0][1] >= apart


class Trace:
    """The slices of a recording, and what the program has printed."""

    def __init__(self, run: Run) -> None:
        assert run.status == 0, run.stderr
        self.run = run
        self.tables = import_trace(run.trace)
        self.arguments = self._arguments()
        self.slices = self._slices()
        self.by_id = {slice_.id: slice_ for slice_ in self.slices}
        self.by_name: dict[tuple[str, int], list[Slice]] = defaultdict(list)
        for slice_ in self.slices:
            self.by_name[slice_.name, slice_.tid].append(slice_)
        self.long: list[Call] = []
        self.looks = Looks([])
        self.gaps = self._gaps()
        self._check_stats()
        self._check_nesting()

    def names(self) -> set[str]:
        """Return the names of all slices and instants."""
        return {name for (name,) in self._rows("slice", "name")}

    def _rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        names, rows = self.tables.rows(table)
        chosen = [names.index(column) for column in columns]
        return [tuple(row[i] for i in chosen) for row in rows]

    def _arguments(self) -> dict[int, dict[str, int]]:
        sets: dict[int, dict[str, int]] = defaultdict(dict)
        for number, key, value in self._rows("__intrinsic_args", "arg_set_id", "key", "int_value"):
            sets[number][key.removeprefix("debug.")] = value
        return sets

    def _slices(self) -> list[Slice]:
        tracks = self._tids()
        columns = ("id", "parent_id", "name", "ts", "dur", "track_id", "category", "arg_set_id")
        rows = [row for row in self._rows("slice", *columns) if row[6] == "python.functions"]
        assert all(row[4] >= 0 for row in rows), "a slice has no end"
        return [
            Slice(*row[:3], row[3], row[3] + row[4], tracks[row[5]], self.arguments.get(row[7], {}))
            for row in rows
        ]

    def _tids(self) -> dict[int, int]:
        """Return the thread of each track of a thread."""
        tids = dict(self._rows("thread", "utid", "tid"))
        tracks = self._rows("__intrinsic_track", "id", "utid")
        return {track: tids[utid] for track, utid in tracks if utid is not None}

    def _gaps(self) -> dict[int | None, list[tuple[int, int]]]:
        """Return the times without a stack sample, begin and end: by thread; None for all."""
        tids, gaps = self._tids(), defaultdict(list)
        for name, end, track, args in self._rows("slice", "name", "ts", "track_id", "arg_set_id"):
            if name in GAPS:
                tid = tids[track] if name == GAPS[1] else None
                gaps[tid].append((end - self.arguments[args]["for_ns"], end))
        return gaps

    def _check_stats(self) -> None:
        rows = self._rows("stats", "name", "severity", "value")
        assert [row for row in rows if row[1] in ("error", "data_loss") and row[2]] == []

    def _check_nesting(self) -> None:
        ends: dict[tuple[int, int | None], int] = defaultdict(int)
        for slice_ in sorted(self.slices, key=lambda s: (s.begin, s.id)):
            assert ends[slice_.tid, slice_.parent] <= slice_.begin, "two slices overlap"
            ends[slice_.tid, slice_.parent] = slice_.end
            parent = self.by_id.get(slice_.parent) if slice_.parent is not None else None
            if parent is not None:
                assert parent.begin <= slice_.begin
                assert slice_.end <= parent.end

    def of(self, call: Call) -> Slice | None:
        """Return the slice of a call, by its name, time and thread; None if there is none."""
        found = [s for s in self.by_name[call.name, call.tid] if s.is_of(call)]
        assert len(found) < 2, f"several slices for {call}: {found}"
        return found[0] if found else None

    def gaps_in(self, call: Call) -> list[tuple[int, int]]:
        """Return the times without stack samples of the thread in this call, in order."""
        gaps = [*self.gaps[None], *self.gaps[call.tid]]
        return sorted(gap for gap in gaps if gap[0] < call.end and call.begin < gap[1])

    def above(self, slice_: Slice) -> list[Slice]:
        """Return the slices around a slice, the innermost first."""
        around = []
        while slice_.parent is not None and slice_.parent in self.by_id:
            slice_ = self.by_id[slice_.parent]
            around.append(slice_)
        return around

    def names_above(self, slice_: Slice) -> list[str]:
        """Return the names of the slices around a slice, the innermost first."""
        return [around.name for around in self.above(slice_)]

    def may_miss(self, call: Call) -> bool:
        """Whether the trace says that there were too few samples to find a call."""
        sampled, last = 0, call.begin
        for begin, end in self.gaps_in(call):
            sampled = max(sampled, begin - last)
            last = max(last, end)
        return last > call.begin and max(sampled, call.end - last) < SAMPLED_NS

    def check_long_calls(self, longer_than: int = LONG_NS) -> None:
        """Check that each call longer than this is a slice, and that its parent is its caller.

        On a busy machine the looks may come too late. So a call that the trace says was not sampled
        may have no slice.
        """
        for call in self.long:
            found = self.of(call)
            assert found is None or found.fits(call), (call, found)
            if call.end - call.begin <= longer_than:
                continue
            if found is None:
                assert self.may_miss(call), call
                continue
            above = [slice_.name for slice_ in self.above(found) if slice_.name in FRAMES]
            left = iter(call.callers)
            assert all(name in left for name in above), (call, above)
            callers = [self.of(other) for other in self.long if other.is_around(call)]
            assert {c.id for c in callers if c} <= {s.id for s in self.above(found)}, call


def recorded(folder: Path, program: dict[str, Any], *options: str) -> Trace:
    """Record a program with auto detail."""
    script = folder / "program.py"
    script.write_text(f"{PRELUDE}\nmain(json.loads({json.dumps(json.dumps(program))}))\n")
    run = record(folder / "trace.pftrace", "--auto", *options, str(script))
    trace = Trace(run)
    printed = json.loads(run.stdout)
    trace.long = [Call(*call) for call in printed["long"]]
    trace.looks = Looks(printed["looks"])
    return trace
