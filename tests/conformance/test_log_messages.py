"""Perfetto's trace processor shows log records and exceptions with their source location."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conformance.test_task_lanes import MODES
from tests.support.recorded import check_trace, record

PROGRAM = """\
import asyncio, logging, stretto
log = logging.getLogger("shop.cart")
async def ship(): raise KeyError("qty")
async def main():
    await asyncio.gather(ship(), return_exceptions=True)
    await asyncio.gather(ship(), return_exceptions=True)
    await asyncio.gather(wait(asyncio.create_task(ship())), return_exceptions=True)
async def wait(task): await task
def sell():
    log.warning("order %d\\nis late", 17, extra={"customer": "Ada"})
    try:
        1 / 0
    except ZeroDivisionError:
        log.exception("not sold")
asyncio.run(main())
sell()
try:
    with stretto.slice("pay"):
        raise ValueError
except ValueError:
    raise RuntimeError("closed")
"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("shop")
    (folder / "shop.py").write_text(PROGRAM)
    run = record(folder / "shop.pftrace", "--full", "shop.py", cwd=folder)
    assert run.status == 1
    return run.trace


@pytest.fixture
def loaded(oracle: Any, trace: bytes) -> Any:
    return check_trace(oracle, trace)


def test_log_records_and_exceptions_are_in_the_table_of_logs(loaded: Any) -> None:
    rows = loaded.query("select prio, tag, msg from android_logs order by ts")
    assert [(prio, Path(tag).name, message) for prio, tag, message in rows] == [
        *[(5, "shop.py:3", "KeyError: 'qty'")] * 3,
        (5, "shop.py:10", "order 17\nis late"),
        (6, "shop.py:14", "not sold"),
        (7, "shop.py:21", "RuntimeError: closed"),
    ]


def test_events_of_log_records_have_name_location_and_extra(loaded: Any) -> None:
    def column(key: str) -> str:
        return f"extract_arg(arg_set_id, '{key}')"

    keys = ["source.line_number", "source.function_name", "debug.logger", "debug.extra.customer"]
    sql = f"select name, {', '.join(map(column, keys))} from slice where category = 'python.log'"
    assert loaded.query(sql + " order by ts") == [
        ("order 17", 10, "sell", "shop.cart", "Ada"),
        ("not sold", 14, "sell", "shop.cart", None),
    ]


def test_slices_ended_by_an_exception_have_the_exception_type_as_argument(loaded: Any) -> None:
    sql = "select name, category, extract_arg(arg_set_id, 'debug.exception') as type from slice"
    assert loaded.query(
        f"select * from ({sql}) where type is not null"
        " and category != 'python.functions' order by name"
    ) == [
        ("pay", "python", "ValueError"),
        *[("ship", "python.asyncio", "KeyError")] * 3,
        ("wait", "python.asyncio", "KeyError"),
    ]


@pytest.mark.parametrize("mode", MODES)
def test_uncaught_exceptions_and_exceptions_kept_by_gather_are_recorded(
    oracle: Any, tmp_path: Path, mode: str
) -> None:
    (tmp_path / "shop.py").write_text(PROGRAM)
    run = record(tmp_path / "trace", mode, "shop.py", cwd=tmp_path)
    sql = "select name, extract_arg(arg_set_id, 'debug.kept_by') from slice"
    loaded = check_trace(oracle, run.trace)
    assert loaded.query(sql + " where category = 'python.exceptions' order by ts") == [
        *[("KeyError: 'qty'", "task")] * 3,
        ("RuntimeError: closed", None),
    ]


PROCESSES = """\
import multiprocessing, sys
def fails(method): raise ValueError(method)
def run(method, target, *args):
    process = multiprocessing.get_context(method).Process(target=target, args=args)
    process.start()
    process.join()
    print(process.exitcode, flush=True)
if __name__ == "__main__":
    try:
        raise KeyError("handled")
    except KeyError:  # A child of a fork has this exception, too.
        for method in ("fork", "spawn"):
            run(method, fails, method)
            run(method, sys.exit, 3)
            run(method, len, [])
"""


@pytest.mark.parametrize("mode", MODES)
def test_exception_that_ends_a_process_of_multiprocessing_is_recorded(
    oracle: Any, tmp_path: Path, mode: str
) -> None:
    (tmp_path / "shop.py").write_text(PROCESSES)
    run = record(tmp_path / "trace", mode, "shop.py", cwd=tmp_path)
    assert run.stdout.split() == ["1", "3", "0"] * 2
    loaded = check_trace(oracle, run.trace, complete=False)
    sql = "select prio, msg, process.name from android_logs join thread using (utid)"
    assert loaded.query(sql + " join process using (upid) order by ts") == [
        (7, "ValueError: fork", "shop.py ForkProcess-1"),
        (7, "ValueError: spawn", "shop.py SpawnProcess-4"),
    ]
