"""`stretto record --waits` records waits for locks and blocked loops; without it there are none."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from stretto.analysis import TraceProcessor
from stretto.cli.main import main
from tests.support.recorded import record
from tests.support.sources import ROOT

PROGRAM = """\
import threading
lock = threading.Lock()
holder = threading.Thread(target=lock.acquire)
holder.start()
holder.join()
with open("holder", "w") as file:
    file.write(str(holder.native_id))
releaser = threading.Timer(0.1, lock.release)
releaser.start()
with lock:
    pass
releaser.join()
"""


inexact_on_3_11 = pytest.mark.skipif(
    sys.version_info < (3, 12), reason="CPython 3.11 reports no calls: times are not exact"
)

SQL = """
    select name, extract_arg(arg_set_id, 'debug.made_at') as made_at,
           extract_arg(arg_set_id, 'debug.held_by_tid') as holder
    from slice where category = 'python.waits' and dur > 0"""


def waits(trace: Path) -> list[tuple[str, str | None, int | None]]:
    with TraceProcessor(str(trace), engine="sqlite") as processor:
        return [(row.name, row.made_at, row.holder) for row in processor.query(SQL)]


def recorded(folder: Path, program: str, *options: str) -> Path:
    """Record a program, with `folder` as its working directory; return the trace."""
    script = folder / "script.py"
    script.write_text(program)
    trace = folder / "t.pftrace"
    assert record(trace, *options, str(script), cwd=folder).status == 0
    return trace


MEASURED = """\
import signal, threading, time
def now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)
held = threading.Lock()
held.acquire()
def wait(seconds):
    begin = now()
    held.acquire(timeout=seconds)
    return begin, now(), int(seconds * 1e9)
def wait_deeper(seconds, depth):
    return wait_deeper(seconds, depth - 1) if depth else wait(seconds)
PROGRAM
with open("times", "w") as file:
    print(*(number for wait in waits for number in wait), file=file)
"""
OFTEN = "waits = [wait_deeper(0.0005, number % 20) for number in range(1500)]"
INTERRUPTED = """\
def compute():
    end = now() + 2_000_000
    while now() < end:
        pass
def handle(number, frame):
    compute()
    time.sleep(0.002)  # sleep: a wait in the signal handler
    compute()
signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 0.013, 0.013)
waits = [wait(0.1) for _ in range(5)]
signal.setitimer(signal.ITIMER_REAL, 0)
"""
"""The calls of the signal handler are slices in the waits."""


@pytest.mark.parametrize("program", [OFTEN, INTERRUPTED], ids=["often", "interrupted"])
def test_each_wait_has_its_exact_times(tmp_path: Path, program: str) -> None:
    """Also where only samples find the calls around it: on CPython 3.11."""
    trace = recorded(tmp_path, MEASURED.replace("PROGRAM", program), "--waits")
    numbers = map(int, (tmp_path / "times").read_text().split())
    measured = list(zip(numbers, numbers, numbers, strict=True))
    sql = """
        select ts, ts + dur as end, parent_id in
            (select id from slice where category = 'python.waits') as is_nested
        from slice where category = 'python.waits' and dur > 0 order by ts"""
    with TraceProcessor(str(trace), engine="sqlite") as processor:
        found = [(row.ts, row.end, row.is_nested) for row in processor.query(sql)]
    assert len(found) == len(measured)
    for (begin, end, is_nested), (earliest, latest, length) in zip(found, measured, strict=True):
        assert earliest - 1000 <= begin < end <= latest + 1000
        assert end - begin >= length - 1000
        assert not is_nested


FIRST_LONG_CALL = """\
import threading, time
lock = threading.Lock()
lock.acquire()
def inner(seconds):
    if seconds:
        WAIT
def outer(seconds):
    inner(seconds)
for _ in range(20000):
    outer(0)
