"""The result of a recording, which a reporter shows to its user."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from stretto.profilers.sampling.profile import Profile
    from stretto.protos.trace import TraceStats
    from stretto.recorder.host.contents import Contents
    from stretto.recorder.host.detail import Rise
    from stretto.recorder.host.totals import ProcessTotals


class RecordingResult:
    """The result of a finished recording.

    Args:
        contents: the counted contents of the trace; None if it was streamed into a pipe.
        stats: the last statistics of the service.
        not_followed: a line per process or reason that is missing in the trace.
        streamed: whether the trace was written while the program ran; otherwise it was kept in a
            ring.
        path: the file of the trace; "" for a pipe.
        size: bytes of the file, 0 for a pipe; None if the file could not be written, or if the
            pipe did not take the whole trace.
        seconds: the time from the start of the recording to its end.
        end_ns: the time of the end, by the boot-time clock.
        totals: with auto detail, the totals of the processes.
        rises: with auto detail, the rises of its threshold.
        auto_detail: whether the recording had auto detail.
        profiles: the samples of the stacks, by data source.
        notes: further lines of the summary: why the recording ended early, and what was named
            without an effect: categories, data sources, patterns, triggers.
    """

    def __init__(
        self,
        contents: Contents | None,
        stats: TraceStats,
        not_followed: Sequence[str],
        *,
        streamed: bool,
        path: str,
        size: int | None,
        seconds: float,
        end_ns: int,
        totals: Sequence[ProcessTotals] = (),
        rises: Sequence[Rise] = (),
        auto_detail: bool = False,
        profiles: Sequence[Profile] = (),
        notes: Sequence[str] = (),
    ) -> None:
        self.contents = contents
        self.stats = stats
        self.not_followed = not_followed
        self.streamed = streamed
        self.path = path
        self.size = size
        self.seconds = seconds
        self.end_ns = end_ns
        self.totals = totals
        self.rises = rises
        self.auto_detail = auto_detail
        self.profiles = profiles
        self.notes = notes
