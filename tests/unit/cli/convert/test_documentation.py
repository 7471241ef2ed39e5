"""The commands in docs/fxt.md work as documented."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from stretto.analysis.fxt import format as fxt
from stretto.analysis.trace_format import format_of_name
from stretto.cli.main import main
from tests.support.recorded_events import record
from tests.support.sources import ROOT

TEXT = (ROOT / "docs/fxt.md").read_text()
BLOCKS = re.findall(r"^```\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    with record() as recorded:
        pass
    Path("trace.pftrace").write_bytes(recorded.trace)
    return tmp_path


def run(block: int) -> None:
    for line in BLOCKS[block].splitlines():
        stretto, *arguments = shlex.split(line)
        assert stretto == "stretto"
        assert main(arguments) == 0


def test_first_documented_command_converts_a_trace(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(0)
    assert (folder / "trace.fxt").read_bytes().startswith(fxt.MAGIC_BYTES)
    capsys.readouterr()
    assert main(["convert", "trace.pftrace", "trace.json"]) == 0
    assert json.loads(Path("trace.json").read_text())["packet"]


def test_documented_file_name_extensions_select_their_format() -> None:
    rows = re.findall(r"^\| (\w+) \| (`\..*?) \|", TEXT, re.MULTILINE)
    found = {name: re.findall(r"`(.*?)`", endings) for name, endings in rows}
    assert found.keys() == {"pftrace", "fxt", "text", "json"}
    for name, endings in found.items():
        assert {format_of_name(f"x{ending}") for ending in endings} == {name}
