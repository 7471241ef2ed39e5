"""Traces of a program have the same names, nesting and counts on each CPython version.

`make versions` runs these tests with each CPython that `tools/pythons` finds and that
`make install` has been run for. The programs avoid known differences between interpreters:
comprehensions are calls on CPython 3.11 only, and on 3.13 `close` doesn't run a generator that
has no exception handler. Coroutines of asyncio itself aren't compared: their children count as
children of their caller.
"""

from __future__ import annotations

import functools
import itertools
import os
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.oracle import Oracle, missing
from tests.support.sources import ROOT

VERSIONS = ("3.11", "3.12", "3.13", "3.14", "3.15")
WORK = ROOT / "build" / "versions"
TIMEOUT_S = 120

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif("STRETTO_VERSIONS" not in os.environ, reason="`make versions` runs it"),
]

FUNCTIONS = """
import functools

def leaf(number): return number + 1

def recursive(depth): return recursive(depth - 1) if depth else leaf(0)

class Thing:
    def __init__(self): self.value = leaf(1)
    @property
    def doubled(self): return leaf(self.value)
    @classmethod
    def made(cls): return cls()
    @staticmethod
    def free(): return leaf(2)
    def __enter__(self): return self
    def __exit__(self, *error): leaf(3)
    def __call__(self, number): return leaf(number)

def outer():
    def inner(): return leaf(4)
    return inner

@functools.cache
def cached(number): return leaf(number)

with Thing.made() as thing:
    thing.doubled, Thing.free(), thing(5), outer()()
for _ in range(3): recursive(5), cached(1)
sorted([3, 1, 2], key=lambda number: leaf(number))
list(map(leaf, range(4)))
class Sub(Thing):
    def __init__(self): super().__init__()
Sub()
"""

THREADS = """
import threading
from concurrent.futures import ThreadPoolExecutor

def leaf(number): return number + 1
def work(number):
    for _ in range(number): leaf(number)

threads = []
for number in range(3): threads.append(threading.Thread(target=work, args=(number + 1,)))
for thread in threads: thread.start()
for thread in threads: thread.join()
with ThreadPoolExecutor(1) as pool: list(pool.map(work, range(5)))
"""

ASYNCIO = """
import asyncio, logging

def leaf(): return 1
async def step(number):
    for _ in range(number):
        leaf()
        await asyncio.sleep(0)
    return number

async def generates():
    for number in range(3):
        yield leaf()
        await asyncio.sleep(0)

async def fails():
    await asyncio.sleep(0)
    raise ValueError

async def waits(): await asyncio.Event().wait()

async def main():
    await asyncio.gather(step(1), step(2))
    async for _ in generates(): leaf()
    async with asyncio.TaskGroup() as group:
        group.create_task(step(2))
        group.create_task(step(3))
    try: await asyncio.create_task(fails())
    except ValueError: leaf()
    waiting = asyncio.create_task(waits())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    logging.getLogger("test").warning("logged")

asyncio.run(main())
"""

EXCEPTIONS = """
def leaf(): return 1
def raises(): raise KeyError("key")
def passes_on():
    try: raises()
    finally: leaf()
def translates():
    try: passes_on()
    except KeyError as error: raise ValueError from error
def catches():
    for _ in range(3):
        try: translates()
        except ValueError: leaf()
def catches_groups():
    try: raise ExceptionGroup("several", [ValueError(), KeyError()])
    except* ValueError: leaf()
    except* KeyError: leaf()
def returns_in_finally():
    try: return leaf()
    finally: leaf()
catches(), catches_groups(), returns_in_finally()
raises()
"""

GENERATORS = """
def leaf(): return 1
def counts(limit):
    for number in range(limit):
        leaf()
        yield number
    return limit
def delegates(): return (yield from counts(3))
def echoes():
    sent = None
    while True:
        try: sent = yield sent
        except KeyError: leaf()
        except GeneratorExit: return leaf()
list(counts(3)), list(delegates()), sum(number for number in counts(2))
echo = echoes()
next(echo), echo.send(1), echo.throw(KeyError), echo.close()
"""

FORK = """
import os
def leaf(number): return number + 1
def in_child():
    leaf(1)
    os._exit(0)
def in_parent(pid):
    leaf(2)
    os.waitpid(pid, 0)
def forks():
    if (pid := os.fork()): in_parent(pid)
    else: in_child()
for _ in range(2): forks()
"""

