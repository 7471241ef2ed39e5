"""The line about memory at the end of a recording."""

from __future__ import annotations

from pathlib import Path

import pytest

from stretto.cli.record import memory_lines


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return tmp_path / "trace.pftrace"


def test_trace_without_heap_profiles_has_no_line(trace: Path) -> None:
    assert memory_lines.memory_lines("") == []
    assert memory_lines.memory_lines(str(trace)) == []
    trace.write_bytes(b"")
    assert memory_lines.memory_lines(str(trace)) == []
