"""Records a run of pytest and its child processes, such as the workers of pytest-xdist."""

from __future__ import annotations

import os
from time import monotonic

import pytest

import stretto
from stretto.cli.record.summary import whereabouts


class RecordedRun:
    """The recording of a run, from its start to the summary that says where the trace is.

    Args:
        path: the trace; None if `stretto record` records this process already.
    """

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._recording: stretto.recording | None = None
        self._began = 0.0
        self._result = "stretto: `stretto record` records this run: --stretto has no effect"

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Start to record, before pytest-xdist starts its workers."""
        if self._path is None:
            return
        if not stretto.available():
            raise pytest.UsageError("--stretto: this is Stretto without its native part.")
        self._began = monotonic()
        try:
            # The tests may change the folder.
            self._recording = stretto.recording(os.path.abspath(self._path), children=True)
            self._recording.__enter__()
        except stretto.StrettoError as error:
            self._recording = None
            raise pytest.UsageError(f"--stretto: {error}") from error

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Write the trace when the last fixture and the last worker have ended."""
        self._end()

    def _end(self) -> None:
        recording, self._recording = self._recording, None
        if recording is None or self._path is None:
            return
        recording.__exit__(None, None, None)
        if recording.error is not None:
            self._result = f"stretto: no complete trace: {recording.error}"
            return
        size = os.path.getsize(os.path.abspath(self._path))
        self._result = "stretto:\n" + whereabouts(self._path, size, monotonic() - self._began)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print where the trace is."""
        terminalreporter.write_line(self._result)

    def pytest_unconfigure(self) -> None:
        """End the recording of a run that was interrupted before its end."""
        self._end()
