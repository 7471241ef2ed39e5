"""The examples do what they say, and the real trace processor reads their traces."""

from __future__ import annotations

import sys

from stretto.testing.decoded_packets import decode_packets
from tests.support.recorded import alone, check_trace, record


def test_demo(oracle, repository, tmp_path):
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
    tasks = loaded.query("select name, count(*) from track where name like 'fetch%' group by 1")
    assert tasks == [("fetch", 3), ("fetch_all", 1)]
    assert loaded.query("select count(*) from slice where name = 'in the child'") == [(1,)]
    pictures = "select count(*) from flow join slice s on slice_in = s.id where s.name = '{}'"
    assert loaded.query(pictures.format("upload picture")) == [(6,)]


def test_demo_alone(repository):
    run = alone(sys.executable, str(repository / "examples" / "demo.py"))
    assert run.status == 0
    assert run.stderr.splitlines()[-1] == "rendered 60 frames"


def test_custom_data_source(oracle, repository, tmp_path):
    script = repository / "examples" / "custom_data_source.py"
    run = alone(sys.executable, str(script), str(tmp_path / "trace"))
    assert (run.status, run.stderr) == (0, "")
    trace = (tmp_path / "trace").read_bytes()
    loaded = check_trace(oracle, trace)
    assert loaded.query("select name, count(*) from slice group by 1") == [("screenshot", 10)]
    events = [p.for_testing.str for p in decode_packets(trace) if p.for_testing is not None]
    assert events == [f"screenshot {number}" for number in range(10)]
