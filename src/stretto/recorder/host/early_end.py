"""Says why a recording has ended before its program, without an error."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto.recorder.host.options import RecordingOptions


def early_end(options: RecordingOptions, seconds: float) -> str:
    """Return a line for the summary.

    Args:
        options: the options of the recording.
        seconds: the time from its start to its end.
    """
    reason = _reason(options, seconds)
    return f"the recording ended after {seconds:.1f} s, before the program: {reason}"


def _reason(options: RecordingOptions, seconds: float) -> str:
    if options.duration_ms and seconds * 1000 >= options.duration_ms:
        return "its --duration was over"
    if options.max_size is not None:
        return f"the trace reached its {'--size' if options.auto_size else '--max-size'}"
    return "the tracing service ended the session"
