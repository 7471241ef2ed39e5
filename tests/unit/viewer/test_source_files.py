"""The source text of recorded functions, for the source pane of the UI."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from stretto.protos.trace import InternedData, SourceLocation, Trace, TracePacket
from stretto.viewer import source_files
from stretto.viewer.source_files import file_info


def sources(folder: Path, *locations: tuple[str, str, int]) -> Any:
    """Return the sources of a trace with these source locations: (function, file, line)."""
    entries = [
        SourceLocation(iid=iid, function_name=function, file_name=file, line_number=line)
        for iid, (function, file, line) in enumerate(locations, 1)
    ]
    packets = [TracePacket(interned_data=InternedData(source_locations=[e])) for e in entries]
    path = folder / "trace"
    path.write_bytes(Trace(packet=[*packets, TracePacket(timestamp=1)]).encode())
    with open(path, "rb") as file:
        return json.loads(file_info(file.fileno()))


def test_sources_have_the_line_of_a_function_and_the_text_of_its_file(tmp_path: Path) -> None:
    shop = tmp_path / "shop.py"
    shop.write_text("def buy():\n    pass\n")
    found = sources(tmp_path, ("buy", str(shop), 1), ("buy", str(shop), 7), ("x", "<string>", 1))
    assert found == {
        "functions": {"buy": [str(shop), 1]},
        "files": {str(shop): ["def buy():\n    pass\n", 3]},
    }


def test_files_that_are_no_source_of_the_recording_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_files, "MAX_FILE_BYTES", 10)
    texts = {"secret.txt": "x", "large.py": "x" * 11, "changed.py": "x"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    later = os.stat(tmp_path).st_mtime + 3600
    os.utime(tmp_path / "changed.py", (later, later))
    names = [*texts, "missing.py", "nul\0.py"]
    found = sources(tmp_path, *((name, str(tmp_path / name), 1) for name in names))
    assert found == {"functions": {}, "files": {}}


def test_trace_without_source_locations_has_no_sources(tmp_path: Path) -> None:
    assert sources(tmp_path) == {"functions": {}, "files": {}}
