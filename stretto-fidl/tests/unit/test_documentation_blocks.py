"""Every code block in the pages of stretto-fidl is parsed, or names the test that runs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fidl_support.documentation import DOCS
from stretto_fidl.compiler import compile_sources
from tests.support import documentation
from tests.support.documentation import Block, blocks_of, check, check_tested_elsewhere

BLOCKS = [
    block for page in [DOCS.parent / "README.md", *DOCS.glob("*.md")] for block in blocks_of(page)
]


def check_fidl(text: str, _folder: Path) -> None:
    """Check that a code block is a valid FIDL library."""
    assert compile_sources({"block.fidl": text})


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.place)
def test_code_block_is_accepted_by_the_parser_of_its_language(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(documentation.CHECKS, "fidl", check_fidl)
    check(block, tmp_path)
    check_tested_elsewhere(block)


def test_code_blocks_of_each_language_are_found() -> None:
    assert {block.language for block in BLOCKS} >= {"", "sh", "fidl", "python", "text", "console"}
