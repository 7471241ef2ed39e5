"""`stretto convert`: files, formats and messages."""

from __future__ import annotations

import gzip
import io
import json
import os
import pty
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import stretto
from stretto.analysis.trace_format import JSON, PFTRACE, format_of_start
from stretto.cli.convert.progress import Progress
from stretto.cli.main import main
from stretto.protozero import wire
from stretto.testing.decoded_packets import decode_packets
from tests.support.fxt_bytes import MAGIC
from tests.support.recorded_events import descriptors_of, events_of, record

category = stretto.Category("test.convert")


@pytest.fixture(scope="module")
def trace() -> bytes:
    with record() as recorded:
        for number in range(10):
            with category.slice("frame", number=number, text="é\n", flow=number + 1):
                category.instant("now", terminating_flow=number + 1)
    return recorded.trace


@pytest.fixture
def folder(tmp_path: Path, trace: bytes, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "in.pftrace").write_bytes(trace)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shape(trace: bytes) -> list[tuple[object, ...]]:
    return [
        (each.timestamp, each.kind, each.category, each.name, each.args, each.track)
        for each in events_of(trace)
    ]


@pytest.mark.parametrize("ending", ["txt", "pbtxt", "textproto", "json"])
def test_text_and_json_convert_back_to_the_same_packets(
    ending: str, folder: Path, trace: bytes
) -> None:
    assert main(["convert", "in.pftrace", f"out.{ending}"]) == 0
    assert main(["convert", f"out.{ending}", "back.pftrace"]) == 0
    back = (folder / "back.pftrace").read_bytes()
    assert list(decode_packets(back)) == list(decode_packets(trace))
    assert not list(folder.glob(".stretto-*"))


def test_fxt_converts_to_perfetto_and_json_and_back(
    folder: Path, trace: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["convert", "in.pftrace", "out.fxt"]) == 0
    assert (folder / "out.fxt").read_bytes().startswith(MAGIC)
    hint, _ = capsys.readouterr()
    assert "20 flow points, 10 slices, 10 instants, 1 process, 1 track in out.fxt" in hint
    assert main(["convert", "out.fxt", "back.perfetto-trace"]) == 0
    back = (folder / "back.perfetto-trace").read_bytes()
    assert descriptors_of(back).keys() == descriptors_of(trace).keys()
    assert main(["convert", "out.fxt", "out.json"]) == 0
    assert main(["convert", "out.json", "again.fxt"]) == 0
    assert (folder / "again.fxt").read_bytes().startswith(MAGIC)


def test_packets_without_an_fxt_record_are_reported(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "in.txt").write_text("packet { process_stats { } } packet { ftrace_events { } }")
    assert main(["convert", "in.txt", "out.fxt"]) == 1
    hint, complained = capsys.readouterr()
    assert not hint
    assert "nothing to convert, but packets with process_stats (1)" in complained
    assert not (folder / "out.fxt").exists()
    (folder / "in.txt").write_text(
        'packet { process_stats { } }\npacket { track_event { type: TYPE_INSTANT name: "x" } }'
    )
    assert main(["convert", "in.txt", "out.fxt"]) == 0
    hint, _ = capsys.readouterr()
    assert "1 instant in out.fxt" in hint
    assert "left out: packets with process_stats (1)" in hint
    assert main(["convert", "-q", "in.txt", "out.fxt"]) == 0
    assert capsys.readouterr() == ("", "")


def test_dash_means_standard_input_and_standard_output(
    folder: Path, trace: bytes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    read_end, write_end = os.pipe()
    with open(read_end, "rb") as pipe, open(folder / "sink", "w+") as sink:
        os.write(write_end, trace)
        os.close(write_end)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(pipe))
        with monkeypatch.context() as patched:
            patched.setattr(sys, "stdout", sink)
            assert main(["convert", "-", "-", "--to", "fxt"]) == 0
    assert (folder / "sink").read_bytes().startswith(MAGIC)
    hint, complained = capsys.readouterr()
    assert not hint
    assert "10 slices" in complained


def test_output_to_a_terminal_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ours, theirs = pty.openpty()
    try:
        with open(theirs, "w", closefd=False) as terminal, monkeypatch.context() as patched:
            patched.setattr(sys, "stdout", terminal)
            assert main(["convert", "in.pftrace", "-", "--to", "fxt"]) == 2
    finally:
        os.close(ours)
        os.close(theirs)
    assert "isn't for a terminal" in capsys.readouterr().err


REFUSED: list[tuple[list[str], str]] = [
    (["missing", "out.fxt"], "can't read 'missing': No such file"),
    (["in.pftrace", "none/out.fxt"], "can't write 'none/out.fxt': No such file"),
    (["in.pftrace", "in.pftrace", "--to", "fxt"], "is the input"),
    (["in.pftrace", "link", "--to", "fxt"], "is the input"),
    (["in.pftrace", "out.pftrace"], "has the format pftrace already"),
    (["in.pftrace", "out"], "the extension of 'out' is unknown"),
    (["junk", "out.fxt"], "isn't a trace"),
    (["packed", "out.fxt"], "gzip compression is damaged"),
    (["big.fxt", "out.pftrace"], "big-endian"),
    (["config.txt", "out.pftrace"], "convert: config.txt:2: a trace is a list of"),
    (["wrong.txt", "out.pftrace"], "wrong.txt:3:"),
    (["latin.txt", "out.pftrace"], "the text isn't in UTF-8"),
    (["in.pftrace"], "--help"),
    (["in.pftrace", "out.fxt", "--to", "abc"], "--help"),
]


