"""The commands of docs/symbolize.md have the documented results."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from fidl_support.documentation import DOCS
from stretto.analysis.fxt import format as fxt
from stretto.cli.main import main
from stretto_fidl.bindings import load
from stretto_fidl.compiler import compile_sources
from tests.support.fxt_traces import CLIENT, SERVER, FxtTrace

TEXT = (DOCS / "symbolize.md").read_text()
BLOCKS = re.findall(r"^```\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
GREETER = "library demo.greeter; closed protocol Greeter { strict Greet() -> (); };"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("greeter.fidl").write_text(GREETER)
    library = compile_sources({"greeter.fidl": GREETER})
    Path("greeter.json").write_text(json.dumps(library))
    (method,) = load(library).Greeter.METHODS
    trace = FxtTrace()
    for time, thread, kind in (
        (1000, CLIENT, fxt.FLOW_BEGIN),
        (3000, SERVER, fxt.FLOW_STEP),
        (8000, SERVER, fxt.FLOW_STEP),
        (9000, CLIENT, fxt.FLOW_END),
    ):
        trace.message(time, thread, (kind, 1 << 31), method.ordinal)
    Path("kernel.fxt").write_bytes(trace.data)
    return tmp_path


def run(block: int) -> None:
    for line in BLOCKS[block].splitlines():
        stretto, *arguments = shlex.split(line)
        assert stretto == "stretto"
        assert main(arguments) == 0


def test_first_command_of_the_page_gives_names_to_ordinals(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["convert", "kernel.fxt", "trace.pftrace"]) == 0
    run(0)
    assert (folder / "named.pftrace").exists()
    assert "1 ordinals got a name, 0 have none." in capsys.readouterr().out


def test_documented_names_of_kernel_messages_are_shown(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(1)
    said = capsys.readouterr().out
    assert "1 ordinals got a name, 0 have none." in said
    assert re.search(r"^Greet +request +1 +0 +8\.0 +8\.0 +8\.0 +2\.0 ", said, re.MULTILINE)


def test_flows_and_symbolize_commands_read_fxt(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["flows", "kernel.fxt"]) == 0
    assert re.search(r"^ordinal 0x[0-9a-f]+ +request +1", capsys.readouterr().out, re.MULTILINE)
    symbolize = ["fidl", "symbolize", "kernel.fxt", "greeter.json", "-o", "named.pftrace"]
    assert main(symbolize) == 0
    assert main(["flows", "named.pftrace"]) == 0
    assert re.search(r"^Greet +request +1", capsys.readouterr().out, re.MULTILINE)
    Path("big.fxt").write_bytes(fxt.BIG_ENDIAN_MAGIC_BYTES)
    assert main(["flows", "big.fxt"]) == 1
    assert main(["fidl", "symbolize", "big.fxt", *symbolize[3:]]) == 1
    assert capsys.readouterr().err.count("big-endian") == 2
