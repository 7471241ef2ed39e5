"""Perfetto's trace processor shows a generator used as a context manager as one slice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.recorded import check_trace, record

PROGRAM = """\
import asyncio, sys, time
from contextlib import ExitStack, asynccontextmanager, contextmanager

@contextmanager
def transaction(name):
    time.sleep(0.02)  # sleep: what the test sees
    try:
        yield name
    finally:
        time.sleep(0.02)  # sleep: what the test sees

@asynccontextmanager
async def session():
    await asyncio.sleep(0.05)  # sleep: what the test sees
    yield 7
    await asyncio.sleep(0.02)  # sleep: what the test sees

@contextmanager
def short():
    yield

@contextmanager
def refused():
    time.sleep(0.02)  # sleep: what the test sees
    raise PermissionError("no")
    yield

def nested():
    with transaction("outer"), transaction("inner"):
        time.sleep(0.05)  # sleep: what the test sees

def overlapping():
    first, second = ExitStack(), ExitStack()
    first.enter_context(transaction("first"))
    second.enter_context(transaction("second"))
    first.close()
    second.close()

def failing():
    try:
        with transaction("failing"):
            time.sleep(0.05)  # sleep: what the test sees
            1 / 0
    except ZeroDivisionError as error:
        frames = []
        at = error.__traceback__
        while at:
            frames.append(at.tb_frame.f_code.co_name)
            at = at.tb_next
        assert frames == ["failing"], frames
    try:
        with refused():
            pass
    except PermissionError:
        pass

async def handler():
    async with session() as number:
        assert number == 7
        await asyncio.sleep(0.1)  # sleep: what the test sees

async def server():
    await asyncio.gather(handler(), handler())

def many():
    for _ in range(1000):
        with short():
            pass

def long():
    with transaction("long"):
        end = time.monotonic() + 12
        while time.monotonic() < end:
            sum(range(10000))

kept = transaction("open")
{"server": lambda: asyncio.run(server()), "open": kept.__enter__}.get(
    sys.argv[1], globals().get(sys.argv[1]))()
"""
SLICES = (
    "select slice.id as id, slice.name as name, depth, slice.ts as ts, slice.dur as dur,"
    " lane.name as lane, slice.track_id as track from slice"
    " join track lane on track_id = lane.id join track parent on lane.parent_id = parent.id"
    " where parent.name = 'context managers'"
    " and slice.name in ('body', 'transaction', 'session', 'short', 'refused')"
)


@pytest.fixture
def managers(oracle: Any, tmp_path: Path) -> Any:
    def run(kind: str, *, complete: bool = True) -> Any:
        (tmp_path / "shop.py").write_text(PROGRAM)
        done = record(tmp_path / "shop.pftrace", "shop.py", kind, cwd=tmp_path)
        assert done.status == 0, done.stderr
        return check_trace(oracle, done.trace, complete=complete)

    return run


def bars(trace: Any, name: str) -> list[Any]:
    return list(
        trace.query(f"select ts, dur, id from ({SLICES}) where name = '{name}' order by ts")
    )


def body_of(trace: Any, bar: int) -> tuple[int, int]:
    ((begin, length),) = trace.query(f"select ts, dur from slice where parent_id = {bar}")
    return begin, length


def test_slice_lasts_from_enter_to_exit_with_the_body_inside(managers: Any) -> None:
    trace = managers("nested")
    (outer, length, bar), (inner, inner_length, inner_bar) = bars(trace, "transaction")
    begin, body = body_of(trace, bar)
    assert begin - outer >= 20e6
    assert outer + length - (begin + body) >= 20e6
    assert begin <= inner
    assert inner + inner_length <= begin + body
    assert body_of(trace, inner_bar)[1] >= 50e6
    threads = "select 'MainThread ' || tid from thread where is_main_thread"
    (lane,) = trace.query(f"select distinct lane from ({SLICES})")
    assert lane in trace.query(threads)


def test_coroutines_of_asynchronous_managers_are_not_in_the_body(managers: Any) -> None:
    trace = managers("server")
    found = bars(trace, "session")
    assert len(found) == 2
    for begin, length, bar in found:
        body_begin, body = body_of(trace, bar)
        assert body_begin - begin >= 50e6
        assert body >= 100e6
        assert begin + length - (body_begin + body) >= 20e6


def test_managers_that_overlap_have_separate_tracks(managers: Any) -> None:
    trace = managers("overlapping")
    (first, length, _), (second, second_length, _) = bars(trace, "transaction")
    assert first < second < first + length < second + second_length
    assert trace.query(f"select count(distinct track) from ({SLICES})") == [(2,)]


def test_manager_left_by_an_exception_ends_and_its_traceback_is_unchanged(managers: Any) -> None:
    trace = managers("failing")
    assert len(bars(trace, "transaction")) == 1
    assert bars(trace, "refused") == []


def test_short_managers_have_no_slices(managers: Any) -> None:
    trace = managers("many")
    assert len(bars(trace, "short")) < 1000  # on a busy machine some of them take long


def test_manager_that_is_open_at_the_end_is_an_open_slice(managers: Any) -> None:
    trace = managers("open", complete=False)
    lengths = trace.query(f"select name, dur from ({SLICES}) order by depth")
    assert lengths == [("transaction", -1), ("body", -1)]


@pytest.mark.thorough
def test_slices_longer_than_the_period_of_flushes_are_not_lost(managers: Any) -> None:
    trace = managers("long")
    ((_, length, bar),) = bars(trace, "transaction")
    assert length >= 12e9
    assert body_of(trace, bar)[1] >= 12e9
