"""Writes the data of a session into its file, while it runs and when it ends.

Data is written at each multiple of the period. If a buffer has filled a quarter of its size, its
watermark wakes an eventfd, and data is written earlier.

A thread writes the file (`FileWriter`), and the service does not wait for it. Meanwhile unwritten
data stays in the session's buffers, which count overwritten data. If a file makes no progress for
some time, the file is abandoned and the session ends.
"""

from __future__ import annotations

import os

from stretto.service import limits
from stretto.service.output.file_writer import FileWriter
from stretto.service.output.output_file import READER_STOPPED, FileError
from stretto.service.output.packet_encoder import whole_packets
from stretto.service.timers import Timers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Final, Protocol

    from stretto.base.errors import TransportError
    from stretto.protos.config import TraceConfig
    from stretto.service.output.output_file import OutputFile
    from stretto.service.output.read_buffers import Reader
    from stretto.service.service_context import ServiceContext
    from stretto.service.session.flush import Flushes

    class WrittenSession(Protocol):
        """The members of a session that are needed to write the session's file."""

        context: ServiceContext
        config: TraceConfig
        buffers: list[int]
        flushes: Flushes
        reader: Reader
        timers: Timers

        def scrape(self) -> None: ...
        def disable(self) -> None: ...
        def fail(self, error: str) -> None: ...


_TIMER: Final = "write into file"
_STALL: Final = "stall"
_FLUSH_AUTO: Final = (0, 1)
_FLUSH_DISABLED: Final = 2
_FLUSH_ENABLED: Final = 3
_SYNC_AFTER_WRITE: Final = 2


def write_period_ms(config: TraceConfig) -> int:
    """Return the period in ms at which a session writes its file."""
    period = config.file_write_period_ms or limits.DEFAULT_FILE_WRITE_PERIOD_MS
    return max(period, limits.MIN_FILE_WRITE_PERIOD_MS)


def flush_period_ms(config: TraceConfig) -> int:
    """Return the period in ms of additional flushes between writes; 0 for no such flushes."""
    if config.write_flush_mode == _FLUSH_DISABLED:
        return config.flush_period_ms
    if config.write_flush_mode in _FLUSH_AUTO:
        often = write_period_ms(config) <= limits.FILE_FLUSH_PERIOD_MS
        return limits.FILE_FLUSH_PERIOD_MS if often else 0
    return 0


def flushes_before_write(config: TraceConfig) -> bool:
    """Return whether a flush precedes each write."""
    if config.write_flush_mode in _FLUSH_AUTO:
        return write_period_ms(config) > limits.FILE_FLUSH_PERIOD_MS
    return config.write_flush_mode == _FLUSH_ENABLED


