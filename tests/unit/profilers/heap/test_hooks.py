"""The hooks of Python's allocators: with an interval of 1 byte every allocation is sampled."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import tracemalloc
from typing import TYPE_CHECKING, NamedTuple

import pytest

from stretto import _pyhooks

if TYPE_CHECKING:
    from collections.abc import Iterator

RAW, MEM, OBJ = range(3)
SIZE = 1 << 20


class Row(NamedTuple):
    allocated: int
    freed: int
    samples: int
    samples_freed: int
    at_max: int
    samples_at_max: int


Stack = tuple[tuple[str, str, int], ...]
"""Of each frame, the outermost first: function, file, line."""


def stack_of(number: int) -> Stack:
    frames = (_pyhooks.heap_frame(frame) for frame in _pyhooks.heap_stack(number))
    return tuple((*_pyhooks.heap_function(function), line) for function, line in frames)


def rows(heap: int, *, everything: bool = True) -> dict[Stack, Row]:
    _, _, found = _pyhooks.heap_dump(heap, everything)
    return {stack_of(number): Row(*numbers) for number, *numbers in found}


def held(*, everything: bool = True) -> list[tuple[Stack, Row]]:
    """The rows of the heaps mem and obj: CPython versions differ in where buffers are."""
    found = (rows(heap, everything=everything) for heap in (MEM, OBJ))
    return [item for each in found for item in each.items()]


def of_function(name: str) -> Row:
    """The sums of the stacks whose innermost call is of this function."""
    found = [row for stack, row in held() if stack[-1][0] == name]
    return Row(*map(sum, zip(*found, strict=True))) if found else Row(0, 0, 0, 0, 0, 0)


@pytest.fixture
def every_byte() -> Iterator[None]:
    _pyhooks.heap_start(1)
    yield
    _pyhooks.heap_stop()


def make_block() -> bytearray:
    return bytearray(SIZE)


def grow(block: bytearray) -> None:
    block.extend(bytes(SIZE))


def make_objects(count: int) -> list[object]:
    return [object() for _ in range(count)]


@pytest.mark.usefixtures("every_byte")
class TestEveryByte:
    def test_block_is_counted_once_with_its_stack_and_line(self) -> None:
        block = make_block()
        assert len(block) == SIZE
        big = [(stack, row) for stack, row in held() if row.allocated > SIZE]
        assert len(big) == 1
        stack, row = big[0]
        line = make_block.__code__.co_firstlineno
        assert stack[-1] == ("make_block", __file__, line + 1)
        assert stack[-2][0].endswith("test_block_is_counted_once_with_its_stack_and_line")
        assert row.freed == 0
        # pymalloc takes large blocks from the domain raw, where they are not counted again.
        assert not any(stack[-1][0] == "make_block" for stack in rows(RAW))

    def test_free_is_counted_at_the_stack_of_the_allocation(self) -> None:
        block = make_block()
        before = of_function("make_block").freed
        del block
        after = of_function("make_block").freed
        assert after - before > SIZE

    def test_reallocation_moves_the_bytes_to_the_stack_that_asked_for_it(self) -> None:
        block = make_block()
        grow(block)
        made, grown = of_function("make_block"), of_function("grow")
        assert made.allocated - made.freed < SIZE
        assert grown.allocated - grown.freed > 2 * SIZE
        assert len(block) == 2 * SIZE

    def test_objects_are_counted(self) -> None:
        objects = make_objects(1000)
        # On CPython 3.11 a comprehension is a function of its own.
        made = [row for stack, row in rows(OBJ).items() if "make_objects" in stack[-1][0]]
        assert sum(row.samples for row in made) >= 1000
        assert sum(row.allocated for row in made) >= 1000 * sys.getsizeof(objects[0])

    def test_second_dump_has_what_changed(self) -> None:
        block = make_block()
        held()
        changed = held(everything=False)
        assert not any(stack[-1][0] == "make_block" for stack, _ in changed)
        del block
        changed = held(everything=False)
        assert any(stack[-1][0] == "make_block" for stack, _ in changed)

    def test_maximum_is_that_of_the_moment_when_most_was_live(self) -> None:
        blocks = [make_block(), make_block()]
        del blocks
        stack, row = max(held(), key=lambda item: item[1].at_max)
        assert stack[-1][0] == "make_block"
        assert row.at_max > 2 * SIZE

    def test_other_thread_has_its_own_stack(self) -> None:
        kept = []
        thread = threading.Thread(target=lambda: kept.append(make_block()))
        thread.start()
        thread.join()
        stacks = [stack for stack, _ in held() if stack[-1][0] == "make_block"]
        assert stacks
        assert all(stack[0][0] == "Thread._bootstrap" for stack in stacks)

    def test_deep_stack_keeps_its_innermost_calls(self) -> None:
        def descend(depth: int) -> bytearray:
            return make_block() if depth == 0 else descend(depth - 1)

        block = descend(600)
        stacks = [stack for stack, _ in held() if stack[-1][0] == "make_block"]
        deep = next(stack for stack in stacks if stack[-2][0].endswith("descend"))
        assert len(deep) == 512
        assert deep[0][0] == "[outer calls]"
        assert len(block) == SIZE

    def test_code_that_reuses_the_memory_of_another_one_is_not_taken_for_it(self) -> None:
        names = [f"function_{i:03}" for i in range(100)]
        for name in names:
            scope: dict[str, object] = {"SIZE": SIZE}
            exec(f"def {name}(): return bytearray(SIZE)", scope)
            function = scope[name]
            assert callable(function)
            function()
            del function, scope
        found = {stack[-1][0] for stack, _ in held()}
        assert found >= set(names)


def test_code_objects_are_not_kept_alive() -> None:
    import weakref

    _pyhooks.heap_start(1)
    try:
        scope: dict[str, object] = {}
        exec("def function(): return bytearray(100_000)", scope)
        function = scope.pop("function")
        assert callable(function)
        function()
        code = weakref.ref(function.__code__)
        del function
        assert code() is None
    finally:
        _pyhooks.heap_stop()


def test_stop_restores_the_allocators_and_a_second_profile_starts_at_zero() -> None:
    _pyhooks.heap_start(1)
    block = make_block()
    _pyhooks.heap_stop()
    block2 = make_block()
    assert held() == []
    _pyhooks.heap_start(1)
    try:
        del block, block2
        assert not of_function("make_block").freed
    finally:
        _pyhooks.heap_stop()


def test_second_profile_is_refused() -> None:
    _pyhooks.heap_start(1 << 16)
    try:
        with pytest.raises(RuntimeError, match="runs already"):
            _pyhooks.heap_start(1)
    finally:
        _pyhooks.heap_stop()
    with pytest.raises(ValueError, match="interval"):
        _pyhooks.heap_start(0)


def test_hooks_that_another_tool_has_wrapped_stay_and_pass_calls_on() -> None:
    _pyhooks.heap_start(1)
    tracemalloc.start()
    _pyhooks.heap_stop()
    try:
        block = make_block()
        assert tracemalloc.get_traced_memory()[0] > SIZE
        del block
        _pyhooks.heap_start(1)
        kept = make_block()
        assert of_function("make_block").allocated > SIZE
        _pyhooks.heap_stop()
        assert len(kept) == SIZE
    finally:
        tracemalloc.stop()
    _pyhooks.heap_start(1)
    _pyhooks.heap_stop()


def test_child_of_a_fork_can_start_a_profile_of_its_own() -> None:
    _pyhooks.heap_start(1)
    kept = make_block()
    pid = os.fork()
    if pid == 0:
        try:
            _pyhooks.heap_stop()
            _pyhooks.heap_start(1)
            os._exit(of_function("make_block").allocated > 0)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    _pyhooks.heap_stop()
    assert len(kept) == SIZE


ENDING = """
import hashlib, os, sys, threading
from stretto import _pyhooks
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