@pytest.mark.parametrize(("arguments", "hint"), REFUSED)
def test_invalid_files_and_arguments_are_refused_and_change_nothing(
    arguments: list[str], hint: str, folder: Path, trace: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {
        "junk": b"junk",
        "packed": b"\x1f\x8b\x08",
        "big.fxt": MAGIC[::-1],
        "config.txt": b"\nbuffers { size_kb: 5 }",
        "wrong.txt": b"packet {}\npacket {\n  nothing: 5\n}",
        "latin.txt": b"packet { # \xff\n}",
    }
    for name, data in files.items():
        (folder / name).write_bytes(data)
    (folder / "link").symlink_to("in.pftrace")
    before = sorted(folder.iterdir())
    assert main(["convert", *arguments]) in (1, 2)
    output, complaint = capsys.readouterr()
    assert not output
    assert hint in complaint
    assert complaint.startswith("stretto: convert: ")
    assert complaint.count("\n") == (3 if arguments[0] == "wrong.txt" else 1)
    # The folder is unchanged.
    assert sorted(folder.iterdir()) == before
    assert (folder / "in.pftrace").read_bytes() == trace


def test_failed_conversion_keeps_the_existing_output(folder: Path) -> None:
    (folder / "out.pftrace").write_bytes(b"old")
    (folder / "in.txt").write_text("packet {} packet {")
    assert main(["convert", "in.txt", "out.pftrace"]) == 1
    assert (folder / "out.pftrace").read_bytes() == b"old"
    assert not list(folder.glob(".stretto-*"))


@pytest.mark.parametrize("ending", ["fxt", "txt", "json"])
@pytest.mark.parametrize(
    "garbage", [b"\xf3\x07" * 500, b"\x0a\x85garbage", b"\x12\x03abc", b"\x0a\x02\xff\xff"]
)
def test_garbage_does_not_replace_the_existing_output(
    garbage: bytes, ending: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "bad.pftrace").write_bytes(garbage)
    (folder / f"out.{ending}").write_bytes(b"good")
    assert main(["convert", "bad.pftrace", f"out.{ending}"]) == 1
    assert "has nothing to convert" in capsys.readouterr().err
    assert (folder / f"out.{ending}").read_bytes() == b"good"


@pytest.mark.parametrize("ending", ["pftrace", "txt", "json"])
def test_fxt_file_of_garbage_does_not_replace_existing_output(ending: str, folder: Path) -> None:
    (folder / "bad.fxt").write_bytes(b"\xf3\x07" * 500)
    (folder / f"out.{ending}").write_bytes(b"good")
    assert main(["convert", "bad.fxt", f"out.{ending}"]) == 1
    assert (folder / f"out.{ending}").read_bytes() == b"good"


@pytest.mark.parametrize("name", ["out.json", "out.fxt", "out.jsonl", "out.collapsed"])
def test_empty_input_is_refused(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "empty.pftrace").touch()
    assert main(["convert", "empty.pftrace", name]) == 1
    error = "stretto: convert: 'empty.pftrace' is empty: there is nothing to convert.\n"
    assert capsys.readouterr().err == error
    assert not (folder / name).exists()


@pytest.mark.parametrize("text", ["[]", '{"traceEvents": []}', '{"packet": []}'])
@pytest.mark.parametrize("name", ["out.pftrace", "out.fxt", "out.txt"])
def test_json_without_an_event_is_refused(
    folder: Path, text: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "empty.json").write_text(text)
    assert main(["convert", "empty.json", name]) == 1
    error = "stretto: convert: 'empty.json' is empty: there is nothing to convert.\n"
    assert capsys.readouterr().err == error
    assert not (folder / name).exists()


def test_chromes_json_is_not_taken_for_json_of_packets(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "chrome.json").write_text('[{"ph": "i", "name": "x", "ts": 1, "pid": 1, "tid": 1}]')
    assert main(["convert", "chrome.json", "out.json"]) == 2
    assert "is Chrome's JSON, and json is that of packets" in capsys.readouterr().err
    (folder / "packets.json").write_text('{"packet": [{"timestamp": "1"}]}')
    assert main(["convert", "packets.json", "out.json"]) == 2
    assert "has the format json already" in capsys.readouterr().err


def test_trace_without_events_is_converted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "bare.pftrace").write_bytes(b"\x0a\x02\x50\x01")  # A packet with a sequence's id.
    assert main(["convert", "bare.pftrace", "out.fxt"]) == 0
    assert "an empty trace in out.fxt" in capsys.readouterr().out


