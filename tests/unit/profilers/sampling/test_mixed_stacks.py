"""Python calls are put at their places between C functions."""

from __future__ import annotations

import sys

import pytest

from stretto.profilers.sampling.mixed_stacks import mixed, read_mixed_stacks
from stretto.profilers.sampling.native_code import NativeFrame
from stretto.profilers.sampling.process import ProcessError, find_python
from stretto.profilers.sampling.stacks import Frame, ThreadStack
from tests.support.polling import wait_until
from tests.support.python_targets import BUSY, running

NESTED = """
def leaf(_):
    print("ready", flush=True)
    time.sleep(1000)  # sleep: what is read

def sorter():
    sorted([1], key=leaf)

def main():
    sorter()

main()
"""
LOOP = NativeFrame("_PyEval_EvalFrameDefault", "libpython.so")


def call(name: str) -> Frame:
    return Frame(name, "shop.py", 1)


def c_call(name: str) -> NativeFrame:
    return NativeFrame(name, "libpython.so")


def names(frames: list[Frame]) -> list[str]:
    return [frame.function for frame in frames]


def test_each_loop_is_replaced_by_its_calls() -> None:
    native = [c_call("sleep"), LOOP, c_call("sort"), LOOP, c_call("main")]
    calls = [call("leaf"), call("sorter"), call("outer")]
    found = mixed(calls, [1, 2], native)
    assert names(found) == ["sleep", "leaf", "sort", "sorter", "outer", "main"]
    assert [frame.native for frame in found] == [True, False, True, False, False, True]


def test_part_of_a_loop_that_the_compiler_has_moved_is_the_loop() -> None:
    native = [NativeFrame("_PyEval_EvalFrameDefault.cold", "libpython.so")]
    assert names(mixed([call("leaf")], [1], native)) == ["leaf"]


def test_calls_remain_where_the_c_functions_end_early() -> None:
    found = mixed([call("leaf"), call("outer")], [1, 1], [c_call("sleep"), LOOP])
    assert names(found) == ["sleep", "leaf", "outer"]


def test_counts_of_another_stack_are_not_used() -> None:
    assert names(mixed([call("leaf")], [2], [c_call("sleep"), LOOP])) == ["leaf"]


def main_stack(pid: int) -> ThreadStack:
    return next(each for each in read_mixed_stacks(find_python(pid)) if each.native_id == pid)


def frames_of_the_nested_calls() -> list[Frame]:
    with running(NESTED) as program:
        wait_until(lambda: main_stack(program.pid).has_native)
        return main_stack(program.pid).frames or []


def test_c_functions_of_a_thread_that_waits_are_read() -> None:
    frames = frames_of_the_nested_calls()
    calls = [frame.function for frame in frames if not frame.native]
    assert calls == ["leaf", "sorter", "main", "<module>"]
    assert frames[0].native
    assert "libc" in frames[0].filename


@pytest.mark.skipif(
    sys.version_info >= (3, 14),
    reason="Debian's builds have no names for all parts of the interpreter's loop",
)
def test_c_functions_between_python_calls_are_read() -> None:
    frames = frames_of_the_nested_calls()
    found = names(frames)
    # `sorted` calls `leaf` from C; distributions may have no names for these functions.
    assert all(frame.native for frame in frames[found.index("leaf") + 1 : found.index("sorter")])
    assert found.index("leaf") + 2 < found.index("sorter")
    assert found.index("sorter") + 1 == found.index("main")
    assert found[-1] == "_start"
    assert "_PyEval_EvalFrameDefault" not in found


def test_thread_that_runs_has_its_python_calls_only() -> None:
    stacks: list[ThreadStack] = []

    def runs() -> bool:
        stacks.append(main_stack(program.pid))
        return not stacks[-1].has_native

    with running(BUSY) as program:
        wait_until(runs)
    frames = stacks[-1].frames or []
    assert names(frames)[-1] == "<module>"
    assert not any(frame.native for frame in frames)


def test_process_that_has_ended_is_an_error() -> None:
    with running(BUSY) as program:
        process = find_python(program.pid)
    with pytest.raises(ProcessError):
        read_mixed_stacks(process)
