"""The examples of docs/compiler.md have the documented results."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fidl_support.documentation import DOCS
from stretto.cli.main import main
from stretto_fidl.compiler import compile_sources

BLOCKS = re.findall(
    r"^```(\w+)\n(.*?)^```", (DOCS / "compiler.md").read_text(), re.DOTALL | re.MULTILINE
)


def block(language: str, number: int = 0) -> str:
    return [text for kind, text in BLOCKS if kind == language][number]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("greeter.fidl").write_text(block("fidl"))
    return tmp_path


def test_documented_command_compiles_the_example(folder: Path) -> None:
    _, _, *arguments = block("console").split()
    assert main(arguments) == 0
    assert (folder / "greeter.json").exists()


def test_documented_error_is_printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (folder / "greeter.fidl").read_text()
    (folder / "greeter.fidl").write_text(text.replace("<Language>", "<Langage>"))
    assert main(["fidl", "compile", "greeter.fidl"]) == 1
    assert capsys.readouterr().err == "stretto: " + block("text")


@pytest.mark.usefixtures("folder")
def test_documented_python_code_prints_the_documented_text(
    capsys: pytest.CaptureFixture[str],
) -> None:
    exec(block("python"), {})
    assert capsys.readouterr().out == block("text", 1)


def test_documented_old_syntax_is_compiled() -> None:
    ir = compile_sources({"old.fidl": block("fidl", 1)})
    (protocol,) = ir["protocol_declarations"]
    assert protocol["openness"] == "closed"
    assert protocol["methods"][0]["maybe_attributes"][0]["name"] == "trace"
