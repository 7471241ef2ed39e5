"""The examples work as described, and Perfetto's trace processor reads their traces."""

from __future__ import annotations

import re
import sys

import pytest

from stretto.testing.decoded_packets import decode_packets
from tests.support.recorded import alone, check_trace, pids, record


def test_demo_is_recorded(oracle, repository, tmp_path):
    run = record(tmp_path / "trace", str(repository / "examples" / "demo.py"))
    assert run.status == 0
    assert "rendered 60 frames" in run.stderr
    loaded = check_trace(oracle, run.trace)
    counts = dict(
        loaded.query("select name, count(*) from slice where category = 'render' group by 1")
    )
    assert counts == {
        "frame": 60,
        "draw": 60,
        "vsync": 60,
        "load picture": 6,
        "upload picture": 6,
    }
    threads = {name for (name,) in loaded.query("select name from thread")}
    assert {"MainThread", "loader", "renderer"} <= threads
    tasks = dict(
        loaded.query("select name, count(*) from track where name like 'fetch%' group by 1")
    )
    assert (tasks["fetch"], tasks["fetch_all"]) == (3, 1)
    assert loaded.query("select count(*) from slice where name = 'in the child'") == [(1,)]
    pictures = "select count(*) from flow join slice s on slice_in = s.id where s.name = '{}'"
    assert loaded.query(pictures.format("upload picture")) == [(6,)]


def test_demo_runs_without_a_recorder(repository):
    run = alone(sys.executable, str(repository / "examples" / "demo.py"))
    assert run.status == 0
    assert run.stderr.splitlines()[-1] == "rendered 60 frames"


def test_custom_data_source_writes_its_packets(oracle, repository, tmp_path):
    script = repository / "examples" / "custom_data_source.py"
    run = alone(sys.executable, str(script), str(tmp_path / "trace"))
    assert (run.status, run.stderr) == (0, "")
    trace = (tmp_path / "trace").read_bytes()
    loaded = check_trace(oracle, trace)
    assert loaded.query("select name, count(*) from slice group by 1") == [("screenshot", 10)]
    events = [p.for_testing.str for p in decode_packets(trace) if p.for_testing is not None]
    assert events == [f"screenshot {number}" for number in range(10)]


ARROWS = """
select o.name, extract_arg(o.arg_set_id, 'debug.kind'), extract_arg(o.arg_set_id, 'debug.role'),
       extract_arg(i.arg_set_id, 'debug.kind'), count(*)
from flow join slice o on slice_out = o.id join slice i on slice_in = i.id
where i.name = o.name group by 1, 2, 3, 4
"""


def test_flow_demo_has_an_arrow_for_each_message(oracle, repository, tmp_path):
    run = record(tmp_path / "trace", str(repository / "examples" / "flow_demo.py"))
    assert run.status == 0, run.stderr
    assert "bought 20 loaves" in run.stderr
    loaded = check_trace(oracle, run.trace)
    assert sorted(loaded.query(ARROWS)) == [
        ("Order", "reply", "send", "reply", 40),
        ("Order", "request", "receive", "reply", 20),
        ("Order", "request", "send", "request", 20),
        ("Price", "reply", "send", "reply", 20),
        ("Price", "request", "receive", "reply", 20),
        ("Price", "request", "send", "request", 20),
        ("Visit", "one-way", "send", "one-way", 40),
    ]
    assert loaded.query("select count(*) from flow") == [(180,)]
    report = alone(sys.executable, "-m", "stretto", "flows", str(tmp_path / "trace"))
    assert "Shop.Visit" in report.stdout
    assert report.stdout.rstrip().endswith("None.")


NESTED = """
select distinct p.name, c.name from slice c join slice p on c.parent_id = p.id
where c.name in ('page', 'shop.page', 'shop.price_of', 'shop.discount')
"""
CATEGORIES = "select distinct category from slice order by category"


@pytest.mark.thorough
@pytest.mark.parametrize("server", ["gunicorn", "uvicorn"])
def test_always_on_server_is_recorded_while_it_runs(oracle, repository, tmp_path, server):
    script = str(repository / "examples" / "always_on" / "serve.py")
    run = alone(sys.executable, script, server, "--seconds", "0.4", "--folder", str(tmp_path))
    assert run.status == 0, run.stderr
    assert "Traceback" not in run.stderr
    rates = re.findall(r"  (.*): ([\d,]+) answers a second", run.stdout)
    assert [what for what, _ in rates] == [
        "no recording",
        "the shop's slices",
        "every function call",
        "no recording",
    ]
    assert all(int(rate.replace(",", "")) > 0 for _, rate in rates)
    assert "requests without an answer: 0" in run.stdout

    slices = check_trace(oracle, (tmp_path / "slices.pftrace").read_bytes(), complete=False)
    assert slices.query(NESTED) == [("request", "page")]
    assert slices.query(CATEGORIES) == [("shop",)]
    functions = check_trace(oracle, (tmp_path / "functions.pftrace").read_bytes(), complete=False)
    # In the asyncio server `page` is a coroutine function, and its steps are slices.
    page = "page" if server == "gunicorn" else "shop.page"
    calls = {(page, "shop.price_of"), ("shop.price_of", "shop.discount")}
    assert calls < set(functions.query(NESTED))
    assert functions.query(CATEGORIES) == [("python.functions",), ("shop",)]
    assert len(pids(functions)) == 2
    named = functions.query("select name from process where pid != 0 and name is not null")
    assert named
    assert all(name.startswith(f"-m {server}") for (name,) in named)
