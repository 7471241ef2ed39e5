from __future__ import annotations

import json
from pathlib import Path

import pytest

from stretto.cli.main import main
from stretto.fidl.bindings import load
from stretto.fidl.compiler import compile_sources
from stretto.protozero import wire

GREETER = "library demo.greeter; closed protocol Greeter { strict Greet(); };"
(METHOD,) = load(compile_sources({"greeter.fidl": GREETER})).Greeter.METHODS


@pytest.fixture
def ir(tmp_path: Path) -> str:
    path = tmp_path / "greeter.json"
    path.write_text(json.dumps(compile_sources({"greeter.fidl": GREETER})))
    return str(path)


def trace(name: bytes) -> bytes:
    return wire.bytes_field(1, wire.bytes_field(11, wire.bytes_field(23, name)))


def test_a_trace_gets_names(ir: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    source.write_bytes(trace(f"ordinal {METHOD.ordinal:#x}".encode()) + trace(b"ordinal 0x5"))
    assert main(["fidl", "symbolize", str(source), ir, "-o", str(out)]) == 0
    assert out.read_bytes() == trace(b"Greet") + trace(b"ordinal 0x5")
    assert capsys.readouterr().out == "1 ordinals got a name, 1 have none.\n"


def test_what_is_no_trace(ir: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "in"
    out = str(tmp_path / "out")
    assert main(["fidl", "symbolize", str(source), ir, "-o", out]) != 0
    assert "No such file" in capsys.readouterr().err
    source.write_bytes(b"\x0a\x05abc")
    assert main(["fidl", "symbolize", str(source), ir, "-o", out]) != 0
    assert "it breaks off 5 bytes before its end" in capsys.readouterr().err
    assert main(["fidl", "symbolize", str(source), str(source), "-o", out]) != 0
    assert "isn't JSON" in capsys.readouterr().err