outer(0.1)
"""


@pytest.mark.parametrize(
    ("wait", "category"),
    [
        ("lock.acquire(timeout=seconds)", "python.waits"),
        ("time.sleep(seconds)", "python.io_waits"),  # sleep: the wait to be recorded
    ],
    ids=["lock", "sleep"],
)
def test_calls_that_were_short_before_lie_around_their_first_wait(
    tmp_path: Path, wait: str, category: str
) -> None:
    trace = recorded(tmp_path, FIRST_LONG_CALL.replace("WAIT", wait), "--category", category)
    sql = "select id, parent_id as parent, name, category, dur from slice"
    with TraceProcessor(str(trace), engine="sqlite") as processor:
        rows = {row.id: row for row in processor.query(sql)}
    (row,) = (row for row in rows.values() if row.category == category and row.dur > 50_000_000)
    assert row.dur >= 100_000_000
    around = []
    while row.parent is not None:
        row = rows[row.parent]
        around.append(row.name)
    assert [name for name in around if name in {"inner", "outer"}] == ["inner", "outer"]


@pytest.mark.parametrize("mode", [[], ["--full"], ["--sample", "1000hz"]])
def test_wait_names_the_lock_and_its_holder(tmp_path: Path, mode: list[str]) -> None:
    trace = recorded(tmp_path, PROGRAM, "--waits", *mode)
    holder = int((tmp_path / "holder").read_text())
    wait = ("wait for lock", f"{tmp_path / 'script.py'}:2 (<module>)", holder)
    assert waits(trace).count(wait) == 1


def test_without_the_option_nothing_is_recorded(tmp_path: Path) -> None:
    assert not waits(recorded(tmp_path, PROGRAM))


HOLDING = """\
import ctypes, threading
held = threading.Thread(target=ctypes.PyDLL(None).usleep, args=(100_000,))
held.start()
held.join()
"""


def test_waits_for_the_gil_are_recorded_and_summed_by_thread(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = recorded(tmp_path, HOLDING, "--gil-waits")
    with TraceProcessor(str(trace), engine="sqlite") as processor:
        sql = "select dur from slice where name = 'waiting for the GIL' and dur >= 90000000"
        (row,) = processor.query(sql)
    assert row.dur < 10**9
    assert main(["summary", str(trace)]) == 0
    table = capsys.readouterr().out.partition("Waiting for the GIL\n")[2].partition("\n\n\n")[0]
    assert re.search(r"^ *[\d.]+ ms .* MainThread ", table, re.MULTILINE)


BLOCKING = """\
import asyncio, time
def slow():
    time.sleep(0.3)  # sleep: blocks the event loop
async def main():
    slow()
asyncio.run(main())
"""


def test_summary_names_what_blocked_the_event_loop(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = recorded(tmp_path, BLOCKING, "--waits")
    with TraceProcessor(str(trace), engine="sqlite") as processor:
        sql = "select arg_set_id from slice where name = 'blocked in slow'"
        args = "select key, string_value from args where arg_set_id in"
        found = {row.key: row.string_value for row in processor.query(f"{args} ({sql})")}
    assert found["debug.stack[0]"] == f"slow ({tmp_path / 'script.py'}:3)"
    assert main(["summary", str(trace)]) == 0
    assert re.search(r"event loop: blocked once, longest \d+ ms in slow\n", capsys.readouterr().out)


RECIPES = ROOT / "examples" / "recipes"


@pytest.mark.thorough
@pytest.mark.once
def test_recipe_of_a_starved_loop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "t.pftrace"
    assert record(trace, "--waits", str(RECIPES / "starved_loop.py")).status == 0
    assert main(["summary", str(trace)]) == 0
    assert re.search(r"event loop: blocked \d+ times, longest", capsys.readouterr().out)
    with TraceProcessor(str(trace), engine="sqlite") as processor:
        sql = "select name from slice where category = 'python.loops'"
        names = [row.name for row in processor.query(sql)]
    assert names.count("blocked in sign") == 3


@pytest.mark.thorough
@pytest.mark.once
def test_recipe_of_a_lock_convoy(tmp_path: Path) -> None:
    script = RECIPES / "lock_convoy.py"
    trace = tmp_path / "t.pftrace"
    assert record(trace, "--waits", str(script)).status == 0
    convoy = [wait for wait in waits(trace) if wait[1] == f"{script}:15 (<module>)"]
    assert len(convoy) > 3
    assert any(holder for _, _, holder in convoy)


@inexact_on_3_11
@pytest.mark.thorough
@pytest.mark.once
def test_recipe_of_gc_pauses(tmp_path: Path) -> None:
    trace = tmp_path / "t.pftrace"
    assert record(trace, str(RECIPES / "gc_pauses.py")).status == 0
    sql = """
        select extract_arg(pause.arg_set_id, 'debug.generation') as generation
        from slice pause join slice inside on pause.parent_id = inside.id
        where pause.name = 'garbage collection' and inside.name = 'handle'
        order by pause.dur desc limit 1"""
    with TraceProcessor(str(trace), engine="sqlite") as processor:
        assert [row.generation for row in processor.query(sql)] == [2]


@inexact_on_3_11
@pytest.mark.thorough
@pytest.mark.once
def test_recipe_of_a_slow_request(tmp_path: Path) -> None:
    trace = tmp_path / "t.pftrace"
    script = RECIPES / "slow_request.py"
    assert record(trace, "--waits", "--gil-waits", str(script)).status == 0
    sql = """
        select distinct inside.name from slice request join slice inside
        on inside.ts >= request.ts and inside.ts + inside.dur <= request.ts + request.dur
        join thread_track a on a.id = request.track_id join thread_track b on b.id = inside.track_id
        where request.name = 'Shop.do_GET' and a.utid = b.utid"""
    with TraceProcessor(str(trace), engine="sqlite") as processor:
        names = {row.name for row in processor.query(sql)}
    assert {"wait for lock", "waiting for the GIL", "price", "ask_bank"} <= names
