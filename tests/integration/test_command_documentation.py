"""Each flag that a document or a `--help` text names for a command exists.

Of the documents only the prose is checked here; `test_documentation_blocks.py` checks the code
blocks.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

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
    """Return the verbs of `stretto` commands in a text, each with the flags after it."""
    for verb, rest in COMMAND.findall(text):
        if verb == "record":
            rest = OF_THE_PROGRAM.sub("", rest)
        yield verb, set(FLAG.findall(rest))


def check_commands(text: str) -> None:
    for verb, flags in commands(text):
        # `stretto fidl` exists only if stretto-fidl is installed.
        if verb in verbs() and verb != "fidl":
            missing = {flag for flag in flags if flag not in help_of(verb)}
            assert not missing, f"stretto {verb}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_flags_of_documented_commands_exist(document: Path) -> None:
    check_commands(document.read_text("utf-8"))


def test_flags_in_examples_of_help_exist() -> None:
    assert {"record", "view", "convert", "flows"} <= verbs()
    check_commands(help_of())
    for verb in verbs() - {"fidl"}:
        check_commands(help_of(verb))


def test_flags_in_tables_of_documents_are_in_help() -> None:
    for name, verb_names in {"view": ("view", "bridge"), "record": ("record",)}.items():
        text = (ROOT / "docs" / f"{name}.md").read_text("utf-8")
        helps = "\n".join(map(help_of, verb_names))
        flags = set(FLAG.findall("\n".join(re.findall(r"^\| .*", text, re.MULTILINE))))
        assert flags
        assert not {flag for flag in flags if flag not in helps}