def test_traces_compressed_by_gzip_are_converted(
    folder: Path, trace: bytes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    packed = gzip.compress(trace)
    (folder / "packed.pftrace").write_bytes(packed)
    assert main(["convert", "in.pftrace", "plain.json"]) == 0
    assert main(["convert", "packed.pftrace", "out.json"]) == 0
    assert (folder / "out.json").read_bytes() == (folder / "plain.json").read_bytes()
    with open("packed.pftrace", "rb") as file:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(file))
        assert main(["convert", "-", "out.json"]) == 0
    assert (folder / "out.json").read_bytes() == (folder / "plain.json").read_bytes()
    assert main(["convert", "packed.pftrace", "packed.pftrace", "--to", "fxt"]) == 2
    assert (folder / "packed.pftrace").read_bytes() == packed
    (folder / "cut.pftrace").write_bytes(packed[:-9])
    capsys.readouterr()
    assert main(["convert", "cut.pftrace", "out.json"]) == 1
    assert "'cut.pftrace': the gzip compression is damaged" in capsys.readouterr().err
    assert (folder / "out.json").read_bytes() == (folder / "plain.json").read_bytes()


def test_fields_unknown_to_the_schema_are_counted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unknown = wire.bytes_field(990, b"x") + wire.bytes_field(990, b"y")
    event = wire.bytes_field(11, wire.bytes_field(23, b"name") + unknown)
    (folder / "in.pftrace").write_bytes(wire.bytes_field(1, event + unknown))
    assert main(["convert", "in.pftrace", "out.json"]) == 0
    assert "left out: fields that the schema doesn't know (4)" in capsys.readouterr().out
    assert main(["convert", "in.pftrace", "out.txt"]) == 0
    # The text format keeps unknown fields, as comments.
    assert "left out" not in capsys.readouterr().out
    assert main(["convert", "out.txt", "back.pftrace"]) == 0
    assert "left out: fields known by number only (4)" in capsys.readouterr().out


def test_content_determines_the_format_rather_than_the_file_name(
    folder: Path, trace: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "in.pftrace").rename("misnamed.json")
    assert main(["convert", "misnamed.json", "out.txt"]) == 0
    assert "has the extension of json, but is read as pftrace" in capsys.readouterr().err
    (folder / "out.txt").rename("text.pftrace")
    assert main(["convert", "-q", "text.pftrace", "back.pftrace"]) == 0
    assert capsys.readouterr() == ("", "")
    assert list(decode_packets((folder / "back.pftrace").read_bytes())) == list(
        decode_packets(trace)
    )


def test_packet_length_that_looks_like_json_is_recognized_as_pftrace() -> None:
    for length in b"{[ \t\n":
        packet = wire.bytes_field(1, b"\x5a" + bytes((length - 2,)) + bytes(length - 2))
        assert packet[:2] == bytes((0x0A, length))
        assert format_of_start(packet) == PFTRACE
    assert format_of_start(b'\n{ "packet": [') == JSON


def test_closed_standard_input_or_output_is_an_error_only_if_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", None)
        assert main(["convert", "in.pftrace", "-", "--to", "fxt"]) == 2
        assert main(["convert", "in.pftrace", "out.fxt"]) == 0
    assert "standard output is closed" in capsys.readouterr().err
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdin", None)
        assert main(["convert", "-", "out.fxt"]) == 2
        assert main(["flows", "-"]) == 2
    assert capsys.readouterr().err.count("standard input is closed") == 2
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", None)
        assert main(["convert", "missing", "-", "--to", "json"]) == 2
        assert main(["convert", "in.pftrace", "-", "--to", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["packet"]


def test_output_is_readable_only_by_its_owner(folder: Path) -> None:
    assert main(["convert", "in.pftrace", "out.fxt"]) == 0
    assert stat.S_IMODE((folder / "out.fxt").stat().st_mode) == 0o600


def test_misnamed_trace_is_recognized_by_its_first_bytes(folder: Path) -> None:
    assert main(["convert", "in.pftrace", "out.fxt"]) == 0
    (folder / "out.fxt").rename("misnamed.pftrace")
    assert main(["convert", "misnamed.pftrace", "out.pftrace"]) == 0
    (folder / "in.pftrace").rename("trace")
    assert main(["convert", "trace", "out.fxt"]) == 0


def test_help_contains_an_example_and_the_formats(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["convert", "--help"])
    text = capsys.readouterr().out
    assert "stretto convert trace.pftrace trace.fxt" in text
    assert "Chrome's JSON" in text


def test_progress_appears_after_a_while_and_is_cleared_at_the_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr("stretto.cli.convert.progress.time.monotonic", lambda: now[0])
    written: list[bytes] = []
    write: Callable[[bytes], object] = written.append
    progress = Progress(io.BytesIO(bytes(1000)), write, shown=True)
    assert len(progress.reader.read(100)) == 100
    progress.write(b"abc")
    assert capsys.readouterr().err == ""
    now[0] = 2
    progress.write(b"def")
    assert capsys.readouterr().err == "\rstretto: 100 bytes read, 6 bytes written"
    progress.clear()
    assert capsys.readouterr().err.startswith("\r  ")
    assert written == [b"abc", b"def"]
