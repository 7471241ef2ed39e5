"""Callbacks that block an event loop are slices with their stack; the lag is a counter."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from pathlib import Path

import pytest

from stretto.client import fork
from stretto.profilers import loop_watch
from tests.support.call_slices import BEGIN, COUNTER, END, Event, recorded

LIMIT_NS = 20_000_000


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    loop_watch.install()
    monkeypatch.setattr(loop_watch, "LIMIT_NS", LIMIT_NS)


def of_type(events: list[Event], *types: int) -> list[Event]:
    return [event for event in events if event.type in types]


def wait_for_report(begun: threading.Event) -> None:
    """Block until the slice of this callback has begun."""
    assert begun.wait(10)


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Give an event that is set when a slice has begun."""
    event, begin = threading.Event(), loop_watch._begin

    def observed(*args: object) -> None:
        begin(*args)  # type: ignore[arg-type]
        event.set()

    monkeypatch.setattr(loop_watch, "_begin", observed)
    return event


def test_blocked_step_has_its_stack(begun: threading.Event) -> None:
    async def checkout() -> None:
        wait_for_report(begun)

    with recorded("python.loops") as result:
        asyncio.run(checkout())
    (slice_,) = of_type(result.events, BEGIN)
    assert slice_.name == f"blocked in {__name__}.wait_for_report"
    assert slice_.args["callback"].endswith("checkout")
    assert len(of_type(result.events, END)) == 1


def test_step_that_ends_while_it_is_reported_has_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    reported, ended, told = threading.Event(), threading.Event(), threading.Event()
    begin, on_end = loop_watch._begin, loop_watch._on_end

    def late(*args: object) -> None:
        reported.set()
        assert ended.wait(10)
        begin(*args)  # type: ignore[arg-type]

    def observed_end(*args: object) -> None:
        on_end(*args)  # type: ignore[arg-type]
        told.set()

    async def checkout() -> None:
        assert reported.wait(10)
        await asyncio.sleep(0)
        ended.set()

    monkeypatch.setattr(loop_watch, "_begin", late)
    monkeypatch.setattr(loop_watch, "_on_end", observed_end)
    with recorded("python.loops") as result:
        asyncio.run(checkout())
        assert told.wait(10)
    assert [event.type for event in of_type(result.events, BEGIN, END)] == [BEGIN, END]


def test_stack_ends_at_the_callback() -> None:
    found: list[str] = []

    def block() -> None:
        found.extend(call.text for call in loop_watch._calls(threading.get_ident()))

    async def program() -> None:
        asyncio.get_running_loop().call_soon(block)
        await asyncio.sleep(0)

    asyncio.run(program())
    line = test_stack_ends_at_the_callback.__code__.co_firstlineno + 4
    assert found[-1].endswith(f"block ({__file__}:{line})")


def test_callback_that_keeps_the_gil_is_reported_by_its_end() -> None:
    with recorded("python.loops") as result:
        loop_watch._on_loop(threading.get_ident())
        loop = asyncio.new_event_loop()
        handle = asyncio.Handle(print, (), loop)
        loop_watch._on_end(threading.get_ident(), 1, 2, handle, False)
        loop.close()
    (slice_,) = of_type(result.events, BEGIN)
    assert slice_.name == "blocked in print"
    assert "stack" not in slice_.args
    assert len(of_type(result.events, END)) == 1


def test_lag_is_a_counter() -> None:
    async def program() -> None:
        end = time.monotonic_ns() + 15_000_000
        while time.monotonic_ns() < end:
            pass

    with recorded("python.loops") as result:
        asyncio.run(program())
    assert len(of_type(result.events, COUNTER)) >= 2


def test_nothing_is_reported_after_the_session(begun: threading.Event) -> None:
    with recorded("python.loops"):
        asyncio.run(asyncio.sleep(0))

    async def program() -> None:
        time.sleep(2 * LIMIT_NS / 1e9)  # sleep: a report would come while the loop is blocked

    with recorded("python.gc") as result:
        asyncio.run(program())
    assert not begun.is_set()
    assert not of_type(result.events, COUNTER)


def native_threads() -> list[str]:
    """Return the names of this process's threads."""
    return [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]


def wait_for_thread() -> None:
    """Wait until the thread that looks at the loops has its name."""
    while "stretto-loops" not in native_threads():
        os.sched_yield()


def test_thread_runs_during_the_session_and_not_during_a_fork() -> None:
    with recorded("python.loops"):
        wait_for_thread()
        for hook in fork.before:
            hook()
        try:
            assert "stretto-loops" not in native_threads()
        finally:
            for hook in fork.after_in_parent:
                hook()
        wait_for_thread()
    assert "stretto-loops" not in native_threads()
