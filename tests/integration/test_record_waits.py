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
