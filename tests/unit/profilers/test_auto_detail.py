"""Auto detail in this process: hooks count calls and stop the tracing of short functions."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Barrier, Thread
from time import perf_counter_ns, sleep, thread_time_ns
from typing import Any

import pytest

from stretto import _pyhooks
from tests.support.call_slices import BEGIN, END, recorded

CATEGORY = "python.functions"
HERE = __file__
THRESHOLD_NS = 50_000
"""Shorter calls are counted in their caller."""

with_events = pytest.mark.skipif(
    sys.version_info < (3, 12), reason="only CPython 3.12 and later report calls"
)


@pytest.fixture(autouse=True)
def auto_detail(function_options: Callable[..., None]) -> Iterator[None]:
    function_options(auto_detail=True, include=[HERE])
    yield
    function_options()


def calls_str() -> str:
    return str(1)


def leaf() -> int:
    return 1


def many(count: int) -> None:
    for _ in range(count):
        calls_str()
        leaf()
    sum(range(50_000))  # makes the call long enough to be recorded


def counted() -> dict[str, Any]:
    functions = _pyhooks.totals()["functions"]
    return {name.rpartition(".")[2]: calls for name, _, _, calls, *_ in functions}


@with_events
def test_calls_of_functions_that_are_not_switched_off_are_counted() -> None:
    with recorded(CATEGORY):
        many(8)
        calls = counted()
    assert (calls["many"], calls["calls_str"], calls["leaf"]) == (1, 8, None)


def recursive(depth: int) -> None:
    if depth > 1:
        recursive(depth - 1)
    else:
        sum(range(50_000))  # makes each call long enough to be no short one


@with_events
def test_calls_deeper_than_the_list_of_open_calls_are_counted() -> None:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(6000)
    try:
        with recorded(CATEGORY):
            recursive(5000)
            calls, stats = counted()["recursive"], _pyhooks.stats()
            short = _pyhooks.totals()["counted"]
    finally:
        sys.setrecursionlimit(limit)
    assert calls == 5000
    assert stats["too_deep"] >= 5000 - 400
    assert short < 100  # Those that are too deep are no short calls, too.


@with_events
def test_generator_or_coroutine_is_one_call_however_many_steps_it_has() -> None:
    def generates() -> Iterator[int]:
        yield from range(3)

    async def waits() -> None:
        for _ in range(3):
            await Step()

    class Step:
        def __await__(self) -> Iterator[None]:
            yield

    with recorded(CATEGORY):
        assert [*generates(), *generates()] == [*range(3), *range(3)]
        for _ in waits().__await__():
            pass
        calls = counted()
    assert (calls["generates"], calls["waits"], calls["__await__"]) == (2, 1, 3)


@with_events
def test_tracing_of_a_function_with_short_calls_is_switched_off() -> None:
    with recorded(CATEGORY):
        many(2000)
        assert counted()["calls_str"] is None


@with_events
def test_short_calls_are_summed_in_arguments_of_the_slice_of_the_caller() -> None:
    with recorded(CATEGORY) as result:
        many(8)
    begin, *inner, end = [event for event in result.events if event.type in (BEGIN, END)]
    assert (begin.name, begin.location and begin.location[0]) == ("many", HERE)
    # On a busy machine, some calls of the short functions take long enough to be recorded.
    short_calls = end.args["short_calls"]
    assert short_calls + len(inner) // 2 == 8
    assert 0 < end.args["short_calls_ns"] < short_calls * THRESHOLD_NS


@with_events
def test_slice_ends_when_its_generator_yields_or_its_function_raises() -> None:
    def generates() -> Iterator[int]:
        sum(range(50_000))  # makes the call long enough to be recorded
        yield 1
        sum(range(50_000))  # makes the call long enough to be recorded

    def fails() -> None:
        sum(range(50_000))  # makes the call long enough to be recorded
        raise KeyError

    with recorded(CATEGORY) as result:
        for _ in generates():
            pass
        with pytest.raises(KeyError):
            fails()
    names = [name.rpartition(".")[2] for name, inner in result.calls() if not inner]
    assert names == ["generates", "generates", "fails"]
    raised = [event.args.get("exception") for event in result.events if event.type == END]
    assert raised == [None, None, "KeyError"]


@with_events
def test_slice_that_may_be_of_a_later_call_says_so() -> None:
    """The interpreter reports neither the end of the first call nor the begin of the last one."""
    begins = []

    def switched_off_while_open(kind: str) -> None:
        begins.append(perf_counter_ns())
        for _ in range(200 if kind == "first" else 0):
            switched_off_while_open("inner")
        if kind == "last":
            raise KeyError  # the interpreter always reports this end

    with recorded(CATEGORY) as result:
        _pyhooks.pause_sampling()  # no sample tells the calls apart
        switched_off_while_open("first")
        with pytest.raises(KeyError):
            switched_off_while_open("last")
    [end] = [event for event in result.events if event.args.get("exception") == "KeyError"]
    assert end.args["begins_up_to_ns_later"] >= begins[-1] - begins[0]


@with_events
def test_call_that_contains_the_recording_has_no_slice() -> None:
    def still_open() -> Any:
        with recorded(CATEGORY) as result:
            inner_call(result)
        return result

    def inner_call(_: object) -> None:
        sum(range(50_000))  # makes the call long enough to be recorded

    calls = still_open().calls()
    assert [name.rpartition(".")[2] for name, _ in calls] == ["inner_call"]


@with_events
def test_slices_of_a_function_end_although_an_earlier_call_began_before_the_recording() -> None:
    with ExitStack() as recording:

        def starts_recording(*, start: bool) -> Any:
            result = recording.enter_context(recorded(CATEGORY)) if start else None
            sum(range(50_000))  # makes the call long enough to be recorded
            return result

        result = starts_recording(start=True)
        starts_recording(start=False)
        starts_recording(start=False)
    calls = [(name.rpartition(".")[2], inner) for name, inner in result.calls()]
    assert calls == [("starts_recording", []), ("starts_recording", [])]


@with_events
def test_recursion_of_50000_calls_works_during_auto_detail() -> None:
    def recursive(depth: int) -> int:
        return recursive(depth - 1) + 1 if depth else len(str(depth))

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)
    try:
        with recorded(CATEGORY):
            assert recursive(50_000) == 50_001
    finally:
        sys.setrecursionlimit(limit)


def test_several_threads_may_stop_the_sampling_at_once() -> None:
    """The end of the program and the end of the recording stop it on two threads."""
    barrier = Barrier(4)

    def stop() -> None:
        barrier.wait()
        _pyhooks.pause_sampling()

    with recorded(CATEGORY):
        for _ in range(50):
            _pyhooks.resume_sampling()
            threads = [Thread(target=stop) for _ in range(barrier.parties)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert not samplers()


def samplers() -> list[Path]:
    """Return the sampling threads of this process."""
    names = Path("/proc/self/task").glob("*/comm")
    return [path for path in names if path.read_text().startswith("stretto-stacks")]


def running_ns() -> int:
    total: int = _pyhooks.totals()["running_ns"]
    return total


def test_cpu_time_before_the_recording_is_in_no_total() -> None:
    while thread_time_ns() < 300_000_000:
        sum(range(1000))
    with recorded(CATEGORY):
        before = running_ns()  # Totals are those of all recordings of the process.
        sleep(0.3)  # sleep: samples are taken meanwhile
        assert running_ns() - before < 200_000_000


def test_cpu_time_before_the_first_call_of_a_thread_is_in_no_total() -> None:
    libc, key, thread = ctypes.CDLL(None), ctypes.c_uint(), ctypes.c_ulong()
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    results = []

    def runs(_: object) -> None:
        while thread_time_ns() < 500_000_000:
            sum(range(1000))
        libc.pthread_setspecific(key, ctypes.c_void_p(1))

    def waits(_: object) -> None:
        """Run on the same thread of the kernel, which is a new one for the interpreter."""
        before = running_ns()
        sleep(0.5)  # sleep: samples are taken meanwhile
        results.append(running_ns() - before)

    begin, end = function(runs), function(waits)
    libc.pthread_key_create(ctypes.byref(key), end)
    with recorded(CATEGORY):
        libc.pthread_create(ctypes.byref(thread), None, begin, None)
        libc.pthread_join(thread, None)
    assert results[0] < 300_000_000


def compute(duration_ns: int) -> None:
    end = thread_time_ns() + duration_ns
    while thread_time_ns() < end:
        pass


def compute_and_sleep() -> None:
    for _ in range(300):
        compute(500_000)
        sleep(0.001)  # sleep: what is counted


def waiting_ns() -> tuple[int, int]:
    totals = _pyhooks.totals()["functions"]
    functions = {name.rpartition(".")[2]: waiting for name, *_, waiting in totals}
    return functions.get("compute", 0), functions.get("compute_and_sleep", 0)


def test_function_that_has_waited_for_the_gil_does_not_take_later_waits_of_others() -> None:
    with recorded(CATEGORY):
        other = Thread(target=compute, args=(100_000_000,))
        other.start()
        compute(100_000_000)
        other.join()
        sleep(0.1)  # sleep: samples are taken, which find what was waited before
        before, _ = waiting_ns()
        compute_and_sleep()
        computing, sleeping = waiting_ns()
    assert computing - before < sleeping / 10
