"""The examples in docs/protozero_generator.md work as documented."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from stretto.protos.config import TraceConfig
from stretto.protozero.text_format import TextFormatError, parse_text
from tests.support.generated import load_files

DOCUMENT = Path(__file__).parents[3] / "docs" / "protozero_generator.md"


def blocks(language: str) -> list[str]:
    text = DOCUMENT.read_text("utf-8")
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [block for name, block in fenced if name == language]


def test_documented_examples_run(tmp_path: Path) -> None:
    (schema,) = blocks("proto")
    (tmp_path / "sensor.proto").write_text(schema)
    load_files(tmp_path, ["sensor.proto"], "app.protos")
    examples = blocks("python")
    assert len(examples) == 4
    names: dict[str, Any] = {}
    for example in examples:
        exec(compile(example, str(DOCUMENT), "exec"), names)


def test_documented_error_message_is_printed() -> None:
    (shown,) = blocks("")
    assert shown.startswith("config.pbtxt:")
    with pytest.raises(TextFormatError) as error:
        parse_text("\n  duration_ms: soon", TraceConfig, "config.pbtxt")
    assert str(error.value) == shown
