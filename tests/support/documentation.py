"""Reads the code blocks of documentation pages, and checks each by its language.

A fenced block may have comments directly above it, which the rendered page doesn't show:

    <!-- setup: def work(): pass -->        code that is inserted before the block
    <!-- tested by: tests/unit/test_x.py --> another test runs the block
    <!-- not run: it deletes files -->       the reason why the block can't be run

The Python blocks of a page are one program. Every other block is checked by itself. A language
that has no check here is an error, so that no block is skipped by accident.
"""

from __future__ import annotations

import argparse
import configparser
import importlib.util
import json
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from stretto.cli.record.arguments import RecordOptions
from stretto.cli.verbs import load_verb
from stretto.protos.config import TraceConfig
from stretto.protozero.generator.proto_parser import parse_imported
from stretto.protozero.text_format import parse_text
from tests.support.sources import ROOT

BLOCK = re.compile(
    r"^(?P<notes>(?:<!--(?:(?!-->).)*-->\n)*)```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
COMMENT = re.compile(r"<!--(.*?)-->\n", re.DOTALL)
NOTES = ("setup", "tested by", "not run")
COMMANDS = ("", "sh", "text", "console")
"""Languages of blocks that may hold commands, with explanations behind them or output below."""
COMMAND = re.compile(r"^(?:\$ )?(?:[A-Z_]+=\S+ )*(?P<words>(?:stretto|python|make) [^|>\n]*)", re.M)
COMMENT_COLUMN = re.compile(r"\s{2,}.*| 2$")
"""What stands behind a command: an explanation; `2` of `2>file`."""


class Block(NamedTuple):
    """A fenced code block of a documentation page."""

    page: Path
    line: int
    language: str
    text: str
    notes: dict[str, str]

    @property
    def place(self) -> str:
        """Page and line of the block, for error messages."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def runs_elsewhere(self) -> bool:
        """Return whether a comment exempts the block from the checks."""
        return "not run" in self.notes or "tested by" in self.notes


def blocks_of(page: Path) -> list[Block]:
    """Return the code blocks of a page, in order."""
    text = page.read_text("utf-8")
    return [
        Block(
            page,
            text.count("\n", 0, match.start("language")) + 1,
            match["language"],
            match["text"],
            _notes(match["notes"]),
        )
        for match in BLOCK.finditer(text)
    ]


def _notes(comments: str) -> dict[str, str]:
    notes = {}
    for comment in COMMENT.findall(comments):
        name, _, value = comment.strip().partition(":")
        assert name in NOTES, f"a comment above a block says {name!r}, which is none of {NOTES}"
        assert value.strip(), f"{name} without a text"
        notes[name] = value.strip()
    return notes


def program_of(page: Path) -> str:
    """Return the Python blocks of a page as one program, with the page's line numbers."""
    lines: list[str] = []
    for block in blocks_of(page):
        if block.language == "python" and not block.runs_elsewhere:
            lines += block.notes.get("setup", "").splitlines()
            lines += [""] * (block.line - len(lines))
            lines += block.text.splitlines()
    return "\n".join(lines)


def check(block: Block, folder: Path) -> None:
    """Check a code block of any language except Python.

    Args:
        block: The block to check.
        folder: An empty folder for temporary files.
    """
    if block.runs_elsewhere:
        return
    text = block.notes.get("setup", "") + "\n" + block.text
    if block.language in COMMANDS:
        for words in commands(text):
            check_command(words)
    else:
        assert block.language in CHECKS, f"no check for blocks of {block.language!r}"
        CHECKS[block.language](text, folder)


def check_tested_elsewhere(block: Block) -> None:
    """Check that the named test exists and reads the page."""
    test = block.notes.get("tested by")
    if test is not None:
        assert block.page.name in (ROOT / test).read_text("utf-8"), f"{test} doesn't read the page"


# --- Checks of configs, unit files and schemas


def check_config(text: str, _folder: Path) -> None:
    """Check that a block is a valid TraceConfig in text form."""
    assert parse_text(text, TraceConfig).data_sources


def check_unit(text: str, _folder: Path) -> None:
    """Check that a block is a valid unit file of systemd."""
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.read_string(text)
    assert parser.sections()


def check_proto(text: str, folder: Path) -> None:
    """Check that a block is a valid .proto schema whose imports exist."""
    syntax = "" if text.lstrip().startswith("syntax") else 'syntax = "proto3";\n'
    (folder / "block.proto").write_text(syntax + text)
    schemas = Path(str(importlib.util.find_spec("stretto.protos").submodule_search_locations[0]))  # type: ignore[union-attr,index]
    assert parse_imported(["block.proto"], [folder, schemas])


def check_toml(text: str, _folder: Path) -> None:
    """Check that a block is valid TOML."""
    assert tomllib.loads(text)


def check_json(text: str, _folder: Path) -> None:
    """Check that a block is valid JSON."""
    json.loads(text)


CHECKS: dict[str, Callable[[str, Path], None]] = {
    "textproto": check_config,
    "ini": check_unit,
    "proto": check_proto,
    "toml": check_toml,
    "json": check_json,
}
"""By language; stretto-fidl's tests add FIDL."""

# --- Checks of commands


def commands(text: str) -> Iterator[list[str]]:
    """Return the words of each `stretto`, `python` and `make` command in a block."""
    for match in COMMAND.finditer(text):
        yield shlex.split(COMMENT_COLUMN.sub("", match["words"].rstrip()))


def check_command(words: list[str]) -> None:
    """Check a command without running it."""
    program, *arguments = words
    {"stretto": check_verb, "python": check_python, "make": check_target}[program](arguments)


def check_verb(arguments: list[str]) -> None:
    """Check that the verb exists and accepts the arguments."""
    verb, *rest = arguments
    if not is_installed(verb):
        return
    if verb == "trigger":  # `stretto trigger` has no options and accepts any words
        assert rest
        return
    assert parses(verb, rest), f"stretto {verb} ran without parsing {rest}"


def is_installed(verb: str) -> bool:
    """Return whether a verb is installed; only `fidl` needs the distribution stretto-fidl."""
    return verb != "fidl" or importlib.util.find_spec("stretto_fidl") is not None


class _Parsed(BaseException):
    """Raised to end a verb as soon as its arguments are parsed."""


PARSING = ("parse_args", "parse_intermixed_args")
"""The methods of `ArgumentParser` that verbs call."""


def parses(verb: str, arguments: list[str]) -> bool:
    """Return whether a verb parses the arguments; the verb itself doesn't run.

    Raises:
        CommandError: The arguments are wrong.
    """
    if verb == "record":  # It parses its options by a table of its own.
        RecordOptions(arguments)
        return True
    with pytest.MonkeyPatch.context() as patch:
        for name in PARSING:
            patch.setattr(argparse.ArgumentParser, name, _ending(name))
        try:
            load_verb(verb)(arguments)
        except _Parsed:
            return True
    return False


def _ending(name: str) -> Callable[..., None]:
    """Return a method for `ArgumentParser` that parses, then raises `_Parsed` to end the verb."""
    original = getattr(argparse.ArgumentParser, name)

    def parse(parser: argparse.ArgumentParser, *args: object, **options: object) -> None:
        original(parser, *args, **options)
        raise _Parsed

    return parse


def check_python(arguments: list[str]) -> None:
    """Check that a script of the repository, or a module, exists."""
    if arguments[:1] == ["-m"]:
        assert importlib.util.find_spec(arguments[1]) is not None, arguments[1]
    elif re.match(r"(bench|examples|tools)/", arguments[0]):
        assert (ROOT / arguments[0]).exists(), arguments[0]


def check_target(arguments: list[str]) -> None:
    """Check that the targets of a `make` command are in the Makefile."""
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in (word for word in arguments if "=" not in word):
        assert re.search(rf"^\.PHONY:.*\b{target}\b", makefile, re.MULTILINE), f"make {target}"
