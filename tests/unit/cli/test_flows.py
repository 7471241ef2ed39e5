"""The verb `flows`: three reports in three forms."""

from __future__ import annotations

import csv
import io
import json

import pytest

from stretto import flows
from stretto.base.errors import CommandError
from stretto.cli.flows import command
from tests.support.recorded_events import record
from tests.support.traced_greeter import TracedGreeter


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    path = tmp_path_factory.mktemp("flows") / "trace.pftrace"
    flows.install()
    try:
        greeter = TracedGreeter()
        with record() as recorded:
            for _ in range(20):
                greeter.call("Echo")
                greeter.run()
            for _ in range(5):
                greeter.call("Later", one_way=True)
            greeter.run()
            greeter.call("Count", b"2")
        greeter.close()
    finally:
        flows.uninstall()
    path.write_bytes(recorded.trace)
    return str(path)


def output(capsys, *arguments):
    assert command.run(arguments) == 0
    return capsys.readouterr().out


def test_tables(capsys, trace):
    text = output(capsys, trace)
    assert text.startswith("Calls by method\n")
    lines = [line.split() for line in text.splitlines()]
    assert ["Traced.Echo", "request", "20", "0"] in [line[:4] for line in lines]
    assert ["Traced.Later", "one-way", "5", "0"] in [line[:4] for line in lines]
    assert ["Traced.Count", "request", "1", "1"] in [line[:4] for line in lines]
    assert "latency p50 µs" in text
    assert "Slowest calls" in text
    assert text.split("Unmatched")[1].count("Traced.Count") == 1


def test_csv(capsys, trace):
    (echo, later, count) = csv.DictReader(io.StringIO(output(capsys, trace, "--format", "csv")))
    assert (echo["method"], echo["kind"], echo["count"]) == ("Traced.Echo", "request", "20")
    assert 0 < int(echo["queueing_p50_ns"]) < int(echo["latency_p50_ns"])
    assert int(echo["latency_p50_ns"]) <= int(echo["latency_p99_ns"]) <= int(echo["latency_max_ns"])
    assert later["kind"] == "one-way"
    assert count["unmatched"] == "1"
    assert count["latency_p50_ns"] == ""


def test_json(capsys, trace):
    found = json.loads(output(capsys, trace, "--format", "json", "--limit", "3"))
    assert [row["count"] for row in found["methods"]] == [20, 5, 1]
    latencies = [row["latency_ns"] for row in found["slowest"]]
    assert len(latencies) == 3
    assert latencies == sorted(latencies, reverse=True)
    assert found["slowest"][0]["flow"].startswith("0x")
    assert found["slowest"][0]["sender"]
    assert [row["method"] for row in found["unmatched"]] == ["Traced.Count"]
    assert found["damaged"] == 0


def test_one_report_of_some_methods(capsys, trace):
    arguments = ("--format", "csv", "--report", "slowest", "--method", "*.Later", "--limit", "9")
    rows = list(csv.DictReader(io.StringIO(output(capsys, trace, *arguments))))
    assert len(rows) == 5
    assert {row["method"] for row in rows} == {"Traced.Later"}


def test_nothing_to_tell(capsys, tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    text = output(capsys, str(tmp_path / "empty"))
    assert "No RPC messages" in text
    assert "None." in text
    assert output(capsys, str(tmp_path / "empty"), "--format", "csv") == ""


def test_what_cant_be_read_is_told(capsys, tmp_path):
    (tmp_path / "noise").write_bytes(b"\x0a\x05xx")
    assert "1 packets or events" in output(capsys, str(tmp_path / "noise"))


@pytest.mark.parametrize("arguments", [[], ["x", "--limit", "-1"], ["x", "--format", "xml"]])
def test_wrong_arguments(arguments):
    with pytest.raises(CommandError, match="--help"):
        command.run(arguments)


def test_a_missing_trace(tmp_path):
    with pytest.raises(CommandError, match="can't read"):
        command.run([str(tmp_path / "x")])
