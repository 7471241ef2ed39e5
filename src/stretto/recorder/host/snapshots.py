"""Snapshots by SIGUSR2: the trace so far, in a file of its own, while the recording continues.

    OUT.pftrace  ->  OUT.snapshot-1.pftrace, OUT.snapshot-2.pftrace, ...

A snapshot of a ring contains the data of the ring; a snapshot of a stream is a copy of its file.
"""

from __future__ import annotations

import os

from stretto.base.errors import CommandError
from stretto.recorder.host.config import STREAM_PERIOD_MS
from stretto.recorder.host.output import create_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.base.selector_task_runner import SelectorTaskRunner
    from stretto.recorder.host.output import Output
    from stretto.recorder.host.recording import Recording
    from stretto.recorder.host.reporter import Reporter


class Snapshots:
    """Takes snapshots, one at a time.

    Args:
        runner: the task runner that delays the copy of a stream.
        recording: the recording to copy.
        output: determines the names of the snapshots.
        reporter: receives the name of each snapshot, or the reason of a failure.

    Attributes:
        busy: whether a snapshot is being written.
    """

    def __init__(
        self,
        runner: SelectorTaskRunner,
        recording: Recording,
        output: Output,
        reporter: Reporter,
    ) -> None:
        self._runner = runner
        self._recording = recording
        self._output = output
        self._reporter = reporter
        self._number = 0
        self.busy = False

    def _name(self) -> str:
        path = "trace.pftrace" if self._output.direct else self._output.path
        stem, ending = os.path.splitext(path)
        return f"{stem}.snapshot-{self._number}{ending}"

    def take(self) -> None:
        """Start a snapshot. No effect while another one is being written."""
        if self.busy or self._recording.ended:
            return
        if self._output.streams and self._output.direct:
            self._reporter.snapshot_failed("the trace goes into a pipe")
            return
        self._number += 1
        name = self._name()
        try:
            fd = create_file(f"{name}.part")
        except CommandError as error:
            self._reporter.snapshot_failed(str(error))
            return
        self.busy = True

        def finish(error: str) -> None:
            self._finish(name, error)

        if not self._output.streams:
            self._recording.snapshot(fd, finish)
        else:
            # The next periodic write adds the current data of the buffers to the file.
            self._runner.post_delayed(lambda: self._copy(fd, finish), 2 * STREAM_PERIOD_MS)

    def _copy(self, fd: int, on_done: Callable[[str], object]) -> None:
        import shutil  # A recorder without snapshots doesn't need the module.

        try:
            with open(fd, "wb") as copy, open(self._output.part_path, "rb") as stream:
                shutil.copyfileobj(stream, copy)
        except OSError as error:
            on_done(error.strerror or str(error))
            return
        on_done("")

    def _finish(self, name: str, error: str) -> None:
        self.busy = False
        if error:
            os.unlink(f"{name}.part")
            self._reporter.snapshot_failed(error)
            return
        os.rename(f"{name}.part", name)
        self._reporter.snapshot_written(name)
