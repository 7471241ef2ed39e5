"""What the documents and the texts of `--help` say of commands and of Python is true."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import stretto

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
COMMAND = re.compile(r"\bstretto ([a-z]+)\b([^`\n|]*)")
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
OF_THE_PROGRAM = re.compile(r" (?:\S+\.py|gunicorn|uvicorn|-m|-c|--) .*")
"""What follows belongs to the recorded program."""


@cache
def help_of(*verb: str) -> str:
    command = [sys.executable, "-m", "stretto", *verb, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout


@cache
def verbs() -> frozenset[str]:
    return frozenset(re.findall(r"^  stretto (\w+) ", help_of(), re.MULTILINE))


def commands(text: str) -> Iterator[tuple[str, set[str]]]:
    """The verbs in a text, each with the flags behind it."""
    for verb, rest in COMMAND.findall(text):
        if verb == "record":
            rest = OF_THE_PROGRAM.sub("", rest)
        yield verb, set(FLAG.findall(rest))


def check_commands(text: str) -> None:
    for verb, flags in commands(text):
        # `stretto fidl` is there where stretto-fidl is installed.
        if verb in verbs() and verb != "fidl":
            missing = {flag for flag in flags if flag not in help_of(verb)}
            assert not missing, f"stretto {verb}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_documented_commands_have_their_flags(document: Path) -> None:
    check_commands(document.read_text("utf-8"))


def test_the_commands_in_fenced_blocks_exist() -> None:
    for document in DOCUMENTS:
        blocks = re.findall(r"^```\n(.*?)^```", document.read_text("utf-8"), re.M | re.S)
        for line in "\n".join(blocks).splitlines():
            match = re.match(r"(?:\w+=\S+ )*stretto ([a-z]+)\b", line)
            if match is not None and document.name != "verbs.md":
                assert match[1] in verbs() | {"fidl"}, f"{document.name}: {line}"


def test_examples_of_help_have_their_flags() -> None:
    assert {"record", "view", "convert", "flows"} <= verbs()
    check_commands(help_of())
    for verb in verbs() - {"fidl"}:
        check_commands(help_of(verb))


def test_flags_of_tables_are_in_help() -> None:
    for name, verb_names in {"view": ("view", "bridge"), "record": ("record",)}.items():
        text = (ROOT / "docs" / f"{name}.md").read_text("utf-8")
        helps = "\n".join(map(help_of, verb_names))
        flags = set(FLAG.findall("\n".join(re.findall(r"^\| .*", text, re.MULTILINE))))
        assert flags
        assert not {flag for flag in flags if flag not in helps}


@pytest.mark.skipif(not stretto.available(), reason="nothing is recorded here")
def test_the_python_of_the_readme_runs(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) > 3
    source = "def work(): pass\n" + "\n".join(blocks)
    # The service of a machine is not a test's to use.
    source = source.replace('backend="system"', 'backend="in_process"')
    command = [sys.executable, "-W", "error", "-c", source]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "trace.pftrace").stat().st_size > 0
