"""Finds the patterns of `--include` that matched no function in any process."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container

    from stretto.recorder.host.options import RecordingOptions

MAX_PATTERNS = 255
"""Matches of further patterns aren't reported: see `recorder.fork_socket`."""


def unmatched_notes(options: RecordingOptions, matched: Container[int]) -> list[str]:
    """Return a line for each pattern that matched nothing; an attached program reports no matches.

    Args:
        options: the options of the recording.
        matched: the numbers of the patterns that some function has matched, in any process.
    """
    if options.attach or "python.functions" not in options.categories:
        return []
    patterns = options.target.get("include", [])
    return [
        f"no recorded function matches --include {pattern}"
        for number, pattern in enumerate(patterns[:MAX_PATTERNS])
        if number not in matched and pattern not in patterns[:number]
    ]