_pyhooks.heap_start(1)
class Last:
    def __del__(self):
        self.text = [str(i) for i in range(100)]
kept = Last()
cycle = [Last()]
cycle.append(cycle)
def run():
    for _ in range(50):
        hashlib.sha256(bytes(100_000)).hexdigest()
        [str(i) for i in range(300)]
threads = [threading.Thread(target=run, daemon=i == 0) for i in range(4)]
for thread in threads:
    thread.start()
for i in range(4):
    pid = os.fork()
    if pid == 0:
        _pyhooks.heap_stop()
        _pyhooks.heap_start(64)
        run()
        sys.exit(0) if i % 2 else os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
other = interpreters.create()
interpreters.run_string(other, "kept = [str(i) for i in range(1000)]")
interpreters.destroy(other)
for thread in threads[1:]:
    thread.join()
print("done")
"""


def test_sampled_process_ends_as_usual_with_threads_forks_and_interpreters() -> None:
    # The profile isn't stopped, and a daemon thread may run.
    command = [sys.executable, "-W", "ignore", "-c", ENDING]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_interval_doubles_when_samples_take_too_much_of_the_cpu_time() -> None:
    # Nearly all of this program's time goes into samples, as each byte is sampled.
    _pyhooks.heap_start(1, limit=1, max_interval=8)
    try:
        for _ in range(200):
            make_objects(1000)
            if _pyhooks.heap_stats()["interval"] == 8:
                break
        stats = _pyhooks.heap_stats()
    finally:
        _pyhooks.heap_stop()
    assert stats["interval"] == 8
    assert stats["slower"] == 3


def test_estimates_of_a_large_interval_are_near_the_truth() -> None:
    interval, count = 4096, 20_000
    _pyhooks.heap_start(interval, seed=1)
    try:
        objects = [bytes(400) for _ in range(count)]
        rows_of_test = [row for stack, row in rows(OBJ).items() if "near_the_truth" in stack[-1][0]]
        exact = sum(map(sys.getsizeof, objects))
        deviation = (exact * interval) ** 0.5
        estimate = sum(row.allocated - row.freed for row in rows_of_test)
        assert abs(estimate - exact) < 4 * deviation + sys.getsizeof(objects) + interval
    finally:
        _pyhooks.heap_stop()
