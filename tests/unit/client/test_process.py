"""Names of processes and threads in a trace."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from stretto.client.track_event import process
from stretto.client.track_event.process_name import process_name
from stretto.profilers.heap.selected_processes import is_selected
from stretto.protos.config import HeapprofdConfig
from stretto.protos.trace import TrackDescriptor


class Unspeakable:
    def __str__(self) -> str:
        raise RuntimeError


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


@pytest.mark.parametrize("name", ["argv", "orig_argv"])
@pytest.mark.parametrize("words", [None, 5, [], ["shop.py", Path("a"), Unspeakable()]])
def test_process_is_described_whatever_the_program_makes_of_its_command_line(
    command_line: pytest.MonkeyPatch, name: str, words: object
) -> None:
    command_line.setattr(sys, name, words)
    assert process.process_descriptor(1)
    assert process.process_tree(1)
    assert is_selected(HeapprofdConfig(process_cmdline=["other"])) is False


@pytest.mark.parametrize("name", ["argv", "orig_argv"])
def test_process_is_described_after_the_program_has_deleted_its_command_line(
    command_line: pytest.MonkeyPatch, name: str
) -> None:
    command_line.delattr(sys, name)
    assert process.process_descriptor(1)
    assert process.process_tree(1)
    assert process_name()


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
