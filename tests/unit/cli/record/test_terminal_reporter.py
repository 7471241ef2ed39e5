"""What `stretto record` prints about a recording."""

from __future__ import annotations

import sys

import pytest

from stretto.cli.record.terminal_reporter import TerminalReporter
from stretto.protos.trace import TraceStats
from stretto.recorder.host.contents import Contents
from stretto.recorder.host.reporter import Reporter
from stretto.recorder.host.result import RecordingResult


def result(size: int | None = 2048) -> RecordingResult:
    return RecordingResult(
        Contents(),
        TraceStats(),
        ["7: reason"],
        streamed=False,
        path="out",
        size=size,
        seconds=1.5,
        end_ns=0,
    )


def report(reporter: Reporter, size: int | None = 2048) -> None:
    reporter.snapshot_written("copy")
    reporter.snapshot_failed("no room")
    reporter.error("disk full")
    reporter.stopped()
    reporter.finished(result(size))


def test_messages_and_summary_are_printed_to_standard_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report(TerminalReporter(quiet=False))
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[:5] == [
        "stretto: snapshot in copy",
        "stretto: no snapshot: no room",
        "stretto: disk full",
        "stretto: 0 events, 0 processes, 0 threads",
        "  not followed: 7: reason",
    ]
    assert "trace: out, 2.0 KiB, 1.5 s" in err


def test_summary_has_a_note_if_the_trace_has_no_events(
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = result()
    given.not_followed, given.notes = [], ["no category"]
    TerminalReporter(quiet=False).finished(given)
    assert capsys.readouterr().err.splitlines()[1:3] == [
        "  note: no category",
        "  note: the trace has no events: there were none of an enabled category",
    ]


def test_summary_of_a_trace_that_was_not_written_names_no_file(
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = result(size=None)
    given.not_followed = []
    TerminalReporter(quiet=False, private=["logs"]).finished(given)
    assert capsys.readouterr().err == "stretto: no complete trace was written\n"


def test_quiet_reporter_prints_errors_only(capsys: pytest.CaptureFixture[str]) -> None:
    reporter = TerminalReporter(quiet=True)
    report(reporter)
    assert capsys.readouterr() == ("", "stretto: disk full\n")
    assert not reporter.shows_progress


def test_closed_standard_error_is_ignored(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    report(TerminalReporter(quiet=False))
    assert capsys.readouterr().out == ""
