"""The examples in docs/protozero.md work as documented."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from stretto.protozero.writer import MessageWriter

DOCUMENT = Path(__file__).parents[3] / "docs" / "protozero.md"


def test_documented_examples_run() -> None:
    text = DOCUMENT.read_text("utf-8")
    examples = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(examples) == 8
    names: dict[str, Any] = {}
    for example in examples:
        exec(compile(example, str(DOCUMENT), "exec"), names)


def test_documented_redundant_length_is_correct() -> None:
    assert "begins with `1a 87 81 80 00`" in DOCUMENT.read_text("utf-8")
    message = MessageWriter()
    with message.nested(3, MessageWriter) as nested:
        nested.append_raw(bytes(0x87))
    assert message.finish().startswith(b"\x1a\x87\x81\x80\x00")
