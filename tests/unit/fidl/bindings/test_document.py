"""The examples of docs/fidl_bindings.md run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from stretto.fidl.compiler import compile_sources
from tests.support.sources import ROOT


def test_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "fidl_bindings.md").read_text("utf-8")
    blocks = re.findall(r"^```(fidl|python)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    (definition,) = [block for language, block in blocks if language == "fidl"]
    monkeypatch.chdir(tmp_path)
    Path("shop.json").write_text(json.dumps(compile_sources({"shop.fidl": definition})))
    program = "\n".join(block for language, block in blocks if language == "python")
    assert program.count("assert") >= 8
    exec(compile(program, "fidl_bindings.md", "exec"), {})
