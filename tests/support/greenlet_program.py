"""Programs that switch between greenlets at random, and the slices that they must have.

A program computes for given times, calls functions and generators, and creates, switches to, kills
and drops greenlets, on several threads. For each time of computing it prints the begin, the end,
the thread, and the functions on the stack. At the middle of that time the thread must have slices
of these functions, and of no others.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from tests.support.recorded import record
from tests.support.timed_program import Trace

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.timed_program import Slice

PROGRAM = '''
import greenlet, itertools, json, random, sys, threading, time

SPINS = []

def now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)

def callers(frame):
    while frame:
        yield frame.f_code.co_name
        frame = frame.f_back

def spin(ms):
    begin = now()
    while time.clock_gettime_ns(time.CLOCK_BOOTTIME) - begin < ms * 1_000_000:
        pass
    SPINS.append((begin, now(), threading.get_native_id(), [*callers(sys._getframe())]))

class Killed(Exception):
    pass

class World:
    """The greenlets of a thread."""
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.left = 100
        self.greenlets = []
        self.main = greenlet.getcurrent()

    def others(self):
        here = greenlet.getcurrent()
        return [g for g in (*self.greenlets, self.main) if g and g is not here]

def f0(world, depth): act(world, depth)
def f1(world, depth): act(world, depth)
def g0(world, depth): act(world, depth)

def generator(world, depth):
    yield
    act(world, depth)
    yield

def raises(world, depth):
    act(world, depth)
    raise KeyError

def nest(world, depth):
    kind = world.random.choice((f0, f1, g0, generator, raises))
    if kind is generator:
        for _ in generator(world, depth):
            spin(0.5)
    elif kind is raises:
        try:
            raises(world, depth)
        except KeyError:
            pass
    else:
        kind(world, depth)

def create(world):
    if len(world.greenlets) < 12:
        world.greenlets.append(greenlet.greenlet(body))
        world.greenlets[-1].switch(world)

def switch(world):
    if others := world.others():
        world.random.choice(others).switch()

def kill(world):
    others = [g for g in world.others() if g is not world.main]
    if not others:
        return
    error = world.random.choice((Killed, greenlet.GreenletExit))
    try:
        world.random.choice(others).throw(error)
    except Killed:
        pass

def drop(world):
    if world.greenlets:
        world.greenlets.pop(world.random.randrange(len(world.greenlets)))

ACTIONS = 6 * ["spin", "nest"] + 2 * ["create", "switch", "switch"] + ["kill", "drop"]

def act(world, depth):
    for _ in range(world.random.randint(1, 6)):
        world.left -= 1
        if world.left < 0:
            return
        does = world.random.choice(ACTIONS)
        if does == "spin":
            spin(world.random.choice((0.02, 1, 3, 8)))
        elif does == "nest":
            if depth < 6:
                nest(world, depth + 1)
        else:
            globals()[does](world)

def body(world):
    try:
        act(world, 0)
    except Killed:
        pass

def thread(seed):
    world = World(seed)
    while world.left > 0:
        try:
            act(world, 0)
        except Killed:
            pass
    spin(20)

def main(seed, count):
    threads = [threading.Thread(target=thread, args=(1000 * seed + i,)) for i in range(1, count)]
    for each in threads:
        each.start()
    thread(1000 * seed)
    for each in threads:
        each.join()
'''

FUNCTIONS = {"main", "thread", "body", "act", "spin", "f0", "f1", "g0", "generator", "raises"}
SHORTEST_NS = 400_000
"""Shorter times of computing are not checked: the clocks differ, and the thread may be stopped."""


class Spin(NamedTuple):
    """A time in which a thread computed, and the functions on its stack, the innermost first."""

    begin: int
    end: int
    tid: int
    callers: list[str]

    @property
    def middle(self) -> int:
        return (self.begin + self.end) // 2

    def names(self) -> list[str]:
        """Return the functions that may have slices, the outermost first."""
        return [name for name in reversed(self.callers) if name in FUNCTIONS]


class GreenletTrace(Trace):
    """The slices of a program with greenlets."""

    spins: list[Spin]

    def calls_at(self, spin: Spin) -> list[str]:
        """Return the names of the slices in the middle of a spin, the outermost first."""
        found = [s for s in self._by_tid()[spin.tid] if s.begin <= spin.middle < s.end]
        names = [slice_.name for slice_ in sorted(found, key=lambda s: (s.begin, s.id))]
        return [name for name in names if name in FUNCTIONS]

    def _by_tid(self) -> dict[int, list[Slice]]:
        if not hasattr(self, "_slices_by_tid"):
            self._slices_by_tid: dict[int, list[Slice]] = defaultdict(list)
            for slice_ in self.slices:
                self._slices_by_tid[slice_.tid].append(slice_)
        return self._slices_by_tid


def recorded_greenlets(folder: Path, source: str, *options: str) -> GreenletTrace:
    """Record a program that uses the functions of PROGRAM."""
    script = folder / "program.py"
    script.write_text(f"{PROGRAM}\n{source}\njson.dump(SPINS, sys.stdout)\n")
    run = record(folder / "trace.pftrace", *options, str(script))
    trace = GreenletTrace(run)
    spins = [Spin(*spin) for spin in json.loads(run.stdout)]
    trace.spins = [spin for spin in spins if spin.end - spin.begin >= SHORTEST_NS]
    return trace
