"""Events are correct although more values are used, in random order, than the caches can hold."""

from __future__ import annotations

import asyncio
import ctypes
import random
import subprocess
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

import stretto
from stretto import _pyhooks
from tests.support.call_slices import BEGIN, recorded
from tests.support.recorded_events import record

pytestmark = pytest.mark.thorough

CATEGORY = stretto.Category("test.full_tables")

SEEDS = [0]


def shuffled(count: int, seed: int) -> list[int]:
    """Return each number below `count` twice, in random order."""
    numbers = 2 * list(range(count))
    random.Random(seed).shuffle(numbers)
    return numbers


@pytest.mark.parametrize("seed", SEEDS)
def test_arguments_are_correct_at_more_call_sites_than_the_cache_holds(seed: int) -> None:
    """Each call site has its own tuple of argument names; the cache has 32 entries."""
    scope: dict[str, Any] = {"instant": CATEGORY.instant}
    lines = [f"def at_{n}(): instant('e', a{n % 7}={n}, b{n}='{n}')" for n in range(500)]
    exec("\n".join(lines), scope)
    numbers = shuffled(500, seed)
    with record() as result:
        for n in numbers:
            scope[f"at_{n}"]()
    assert [event.args for event in result.events] == [
        {f"a{n % 7}": n, f"b{n}": str(n)} for n in numbers
    ]


@pytest.mark.parametrize("seed", SEEDS)
def test_constants_are_correct_with_more_templates_than_the_cache_holds(seed: int) -> None:
    """The cache of templates has 256 entries."""
    templates = [CATEGORY.template(f"t{n}", "value", constant=n) for n in range(1000)]
    numbers = shuffled(1000, seed)
    with record() as result:
        for n in numbers:
            templates[n].instant(-n)
    assert [(event.name, event.args) for event in result.events] == [
        (f"t{n}", {"value": -n, "constant": n}) for n in numbers
    ]


@pytest.mark.parametrize("seed", SEEDS)
def test_counter_tracks_are_correct_with_more_counters_than_the_cache_holds(seed: int) -> None:
    """The cache of counters has 4,096 entries; the cache of tracks per sequence has 64."""
    numbers = shuffled(4300, seed)
    with record() as result:
        for n in numbers:
            CATEGORY.counter(f"c{n}", n)
    tracks = {event.value: event.track for event in result.events}
    assert [event.value for event in result.events] == numbers
    assert [event.track for event in result.events] == [tracks[n] for n in numbers]
    assert len(set(tracks.values())) == 4300
    assert result.trace.count(b"c4299") >= 1


@pytest.mark.parametrize("seed", SEEDS)
def test_task_tracks_are_correct_with_more_tasks_than_the_cache_holds(seed: int) -> None:
    """The cache holds the tracks of 32 tasks per thread."""
    turns = random.Random(seed)

    async def work(number: int) -> None:
        for _ in range(10):
            CATEGORY.instant(f"task {number}")
            for _ in range(turns.randrange(4)):
                await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.gather(*(work(number) for number in range(200)))

    with record() as result:
        asyncio.run(main())
    tracks: dict[str, set[int]] = {}
    for event in result.events:
        tracks.setdefault(event.name, set()).add(event.track)
    assert len(result.events) == 2000
    assert all(len(found) == 1 for found in tracks.values())
    assert len(set.union(*tracks.values())) == len(tracks) == 200


@pytest.mark.parametrize("seed", SEEDS)
def test_function_names_are_correct_with_more_code_objects_than_the_cache_holds(seed: int) -> None:
    scope: dict[str, Any] = {}
    exec("\n".join(f"def f{n}(): pass" for n in range(4300)), scope)
    numbers = shuffled(4300, seed)
    with record() as result:
        for n in numbers:
            with CATEGORY._slice_for_code(scope[f"f{n}"].__code__):
                pass
    names = [event.name for event in result.events if event.kind == BEGIN]
    assert names == [f"f{n}" for n in numbers]


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


METH_NOARGS = 4
_c_function_type = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.c_void_p)


def c_functions(count: int) -> tuple[list[Callable[[], object]], object]:
    """Return C functions c0, c1, ..., and an object that must live longer than the functions."""

    @_c_function_type
    def returns_its_module(module: object, _unused: object) -> object:
        return module

    address = ctypes.cast(returns_its_module, ctypes.c_void_p)
    made = ctypes.pythonapi.PyCFunction_NewEx
    made.restype = ctypes.py_object
    made.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    definitions = (_MethodDef * count)()
    functions = []
    for number, definition in enumerate(definitions):
        definition.name = f"c{number}".encode()
        definition.function = address.value
        definition.flags = METH_NOARGS
        functions.append(made(ctypes.addressof(definition), ModuleType("m"), None))
    return functions, (definitions, returns_its_module)


@pytest.mark.parametrize("seed", SEEDS)
def test_c_function_names_are_correct_with_more_functions_than_the_cache_holds(seed: int) -> None:
    """The cache of C functions holds 4,096 names."""
    functions, _alive = c_functions(4300)
    here = sys._getframe().f_code

    def program() -> None:
        for function in order:
            function()

    numbers = shuffled(4300, seed)
    order = [functions[n] for n in numbers]
    category = stretto.Category("test.full_tables")
    _pyhooks.stop()
    with recorded(category.name) as result:
        _pyhooks.start(
            category,
            accepts=lambda code, _module: code in (program.__code__, here),
            c_functions=True,
        )
        program()
        _pyhooks.stop()
    names = [event.name for event in result.events if event.type == BEGIN]
    assert [name for name in names if name[0] == "c"] == [f"c{n}" for n in numbers]


def test_number_of_categories_is_limited_and_even_the_last_one_records_events() -> None:
    program = """
import stretto
from tests.support.recorded_events import record
with record():
    pass  # The first recording creates the built-in categories.
made = []
try:
    while True:
        made.append(stretto.Category(f"test.{len(made)}"))
except ValueError as error:
    print(error)
with record() as result:
    for category in (*made[::-97], made[-1], made[0]):
        category.instant("x")
names = [event.category for event in result.events]
assert names == [category.name for category in (*made[::-97], made[-1], made[0])]
assert stretto.Category(made[-1].name) is made[-1]
assert 65_000 < len(made) < 65_536
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("too many categories (65535)")
