"""The example of stretto-fidl/docs/transport.md runs."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest

from fidl_support.documentation import DOCS


def test_example_of_the_transport_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (DOCS / "transport.md").read_text("utf-8")
    blocks = dict(re.findall(r"^```(fidl|python)\n(.*?)^```", text, re.DOTALL | re.MULTILINE))
    monkeypatch.chdir(tmp_path)
    Path("calculator.fidl").write_text(blocks["fidl"])
    before = set(threading.enumerate())
    exec(compile(blocks["python"], "transport.md", "exec"), {})
    for thread in set(threading.enumerate()) - before:
        thread.join(30)
    printed = capsys.readouterr().out
    assert printed.splitlines() == ["3", "one-way: nobody waits", "error 1", "3"]
