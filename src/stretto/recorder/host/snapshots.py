"""SIGUSR2: a copy of what is recorded so far, as a trace of its own, while recording goes on.

    OUT.pftrace  ->  OUT.snapshot-1.pftrace, OUT.snapshot-2.pftrace, ...

A snapshot of a ring holds what the ring holds; one of a stream all that is in the file.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from stretto.base.errors import CommandError
from stretto.recorder.host.config import STREAM_PERIOD_MS
from stretto.recorder.host.output import create_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.recorder.host.output import Output
    from stretto.recorder.host.private_recording import Recording
    from stretto.recorder.host.system_recording import SystemRecording


class Snapshots:
    """Takes snapshots, one at a time.

    Args:
        recording: what is copied.
        output: names the copies.
        say: tells the user.
    """

    def __init__(
        self,
        recording: Recording | SystemRecording,
        output: Output,
        say: Callable[[str], object],
    ) -> None:
        self._recording = recording
        self._output = output
        self._say = say
        self._number = 0
        self.busy = False
        """One is being written."""

    def _name(self) -> str:
        path = "trace.pftrace" if self._output.direct else self._output.path
        stem, ending = os.path.splitext(path)
        return f"{stem}.snapshot-{self._number}{ending}"

    def take(self) -> None:
        """Begin one; a request that comes while one is written is dropped."""
        if self.busy or self._recording.ended:
            return
        if self._output.streams and self._output.direct:
            self._say("stretto: no snapshot: the trace goes into a pipe")
            return
        self._number += 1
        name = self._name()
        try:
            fd = create_file(f"{name}.part")
        except CommandError as error:
            self._say(f"stretto: no snapshot: {error}")
            return
        self.busy = True

        def done(error: str) -> None:
            self._done(name, error)

        if not self._output.streams:
            self._recording.snapshot(fd, done)
        else:
            # The next write into the file brings what is in the buffers now.
            self._recording.later(lambda: self._copy(fd, done), 2 * STREAM_PERIOD_MS)

    def _copy(self, fd: int, done: Callable[[str], object]) -> None:
        try:
            with open(fd, "wb") as copy, open(self._output.part_path, "rb") as whole:
                shutil.copyfileobj(whole, copy)
        except OSError as error:
            done(error.strerror or str(error))
            return
        done("")

    def _done(self, name: str, error: str) -> None:
        self.busy = False
        if error:
            os.unlink(f"{name}.part")
            self._say(f"stretto: no snapshot: {error}")
            return
        os.rename(f"{name}.part", name)
        self._say(f"stretto: snapshot in {name}")
