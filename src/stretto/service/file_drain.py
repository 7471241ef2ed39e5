"""Moves what a session collects into its file, while it runs and when it ends.

A write happens at each multiple of the period, and earlier when a buffer fills faster
than that: each buffer's watermark, a quarter of its size, wakes an eventfd. A long write
pauses after each few MiB, so that the service hears its producers meanwhile.
"""

from __future__ import annotations

import os

from stretto.base.errors import TransportError
from stretto.service import limits
from stretto.service.flush import PERIODIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from stretto.protos.config import TraceConfig
    from stretto.service.output_file import OutputFile
    from stretto.service.tracing_session import TracingSession

_TIMER: Final = "write into file"
_FLUSH_AUTO: Final = (0, 1)
_FLUSH_DISABLED: Final = 2
_FLUSH_ENABLED: Final = 3
_SYNC_AFTER_WRITE: Final = 2


def write_period_ms(config: TraceConfig) -> int:
    """How often a session writes its file."""
    period = config.file_write_period_ms or limits.DEFAULT_FILE_WRITE_PERIOD_MS
    return max(period, limits.MIN_FILE_WRITE_PERIOD_MS)


def flush_period_ms(config: TraceConfig) -> int:
    """How often a session is flushed apart from writes; 0 for never."""
    if not config.write_into_file or config.write_flush_mode == _FLUSH_DISABLED:
        return config.flush_period_ms
    if config.write_flush_mode in _FLUSH_AUTO:
        often = write_period_ms(config) <= limits.FILE_FLUSH_PERIOD_MS
        return limits.FILE_FLUSH_PERIOD_MS if often else 0
    return 0


def flushes_before_write(config: TraceConfig) -> bool:
    """Whether each write is preceded by a flush."""
    if config.write_flush_mode in _FLUSH_AUTO:
        return write_period_ms(config) > limits.FILE_FLUSH_PERIOD_MS
    return config.write_flush_mode == _FLUSH_ENABLED


class FileDrain:
    """The file of one session, until it is full, broken or the session ends."""

    __slots__ = ("_eventfd", "_file", "_more_posted", "_session")

    def __init__(self, session: TracingSession, file: OutputFile) -> None:
        self._session = session
        self._file = file
        self._eventfd = -1
        self._more_posted = False

    @property
    def open(self) -> bool:
        return not self._file.closed

    def fileno(self) -> int:
        """The file's descriptor, -1 when it is closed."""
        return self._file.fileno()

    def start(self) -> None:
        """Write periodically from now on."""
        config = self._session.config
        self._session.timers.every(_TIMER, write_period_ms(config), self._on_timer)
        self._watch_buffers()

    def _watch_buffers(self) -> None:
        session = self._session
        try:
            self._eventfd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        except OSError:
            return  # no descriptor is left: the timer still comes
        for buffer_id, buffer in zip(session.buffers, session.config.buffers, strict=True):
            quarter = buffer.size_kb * 1024 // 4
            session.service.buffers.table.set_watermark(buffer_id, self._eventfd, quarter)
        session.service.task_runner.watch(self._eventfd, self._on_watermark)

    def _on_watermark(self) -> None:
        try:
            os.eventfd_read(self._eventfd)
        except BlockingIOError:
            return
        self._drain()

    def make_room(self) -> None:
        """Write before more comes in, if a buffer is half full.

        A producer that commits faster than the disk takes it has to wait: what a session
        streams is never overwritten before it is in the file.
        """
        while self.open and self._half_full() and self._step():
            pass

    def _half_full(self) -> bool:
        stats = self._session.service.buffers.table.stats
        buffers = zip(self._session.buffers, self._session.config.buffers, strict=True)
        return any(stats(ident)["unread"] > buffer.size_kb * 512 for ident, buffer in buffers)

    def _on_timer(self) -> None:
        if flushes_before_write(self._session.config):
            self._session.flushes.start(0, PERIODIC, lambda _: self._drain())
        else:
            self._drain()

    def _drain(self) -> None:
        self._more_posted = False
        for _ in range(limits.FILE_STEPS_PER_TASK):
            if not self._step():
                self._after_pass()
                return
        if not self._more_posted:
            self._more_posted = True
            self._session.service.task_runner.post(self._drain)

    def _step(self) -> bool:
        """Write one batch; return whether there is more to write, and a file to write it to."""
        if not self.open:
            return False
        data, more = self._session.reader.read(self._session.service.file_step_bytes)
        try:
            fits = self._file.write(data)
        except TransportError as error:
            self._fail(error)
            return False
        if not fits:
            self._stop()
            self._session.disable()
        return more

    def _after_pass(self) -> None:
        if self.open and self._session.config.fflush_post_write == _SYNC_AFTER_WRITE:
            self._sync()

    def _sync(self) -> None:
        try:
            self._file.sync()
        except TransportError as error:
            self._fail(error)

    def _fail(self, error: TransportError) -> None:
        self._stop()
        self._session.fail(str(error))

    def finish(self) -> None:
        """Write everything that is left, and the stats; then close the file."""
        while self._session.reader.in_pass and self._step():
            pass  # a pass that was under way ends at what was there when it began
        self._session.reader.stats_due = True
        while self._step():
            pass
        self._stop()

    def _stop(self) -> None:
        self._session.timers.cancel(_TIMER)
        if self._eventfd >= 0:
            for buffer_id in self._session.buffers:
                self._session.service.buffers.table.set_watermark(buffer_id, -1, 0)
            self._session.service.task_runner.unwatch(self._eventfd)
            os.close(self._eventfd)
            self._eventfd = -1
        if self.open:
            self._sync_and_close()

    def _sync_and_close(self) -> None:
        try:
            self._file.sync()
        except TransportError as error:
            self._session.note_error(str(error))
        self._file.close()
