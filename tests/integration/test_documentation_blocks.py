"""Every code block of every page is run or parsed, or a comment gives the reason why not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import stretto
from stretto.base.errors import CommandError
from tests.support import documentation
from tests.support.documentation import Block, blocks_of, check, check_tested_elsewhere, program_of
from tests.support.sources import ROOT
from tests.support.traced import Daemon

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
PROGRAMS = [page for page in PAGES if program_of(page)]
OTHER_BLOCKS = [block for page in PAGES for block in blocks_of(page) if block.language != "python"]


def name(item: Path | Block) -> str:
    if isinstance(item, Block):
        return item.place
    return str(item.relative_to(ROOT))


@pytest.mark.skipif(not stretto.available(), reason="nothing is recorded here")
@pytest.mark.parametrize("page", PROGRAMS, ids=name)
def test_python_blocks_of_a_page_run(page: Path, tmp_path: Path) -> None:
    program = program_of(page)
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / page.with_suffix(".py").name).write_text(program)
    command = [sys.executable, "-W", "error", page.with_suffix(".py").name]
    daemon = Daemon(tmp_path) if 'backend="system"' in program else None
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=os.environ if daemon is None else daemon.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
    finally:
        if daemon is not None:
            daemon.close()
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("block", OTHER_BLOCKS, ids=name)
def test_block_is_accepted_by_its_parser(block: Block, tmp_path: Path) -> None:
    check(block, tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_page_is_read_by_the_test_that_its_comment_names(page: Path) -> None:
    for block in blocks_of(page):
        check_tested_elsewhere(block)


def test_pages_of_each_kind_are_found() -> None:
    assert {"README.md", "CONTRIBUTING.md", "docs/events.md"} <= {name(page) for page in PAGES}
    assert len(PROGRAMS) > 5
    assert {block.language for block in OTHER_BLOCKS} >= {"", "sh", "textproto", "ini", "proto"}


# --- Tests that the checks fail on wrong blocks


def block(tmp_path: Path, text: str) -> Block:
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n\n{text}")
    (found,) = blocks_of(page)
    return found


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("textproto", "buffers { size_kb: many }\n"),
        ("ini", "ListenStream\n"),
        ("proto", "message A { B b = 1; }\n"),
        ("toml", "a = \n"),
        ("json", "{\n"),
        ("cobol", "STOP RUN.\n"),
        ("sh", "make nothing-of-the-kind\n"),
        ("sh", "python bench/nothing.py\n"),
        ("", "stretto trace --no-such-flag\n"),
        ("", "A=1 stretto record --no-such-flag app.py     text\n"),
        ("console", "$ stretto nothing\n"),
        ("", "stretto view\n"),
    ],
)
def test_wrong_block_is_reported(tmp_path: Path, language: str, text: str) -> None:
    found = block(tmp_path, f"```{language}\n{text}```\n")
    with pytest.raises((Exception, CommandError)):
        check(found, tmp_path)


def test_explanation_beside_a_documented_command_is_not_parsed() -> None:
    text = "$ stretto view trace.pftrace\nstretto flows a.pftrace   calls\nA=1 make x | y\noutput\n"
    assert list(documentation.commands(text)) == [
        ["stretto", "view", "trace.pftrace"],
        ["stretto", "flows", "a.pftrace"],
        ["make", "x"],
    ]


def test_comment_above_a_block_is_read(tmp_path: Path) -> None:
    found = block(
        tmp_path, "<!-- not run: no time -->\n<!-- setup: a = 1\nb = 2 -->\n```python\nc\n```\n"
    )
    assert found.notes == {"not run": "no time", "setup": "a = 1\nb = 2"}
    assert (found.line, found.text) == (6, "c\n")
    with pytest.raises(AssertionError, match="'skip'"):
        block(tmp_path, "<!-- skip: it -->\n```python\nc\n```\n")
    with pytest.raises(AssertionError, match="without a text"):
        block(tmp_path, "<!-- not run: -->\n```python\nc\n```\n")
