from __future__ import annotations

import gzip
import json
import stat
from pathlib import Path

import pytest

from stretto.cli.main import main
from stretto.protozero import wire
from stretto_fidl.bindings import load
from stretto_fidl.compiler import compile_sources

GREETER = "library demo.greeter; closed protocol Greeter { strict Greet(); };"
(METHOD,) = load(compile_sources({"greeter.fidl": GREETER})).Greeter.METHODS


@pytest.fixture
def ir(tmp_path: Path) -> str:
    path = tmp_path / "greeter.json"
    path.write_text(json.dumps(compile_sources({"greeter.fidl": GREETER})))
    return str(path)


def trace(name: bytes) -> bytes:
    return wire.bytes_field(1, wire.bytes_field(11, wire.bytes_field(23, name)))


def test_ordinals_of_a_trace_are_replaced(
    ir: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    source.write_bytes(trace(f"ordinal {METHOD.ordinal:#x}".encode()) + trace(b"ordinal 0x5"))
    assert main(["fidl", "symbolize", str(source), ir, "-o", str(out)]) == 0
    assert out.read_bytes() == trace(b"Greet") + trace(b"ordinal 0x5")
    assert capsys.readouterr().out == "1 ordinals got a name, 1 have none.\n"


def test_gzipped_trace_is_written_to_standard_output(
    ir: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source = tmp_path / "in.gz"
    source.write_bytes(gzip.compress(trace(f"ordinal {METHOD.ordinal:#x}".encode())))
    assert main(["fidl", "symbolize", str(source), ir, "-o", "-"]) == 0
    out, err = capfdbinary.readouterr()
    assert out == trace(b"Greet")
    assert err == b"1 ordinals got a name, 0 have none.\n"
    assert not (tmp_path / "-").exists()
    source.write_bytes(source.read_bytes()[:-9])
    assert main(["fidl", "symbolize", str(source), ir, "-o", "-"]) == 1
    assert b"the gzip compression is damaged" in capfdbinary.readouterr().err


def test_output_to_a_terminal_is_refused(
    ir: str, monkeypatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main(["fidl", "symbolize", "in", ir, "-o", "-"]) == 2
    assert "isn't for a terminal" in capsys.readouterr().err


def test_failed_write_leaves_the_old_file(
    ir: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    source.write_bytes(trace(b"x"))
    out.write_bytes(b"old")
    out.chmod(0o644)
    assert main(["fidl", "symbolize", str(source), ir, "-o", "/dev/full"]) == 1
    complaint = capsys.readouterr().err
    assert complaint.endswith("fidl symbolize: can't write '/dev/full': No space left on device.\n")
    assert main(["fidl", "symbolize", str(tmp_path / "none"), ir, "-o", str(out)]) == 1
    assert out.read_bytes() == b"old"
    assert main(["fidl", "symbolize", str(source), ir, "-o", str(out)]) == 0
    assert out.read_bytes() == trace(b"x")
    assert stat.S_IMODE(out.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "methods", [None, 5, [{}], [{"ordinal": "x", "name": "M"}], [{"ordinal": 1, "name": "\ud800"}]]
)
def test_error_for_an_invalid_ir_has_one_line(
    ir: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], methods: object
) -> None:
    broken = json.loads(Path(ir).read_text())
    broken["protocol_declarations"][0]["methods"] = methods
    Path(ir).write_text(json.dumps(broken))
    assert main(["fidl", "symbolize", "in", ir, "-o", str(tmp_path / "out")]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_missing_and_truncated_traces_are_errors(
    ir: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "in"
    out = str(tmp_path / "out")
    assert main(["fidl", "symbolize", str(source), ir, "-o", out]) != 0
    assert "No such file" in capsys.readouterr().err
    source.write_bytes(b"\x0a\x05abc")
    assert main(["fidl", "symbolize", str(source), ir, "-o", out]) != 0
    assert "it breaks off 5 bytes before its end" in capsys.readouterr().err
    assert main(["fidl", "symbolize", str(source), str(source), "-o", out]) != 0
    assert "isn't JSON" in capsys.readouterr().err
