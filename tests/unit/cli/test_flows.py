"""The verb `flows`: three reports as tables, CSV and JSON."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stretto import flows
from stretto.base.errors import CommandError
from stretto.cli.flows import command
from stretto.protos.trace import DebugAnnotation, TracePacket, TrackEvent
from stretto.protozero.wire import bytes_field
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


def test_tables_list_methods_slowest_calls_and_unmatched_calls(capsys, trace):
    text = output(capsys, trace)
    assert text.startswith("Calls by method\n")
    lines = [line.split() for line in text.splitlines()]
    assert ["Traced.Echo", "request", "20", "0"] in [line[:4] for line in lines]
    assert ["Traced.Later", "one-way", "5", "0"] in [line[:4] for line in lines]
    assert ["Traced.Count", "request", "1", "1"] in [line[:4] for line in lines]
    assert "latency p50 µs" in text
    assert "Slowest calls" in text
    assert text.split("Unmatched")[1].count("Traced.Count") == 1


def test_csv_contains_latencies_per_method(capsys, trace):
    (echo, later, count) = csv.DictReader(io.StringIO(output(capsys, trace, "--format", "csv")))
    assert (echo["method"], echo["kind"], echo["count"]) == ("Traced.Echo", "request", "20")
    assert 0 < int(echo["queueing_p50_ns"]) < int(echo["latency_p50_ns"])
    assert int(echo["latency_p50_ns"]) <= int(echo["latency_p99_ns"]) <= int(echo["latency_max_ns"])
    assert later["kind"] == "one-way"
    assert count["unmatched"] == "1"
    assert count["latency_p50_ns"] == ""


def test_json_contains_methods_and_the_slowest_and_unmatched_calls(capsys, trace):
    found = json.loads(output(capsys, trace, "--format", "json", "--limit", "3"))
    assert [row["count"] for row in found["methods"]] == [20, 5, 1]
    latencies = [row["latency_ns"] for row in found["slowest"]]
    assert len(latencies) == 3
    assert latencies == sorted(latencies, reverse=True)
    assert found["slowest"][0]["flow"].startswith("0x")
    assert found["slowest"][0]["sender"]
    assert [row["method"] for row in found["unmatched"]] == ["Traced.Count"]
    assert found["damaged"] == 0


def test_report_and_method_options_select_rows_of_the_report(capsys, trace):
    arguments = ("--format", "csv", "--report", "slowest", "--method", "*.Later", "--limit", "9")
    rows = list(csv.DictReader(io.StringIO(output(capsys, trace, *arguments))))
    assert len(rows) == 5
    assert {row["method"] for row in rows} == {"Traced.Later"}


def test_limited_lists_end_with_the_number_of_omitted_rows(capsys, trace):
    text = output(capsys, trace, "--limit", "1")
    assert "… and 24 more: see --limit" in text.split("Slowest calls")[1]
    text = output(capsys, trace, "--limit", "0", "--report", "unmatched")
    assert text == "Unmatched\n\n… and 1 more: see --limit\n\n"
    found = json.loads(output(capsys, trace, "--format", "json"))
    assert len(found["slowest"]) == 25


def test_method_pattern_without_a_protocol_matches_the_methods_of_all_protocols(capsys, trace):
    text = output(capsys, trace, "--method", "Ec?o", "--report", "methods")
    assert "Traced.Echo" in text
    assert "Later" not in text
    with pytest.raises(CommandError, match=r"no method matches 'Nope': there are Traced\.C"):
        command.run([trace, "--method", "Nope"])


def message_packets(*events: tuple[int, str, str, str, int]) -> bytes:
    """Encode packets with instants from (timestamp, role, kind, method, flow)."""
    packets = [TracePacket(sequence_flags=1, trusted_packet_sequence_id=2)]
    for timestamp, role, kind, method, flow in events:
        texts = {"role": role, "kind": kind, "method": method}
        event = TrackEvent(
            type=TrackEvent.TYPE_INSTANT,
            debug_annotations=[
                DebugAnnotation(name=name, string_value=text) for name, text in texts.items()
            ],
            flow_ids=[flow] if flow else [],
        )
        packets.append(
            TracePacket(timestamp=timestamp, trusted_packet_sequence_id=2, track_event=event)
        )
    return b"".join(bytes_field(1, packet.encode()) for packet in packets)


def test_each_message_without_a_flow_is_counted_once(capsys, tmp_path):
    ends = [("send", "request"), ("receive", "request"), ("send", "reply"), ("receive", "reply")]
    calls = [(time, role, kind, "Ask", 0) for time in range(7) for role, kind in ends]
    (tmp_path / "trace").write_bytes(message_packets(*calls))
    text = output(capsys, str(tmp_path / "trace"))
    (row,) = [line.split() for line in text.split("Slowest")[0].splitlines() if "Ask" in line]
    assert row[:4] == ["Ask", "request", "7", "7"]
    assert "28 messages have no flow" in text


def test_calls_received_before_they_were_sent_are_reported(capsys, tmp_path):
    events = [(5, "receive", "one-way", "Tell", 9), (8, "send", "one-way", "Tell", 9)]
    (tmp_path / "trace").write_bytes(message_packets(*events))
    assert "1 calls arrived before they were sent" in output(capsys, str(tmp_path / "trace"))


def test_control_characters_in_names_are_escaped(capsys, tmp_path):
    (tmp_path / "trace").write_bytes(message_packets((5, "send", "one-way", "a\n\x1b[31mb", 9)))
    assert "a\\n\\x1b[31mb" in output(capsys, str(tmp_path / "trace"))


def test_gzip_compressed_trace_is_read_from_a_file_or_standard_input(
    capsys, monkeypatch, trace, tmp_path
):
    whole = output(capsys, trace)
    packed = tmp_path / "trace.gz"
    packed.write_bytes(gzip.compress(Path(trace).read_bytes()))
    assert output(capsys, str(packed)) == whole
    with open(packed, "rb") as file:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(file))
        assert output(capsys, "-") == whole
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(CommandError, match="gzip compression is damaged"):
        command.run([str(packed)])


@pytest.mark.parametrize(
    ("data", "message"),
    [(b"noise", "no trace"), (b'[{"ph": "X"}]', "Chrome's"), (b"packet {}", "stretto convert")],
)
def test_input_that_is_no_perfetto_trace_is_refused(tmp_path, data, message):
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(CommandError, match=message):
        command.run([str(tmp_path / "x")])


def test_damaged_packets_are_omitted_and_counted(capsys, trace, tmp_path):
    data = bytearray(Path(trace).read_bytes())
    hurt = data.index(b"Echo")
    data[hurt - 1] = 0xFF  # The byte before an interned name is the length of the name.
    (tmp_path / "hurt").write_bytes(data)
    text = output(capsys, str(tmp_path / "hurt"))
    assert "Traced.Later" in text
    assert "of the trace couldn't be read" in text


def run_into(trace, stdout):
    command = [sys.executable, "-m", "stretto", "flows", trace]
    return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)


def test_closed_output_pipe_ends_the_command_silently(trace):
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as output:
        run = run_into(trace, output)
    assert (run.returncode, run.stderr) == (141, "")


def test_full_disk_is_reported(trace):
    with open("/dev/full", "wb") as output:
        run = run_into(trace, output)
    assert run.returncode == 1
    assert run.stderr == "stretto: can't write the output: No space left on device.\n"


def test_report_of_a_trace_without_rpc_messages_contains_a_note(capsys, tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    assert command.run([str(tmp_path / "empty")]) == 0
    printed = capsys.readouterr()
    assert "No RPC messages are in this trace.\n`stretto record --flows app.py`" in printed.out
    assert "None." in printed.out
    assert "empty': unread: the whole trace: it is empty." in printed.err
    assert command.run([str(tmp_path / "empty"), "--format", "csv"]) == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "No RPC messages are in this trace.\n`stretto record --flows app.py`" in printed.err


@pytest.mark.parametrize(
    ("ends", "lacking"),
    [
        ([("send", "request"), ("receive", "reply")], "server"),
        ([("receive", "request"), ("send", "reply")], "client"),
        ([("send", "request"), ("receive", "request")], ""),
    ],
)
def test_side_without_messages_is_named(capsys, tmp_path, ends, lacking):
    events = [(time, role, kind, "Ask", 9) for time, (role, kind) in enumerate(ends)]
    (tmp_path / "trace").write_bytes(message_packets(*events))
    text = output(capsys, str(tmp_path / "trace"))
    assert ("is recorded in this trace" in text) == bool(lacking)
    assert f"No {lacking} is recorded in this trace" in text or not lacking


def test_unreadable_packets_are_counted_in_the_output(capsys, tmp_path):
    (tmp_path / "noise").write_bytes(b"\x0a\x05xx")
    assert "1 packets or events" in output(capsys, str(tmp_path / "noise"))


@pytest.mark.parametrize("arguments", [[], ["x", "--limit", "-1"], ["x", "--format", "xml"]])
def test_invalid_arguments_are_refused(arguments):
    with pytest.raises(CommandError, match="--help"):
        command.run(arguments)


def test_missing_trace_is_an_error(tmp_path):
    with pytest.raises(CommandError, match="can't read"):
        command.run([str(tmp_path / "x")])
