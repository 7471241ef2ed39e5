"""Names of processes and threads in a trace."""

from __future__ import annotations

import sys

import pytest

from stretto.client.track_event import process
from stretto.protos.trace import TrackDescriptor


@pytest.fixture
def command_line(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.delattr(sys.modules["__main__"], "__spec__", raising=False)
    return monkeypatch


def test_changed_process_name_is_announced_once(command_line: pytest.MonkeyPatch) -> None:
    announced: list[bytes] = []
    command_line.setattr(process._native, "set_process", lambda _uuid, data: announced.append(data))
    command_line.setattr(sys, "argv", ["renamed"])
    command_line.setattr(process, "_announced", process._announced)
    process.announce_process()
    process.announce_process()
    assert len(announced) == 1
    assert b"renamed" in announced[0]


def test_thread_described_within_announce_process_has_the_new_process_as_parent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After a fork, the call of `process_name` may record events of this thread."""
    described: list[bytes] = []

    def name() -> str:
        description = process.describe_thread(None)
        assert description is not None
        described.append(description[1])
        return "child"

    monkeypatch.setattr(process, "process_uuid", lambda: 77)
    monkeypatch.setattr(process, "process_name", name)
    monkeypatch.setattr(process._native, "set_process", lambda *_: None)
    for variable in ("_announced", "_process_uuid"):
        monkeypatch.setattr(process, variable, getattr(process, variable))
    process.announce_process()
    assert TrackDescriptor.decode(described[0]).parent_uuid == 77