class FileDrain:
    """Writes the file of one session, until it is full, broken or complete.

    Args:
        session: The session.
        file: The file; owned by this object.
        max_bytes: Maximum size of the file; 0 for no limit.

    Attributes:
        complete: Whether the file is final, after `finish`.
        error: The error that ended the file before the trace was complete, or "".
    """

    def __init__(self, session: WrittenSession, file: OutputFile, max_bytes: int = 0) -> None:
        self._session = session
        self._max_bytes = max_bytes
        self._writer = FileWriter(file, session.context.file_threads, self._post_progress)
        self._stall = Timers(session.context.task_runner, session.context.clock)
        self._progress = -1  # The writer's progress when the stall timer was started.
        self._eventfd = -1
        self._posted = False
        self._waits_for_room = False
        self._rest: Iterator[None] | None = None
        self._on_complete: Callable[[], object] | None = None
        self.complete = False
        self.error = ""

    @property
    def open(self) -> bool:
        """Whether the file accepts more data of the session."""
        return not self._writer.closing and not self.error

    @property
    def flush_period_ms(self) -> int:
        """The period in ms of additional flushes between writes; 0 for no such flushes."""
        return flush_period_ms(self._session.config)

    def copy(self) -> Iterator[bytes]:
        """Iterate over the data written so far, for the file of a clone. Raises OSError."""
        return self._writer.copy()

    def begin_with(self, pieces: Iterator[bytes]) -> None:
        """Write these pieces before the data of the session."""
        self._writer.write_all(pieces)
        self._watch_for_stall()

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
            return  # No descriptor is free for the eventfd: data is written by the timer only.
        for buffer_id, buffer in zip(session.buffers, session.config.buffers, strict=True):
            quarter = buffer.size_kb * 1024 // 4
            session.context.buffers.table.set_watermark(buffer_id, self._eventfd, quarter)
        session.context.task_runner.watch(self._eventfd, self._on_watermark)

    def _on_watermark(self) -> None:
        try:
            os.eventfd_read(self._eventfd)
        except BlockingIOError:
            return
        self._drain()

    def make_room(self) -> None:
        """Write data if a buffer is half full, before more is committed.

        With `waits_for_disk` the service waits for a slow disk, so that data is written before it
        is overwritten. Otherwise the service doesn't wait.
        """
        while self.open and self._rest is None and self._half_full():
            if not self._writer.has_room and not self._wait_for_disk():
                return
            if not self._step():
                return

    def _half_full(self) -> bool:
        stats = self._session.context.buffers.table.stats
        buffers = zip(self._session.buffers, self._session.config.buffers, strict=True)
        return any(stats(ident)["unread"] > buffer.size_kb * 512 for ident, buffer in buffers)

    def _wait_for_disk(self) -> bool:
        return (
            self._session.context.waits_for_disk
            and self._writer.regular
            and self._writer.wait_for_room(limits.FILE_PATIENCE_MS)
        )

    def _on_timer(self) -> None:
        config = self._session.config
        if flushes_before_write(config):
            self._session.flushes.start_periodic(lambda _: self._drain())
            return
        if config.write_flush_mode == _FLUSH_DISABLED:
            # Otherwise events of slow writers reach the file only when their chunks are full.
            self._session.scrape()
        self._drain()

    def _drain(self) -> None:
        """Write data of the buffers while the queue has room."""
        if self._rest is not None:
            return
        for _ in range(limits.FILE_STEPS_PER_TASK):
            if not self._check_room():
                return
            if not self._step():
                self._after_pass()
                return
        self._post_more()

    def _check_room(self) -> bool:
        self._waits_for_room = not self._writer.has_room
        return not self._waits_for_room

    def _step(self) -> bool:
        """Write one batch; return whether more data can be written."""
        if not self.open:
            return False
        data, more = self._session.reader.read(self._session.context.file_step_bytes)
        if not self._write(data):
            self._close()
            self._session.disable()
        return more

    def _write(self, data: bytes) -> bool:
        """Write the packets that fit into the file; return False if some don't fit."""
        room = self._max_bytes - self._writer.accepted_bytes
        fits = not self._max_bytes or len(data) < room
        self._writer.write(data if fits else data[: whole_packets(data, room)])
        self._watch_for_stall()
        return fits

    def _after_pass(self) -> None:
        if self.open and self._session.config.fflush_post_write == _SYNC_AFTER_WRITE:
            self._writer.sync()

    def _post_progress(self) -> None:
        self._session.context.task_runner.post(self._on_progress)

    def _on_progress(self) -> None:
        if self._writer.error and not self.error:
            self._fail(self._writer.error)
        elif self._on_complete and self._writer.closed:
            self._finished()
        elif self._waits_for_room:
            self._write_more()

    def _post_more(self) -> None:
        if not self._posted:
            self._posted = True
            self._session.context.task_runner.post(self._write_more)

    def _write_more(self) -> None:
        self._posted = False
        if self._rest is not None:
            self._write_rest()
        else:
            self._drain()

    def _fail(self, error: TransportError) -> None:
        if isinstance(error, FileError):
            error.lost += self._unread()
        self.error = str(error)
        self._stop()
        self._session.fail(self.error)
        if self._on_complete:
            self._finished()

    def _unread(self) -> int:
        stats = self._session.context.buffers.table.stats
        return sum(stats(buffer_id)["unread"] for buffer_id in self._session.buffers)

    def _watch_for_stall(self) -> None:
        if self._progress < 0 and self._patience_ms is not None and self._writer.busy:
            self._progress = self._writer.progress
            self._stall.once(_STALL, self._patience_ms, self._check_for_stall)

    @property
    def _patience_ms(self) -> float | None:
        context = self._session.context
        return limits.FILE_PATIENCE_MS if self._writer.regular else context.pipe_patience_ms

    def _check_for_stall(self) -> None:
        before, self._progress = self._progress, -1
        if self._writer.hangs and self._writer.progress == before:
            self.give_up()
        else:
            self._watch_for_stall()

    def give_up(self) -> None:
        """Abandon the file: stop waiting for its writer."""
        reason = "the disk takes nothing" if self._writer.regular else READER_STOPPED
        self._writer.abandon(reason)
        self._on_progress()

    def finish(self, on_complete: Callable[[], object]) -> None:
        """Write the remaining data and the stats, then close the file.

        Args:
            on_complete: Called when the file is complete or has failed.
        """
        self._on_complete = on_complete
        self._stop_watching()
        if self._writer.error and not self.error:
            self._fail(self._writer.error)
        elif self._writer.closed:
            self._finished()
        elif self.open:
            self._rest = self._write_all()
            self._write_rest()

    def _write_all(self) -> Iterator[None]:
        reader = self._session.reader
        while reader.in_pass and self._step():
            yield  # A pass in progress reads only data that was committed before it began.
        reader.stats_due = True
        while self._step():
            yield

    def _write_rest(self) -> None:
        assert self._rest is not None
        for _ in range(limits.FILE_STEPS_PER_TASK):
            if not self._check_room():
                return
            if next(self._rest, self) is self:
                self._close()
                return
        self._post_more()

    def _finished(self) -> None:
        on_complete, self._on_complete = self._on_complete, None
        self.complete = True
        self._stall.cancel_all()
        if on_complete:
            on_complete()

    def _close(self) -> None:
        """Close the file when the queued data has been written."""
        self._stop_watching()
        if self.open:
            self._writer.sync()
            self._writer.close()
            self._watch_for_stall()

    def _stop(self) -> None:
        self._stop_watching()
        self._stall.cancel_all()
        self._waits_for_room = False

    def _stop_watching(self) -> None:
        self._session.timers.cancel(_TIMER)
        if self._eventfd >= 0:
            for buffer_id in self._session.buffers:
                self._session.context.buffers.table.set_watermark(buffer_id, -1, 0)
            self._session.context.task_runner.unwatch(self._eventfd)
            os.close(self._eventfd)
            self._eventfd = -1
