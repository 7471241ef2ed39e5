"""The Python examples of stretto-fidl/docs/bindings.md run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from fidl_support.documentation import DOCS
from stretto_fidl.compiler import compile_sources


def test_examples_of_the_bindings_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (DOCS / "bindings.md").read_text("utf-8")
    blocks = re.findall(r"^```(fidl|python)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    (definition,) = [block for language, block in blocks if language == "fidl"]
    monkeypatch.chdir(tmp_path)
    Path("shop.json").write_text(json.dumps(compile_sources({"shop.fidl": definition})))
    program = "\n".join(block for language, block in blocks if language == "python")
    assert program.count("assert") >= 8
    exec(compile(program, "bindings.md", "exec"), {})
