"""Writes a session's file on a thread, so that the service's thread never waits.

    service's thread --write, sync, close--> queue --> a thread of FileThreads --> file
    on_progress      <----- a posted task -----------

The caller bounds the queue by checking `has_room`. After an error, further data is dropped;
the error message contains the number of lost bytes.
"""

from __future__ import annotations

from _thread import allocate_lock
from itertools import chain

from stretto.base.c_modules import deque
from stretto.base.errors import TransportError
from stretto.service import limits
from stretto.service.output.output_file import FileError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stretto.service.output.file_threads import FileThreads
    from stretto.service.output.output_file import OutputFile

    Job = bytes | Iterator[bytes] | Callable[[], object]
    """Packets; an iterator, from which the thread takes packets; or a function, which it calls."""


class FileWriter:
    """Writes and owns `file`.

    Args:
        file: The file; interruptible if it may be a pipe.
        threads: Starts and stops the writing thread.
        on_progress: Called on the writing thread after each step.

    Attributes:
        pending_bytes: Number of queued bytes that are not in the file yet.
        busy: Whether the thread has data to write.
        error: The error that ended the file before the trace was complete, or None.
        accepted_bytes: Number of bytes passed to `write`.
        closing: Whether no more data is accepted.
        abandoned: Whether the file was abandoned without being complete.
    """

    def __init__(
        self, file: OutputFile, threads: FileThreads, on_progress: Callable[[], object]
    ) -> None:
        self._file = file
        self._threads = threads
        self._on_progress = on_progress
        self._lock = allocate_lock()
        self._taken = allocate_lock()  # The writing thread releases this lock after each write.
        self._taken.acquire()
        self._jobs: deque[Job] = deque()
        self._current = b""  # The piece that the thread is writing.
        # The iterator that yielded the current piece; None if `write` queued the piece.
        self._source: Iterator[bytes] | None = None
        self.pending_bytes = 0
        self._written = 0
        self.busy = False
        self._syncing = False
        self.error: TransportError | None = None
        self._ended = False
        self.accepted_bytes = 0
        self.closing = False
        self.abandoned = False

    # --- state, read on the service's thread

    @property
    def has_room(self) -> bool:
        """Whether the queue accepts more data now."""
        return self.pending_bytes < limits.FILE_QUEUE_BYTES

    @property
    def hangs(self) -> bool:
        """Whether the thread is blocked in a write; a sync doesn't count."""
        return self.busy and not self._syncing

    @property
    def closed(self) -> bool:
        """Whether the file was closed, or `error` says why it was not."""
        return self._ended or self.abandoned

    @property
    def progress(self) -> int:
        """A number that grows with each byte written."""
        return self._file.progress

    @property
    def regular(self) -> bool:
        """Whether the file is a regular file."""
        return self._file.regular

    # --- requests of the service's thread

    def write(self, trace: bytes) -> None:
        """Append framed packets."""
        self.accepted_bytes += len(trace)
        if trace:
            self._put(trace)

    def write_all(self, pieces: Iterator[bytes]) -> None:
        """Append the pieces of an iterator; the writing thread iterates over it."""
        self._put(pieces)

    def sync(self) -> None:
        """Flush a regular file to the disk."""
        self._put(self._sync)

    def wait_for_room(self, patience_ms: float) -> bool:
        """Wait for room; False if the file has ended, or made no progress for `patience_ms`."""
        before = self.progress
        while self.busy and not self.has_room:
            if not self._taken.acquire(timeout=patience_ms / 1000) and self.progress == before:
                return False
            before = self.progress
        return self.has_room and not self.error

    def close(self) -> None:
        """Close the file after all queued data was written. May be called again."""
        if not self.closing:
            self.closing = True
            self._put(self._file.close)

    def abandon(self, reason: str, unread: int = 0) -> None:
        """Abandon the file, because it made no progress for too long.

        A blocked thread ends when its system call returns.

        Args:
            reason: The reason, for the error message.
            unread: Number of lost bytes that are not in the queue.
        """
        with self._lock:
            self.closing = self.abandoned = True
            self.error = self.error or FileError(
                reason, self._file.progress, self.pending_bytes + unread
            )
            self._jobs.clear()
            self.pending_bytes = 0
        self._file.interrupt()

    def copy(self) -> Iterator[bytes]:
        """Return all data so far, written or queued, in pieces for `write_all`.

        Raises:
            OSError: The file is not a regular file, or is closed.
        """
        with self._lock:
            on_their_way = [self._current, *self._jobs]
            pieces = [each for each in on_their_way if each and isinstance(each, bytes)]
            return chain(self._file.copy(self._written), pieces)

    def _put(self, job: Job) -> None:
        with self._lock:
            if self.closed or self.error:
                return
            self._jobs.append(job)
            if isinstance(job, bytes):
                self.pending_bytes += len(job)
            starts, self.busy = not self.busy, True
        if starts:
            self._start()

    def _start(self) -> None:
        try:
            self._threads.run(self._work, self._file.interrupt)
        except RuntimeError as error:
            self._fail(self._file.give_up(f"the system gives no thread ({error})"))

    def _fail(self, error: TransportError) -> None:
        with self._lock:
            if isinstance(error, FileError):
                error.lost += self.pending_bytes - len(self._current)
            self.error = self.error or error
            self._ended = True
            self.busy = False
            self._jobs.clear()
            self._current, self._source = b"", None
            self.pending_bytes = 0
        self._file.close()
        self._report_progress()

    def _report_progress(self) -> None:
        if not self.abandoned:  # An abandoned file may outlive the service.
            self._on_progress()

    # --- run on the writing thread

    def _work(self) -> None:
        try:
            while self._step():
                pass
        except TransportError as error:
            self._fail(error)

    def _step(self) -> bool:
        """Do one step of the writing thread; return False if the thread has to end.

        A step writes some bytes of the current piece. If there is no current piece, it takes the
        next one from the iterator of `write_all`, or the next job from the queue.
        """
        if self.abandoned:
            self._fail(self._file.give_up("it was given up"))
            return False
        if self._threads.paused:
            self._start()  # While threads are paused, this schedules a restart after the fork.
            return False
        if self._current:
            return self._go_on()
        if self._source is not None:
            self._fetch(self._source)
            return True
        return self._take()

    def _go_on(self) -> bool:
        if self._file.go_on():
            with self._lock:
                self._written += len(self._current)
                if self._source is None and not self.abandoned:
                    self.pending_bytes -= len(self._current)
                self._current = b""
            if self._taken.locked():
                self._taken.release()
            self._report_progress()
        return True

    def _sync(self) -> None:
        self._syncing = True
        try:
            self._file.sync()
        finally:
            self._syncing = False

    def _fetch(self, source: Iterator[bytes]) -> None:
        try:
            piece = next(source, b"")
        except OSError as error:
            reason = f"what it begins with can't be read: {error.strerror}"
            raise self._file.give_up(reason) from error
        if piece:
            self._begin(piece, framed=False)
        else:
            self._source = None

    def _begin(self, piece: bytes, *, framed: bool) -> None:
        self._file.begin(piece, framed=framed)
        self._current = piece

    def _take(self) -> bool:
        with self._lock:
            if not self._jobs:
                self.busy = False
                return False
            job = self._jobs.popleft()
            if isinstance(job, bytes):
                self._begin(job, framed=True)
                return True
        if callable(job):
            job()
            self._ended = self._file.closed
            self._report_progress()
        else:
            self._source = job
        return True
