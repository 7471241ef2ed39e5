"""Reports a recording on standard error: progress, errors and the summary."""

from __future__ import annotations

import sys

from stretto.cli.record.arguments import PRIVATE
from stretto.cli.record.detail_lines import detail_lines
from stretto.cli.record.progress import Progress
from stretto.cli.record.summary import kept_text, summary, whereabouts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from stretto.profilers.sampling.profile import Profile
    from stretto.recorder.host.result import RecordingResult


class TerminalReporter:
    """Implements `Reporter` for the command line.

    Args:
        quiet: print errors only.
        private: what the trace holds that may be secret, and the options that leave it out.
        heap: whether the trace has heap profiles, which the summary has a line about.
        flows: whether it has requests, in the same way.
    """

    def __init__(
        self,
        *,
        quiet: bool,
        private: Collection[str] = (),
        heap: bool = False,
        flows: bool = False,
    ) -> None:
        self._quiet = quiet
        self._private = private
        self._heap = heap
        self._flows = flows
        self._progress = Progress(quiet=quiet)

    @property
    def shows_progress(self) -> bool:
        """Whether standard error is a terminal, and progress is enabled."""
        return self._progress.on

    def progress(self, program: int, pids: Collection[int], seconds: float, collected: int) -> None:
        """Update the progress line."""
        self._progress.update(program, pids, seconds, collected)

    def stopped(self) -> None:
        """Remove the progress line."""
        self._progress.clear()

    def snapshot_written(self, path: str) -> None:
        """Print the path of the snapshot."""
        self._print_above(f"stretto: snapshot in {path}")

    def snapshot_failed(self, reason: str) -> None:
        """Print why there is no snapshot."""
        self._print_above(f"stretto: no snapshot: {reason}")

    def error(self, message: str) -> None:
        """Print an error, even if quiet."""
        self._progress.clear()
        _print(f"stretto: {message}")

    def finished(self, result: RecordingResult) -> None:
        """Print the summary."""
        contents, kept = result.contents, ""
        if contents is not None:
            kept = kept_text(contents.first_ns, result.end_ns, result.seconds)
        saved = result.size is not None
        text = summary(
            contents,
            result.stats,
            result.not_followed,
            kept,
            streamed=result.streamed,
            saved=saved,
        )
        notes = list(result.notes)
        silent = saved and contents is not None and not contents.events and not result.profiles
        if silent and not result.not_followed and not self._heap:
            notes.append("the trace has no events: there were none of an enabled category")
        text = "\n".join([text, *(f"  note: {each}" for each in notes)])
        if result.auto_detail:
            text = "\n".join([text, *detail_lines(result)])
        if result.profiles:
            text = "\n".join([text, *_sample_lines(result.profiles)])
        if not self._quiet:
            text = "\n".join([text, *self._trace_lines(result)])
        self._print_above(text)

    def _trace_lines(self, result: RecordingResult) -> list[str]:
        """Return lines about the file: what it says and holds, and where it is."""
        if result.size is None:
            return []
        lines = self._lines_of(result.path)
        private = list(self._private)
        contents = result.contents
        if contents is not None and not contents.log_texts and PRIVATE["no_logs"] in private:
            private.remove(PRIVATE["no_logs"])
        if private:
            lines.append(f"  private: the trace holds {', '.join(private)}")
        lines.append(whereabouts(result.path, result.size, result.seconds))
        return lines

    def _lines_of(self, path: str) -> list[str]:
        # The modules, which read the trace, are imported only for `--heap` and `--flows`.
        lines: list[str] = []
        if self._heap or self._flows:
            from stretto.cli.record.lines_of_trace import lines_of_trace
        if self._heap:
            from stretto.cli.record.memory_lines import memory_lines

            lines += lines_of_trace(path, memory_lines)
        if self._flows:
            from stretto.cli.record.request_lines import request_lines

            lines += lines_of_trace(path, request_lines)
        return lines

    def _print_above(self, text: str) -> None:
        if not self._quiet:
            self._progress.clear()
            _print(text)


def _sample_lines(profiles: Iterable[Profile]) -> list[str]:
    # The module is imported only for `--sample`.
    from stretto.cli.record.sample_lines import sample_lines

    return [line for profile in profiles for line in sample_lines(profile)]


def _print(text: str) -> None:
    if sys.stderr is None:
        return  # Standard error is closed; print would write to standard output instead.
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        pass  # Standard error can't be written; the trace is complete anyway.
