"""The line of the summary about a recording that ended before its program."""

from __future__ import annotations

from stretto.recorder.host.early_end import early_end
from stretto.recorder.host.options import RecordingOptions


def test_end_by_the_duration_is_named() -> None:
    options = RecordingOptions(duration_ms=300, max_size=1 << 20)
    assert early_end(options, 0.3) == (
        "the recording ended after 0.3 s, before the program: its --duration was over"
    )


def test_end_by_the_largest_size_names_its_option() -> None:
    full = RecordingOptions(max_size=1000, stream=True, duration_ms=9000)
    assert early_end(full, 2.0).endswith(": the trace reached its --max-size")
    auto = early_end(RecordingOptions(max_size=1000, stream=True, auto_size=1000), 2.0)
    assert auto.endswith(": the trace reached its --size")


def test_session_that_the_service_ended_is_named() -> None:
    text = early_end(RecordingOptions(system=True), 2.0)
    assert text.endswith(": the tracing service ended the session")