SPAWN = """
import multiprocessing
def leaf(number): return number + 1
def work(number):
    for _ in range(3): leaf(number)
    return number
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=work, args=(1,))
    process.start()
    process.join()
"""

PROGRAMS = {
    "functions": FUNCTIONS, "threads": THREADS, "asyncio": ASYNCIO, "exceptions": EXCEPTIONS,
    "generators": GENERATORS, "fork": FORK, "spawn": SPAWN,
}  # fmt: skip

SLICES = """
select slice.id, ifnull(slice.parent_id, -1), slice.name, slice.category, track_id,
       ifnull(thread.upid, ifnull(process_track.upid, -1))
from slice
left join thread_track on slice.track_id = thread_track.id
left join thread using (utid)
left join process_track on slice.track_id = process_track.id
order by ts, slice.id
"""

Tree = tuple[str, list["Tree"]]


@functools.cache
def pythons() -> dict[str, list[str]]:
    """Return, by version, the command of each CPython for which the package is installed."""
    found = {}
    lines = subprocess.check_output([ROOT / "tools" / "pythons"], text=True).splitlines()
    for version, *rest in (line.split() for line in lines):
        command = [*rest[1:], f"build/venv-{version}/bin/python"]
        check = subprocess.run([*command, "-c", "import stretto"], cwd=ROOT, capture_output=True)
        if rest and check.returncode == 0:
            found[version] = command
    return found


@functools.cache
def detail(version: str) -> tuple[str, ...]:
    """Return the option that records every call, if `record` has one on this Python version."""
    command = [*pythons()[version], "-m", "stretto", "record", "--help"]
    text = subprocess.check_output(command, cwd=ROOT, text=True)
    return ("--full",) if "--full" in text else ()


@functools.cache
def structure(version: str, program: str) -> list[list[list[Tree]]]:
    """Record a program; return its slices as trees, per process and track."""
    WORK.mkdir(parents=True, exist_ok=True)
    script, trace = WORK / f"program_{program}.py", WORK / f"{program}-{version}.pftrace"
    script.write_text(PROGRAMS[program])
    command = [*pythons()[version], "-m", "stretto", "record", "-q", *detail(version)]
    options = ["--no-gc", "--no-counters", "--include", str(script), "-o", str(trace)]
    done = subprocess.run(
        [*command, *options, str(script)],
        cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    assert done.returncode == (1 if program == "exceptions" else 0), done.stderr
    oracle = Oracle(trace.read_bytes())
    assert oracle.errors() == []
    return _processes(oracle.query(SLICES))


def _processes(rows: list[tuple[Any, ...]]) -> list[list[list[Tree]]]:
    trees: dict[int, Tree] = {}
    processes: dict[int, dict[int, list[Tree]]] = {}
    for number, parent, name, category, track, process in rows:
        if name.startswith("asyncio.") and parent in trees:
            trees[number] = trees[parent]
            continue
        tree: Tree = (f"{category}: {name}", [])
        trees[number] = tree
        if parent in trees:
            trees[parent][1].append(tree)
        else:
            processes.setdefault(process, {}).setdefault(track, []).append(tree)
    return sorted(sorted(tracks.values(), key=repr) for tracks in processes.values())


@pytest.fixture(autouse=True, scope="module")
def _oracle() -> None:
    if reason := missing():
        pytest.skip(reason)


@pytest.mark.parametrize("version", VERSIONS)
def test_each_installed_cpython_version_is_found(version: str) -> None:
    if version not in pythons():
        pytest.skip(f"CPython {version} isn't here, or not built: `make install PYTHON=...`")


def _parametrized(test: Callable[..., None]) -> Any:
    pairs = pytest.mark.parametrize(("one", "other"), list(itertools.combinations(VERSIONS, 2)))
    return pytest.mark.parametrize("program", PROGRAMS)(pairs(test))


@_parametrized
def test_program_has_the_same_structure_on_two_cpython_versions(
    program: str, one: str, other: str
) -> None:
    for version in (one, other):
        if version not in pythons():
            pytest.skip(f"CPython {version} isn't here, or not built")
    assert structure(one, program)
    assert structure(one, program) == structure(other, program)
