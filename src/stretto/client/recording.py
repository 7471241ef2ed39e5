"""`stretto.recording(path)`: record this program while a block runs.

    with stretto.recording("trace.pftrace"):
        ...

Events are stored in a ring buffer in memory, which is written to the file when the block ends. With
`stream=True` they are written to the file continuously, and nothing is overwritten: if
a thread produces events faster than they are written, it waits.
"""

from __future__ import annotations

import os
from stat import S_ISREG

from stretto import _native
from stretto.base.errors import ConfigError, StrettoError, TransportError
from stretto.base.trace_name import name_complaint
from stretto.client.backend import factories, load_in_process
from stretto.client.safe_call import call_safely
from stretto.client.tracing import tracing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

    from stretto.client.backend import StartedRecorder
    from stretto.client.tracing_session import TracingSession
    from stretto.protos.config import TraceConfig


_UNITS = {"": 1, "k": 1024, "kb": 1024, "m": 1024**2, "mb": 1024**2, "g": 1024**3, "gb": 1024**3}
MAX_BUFFER_BYTES = 4 * 1024**3 - 4096
STREAM_PERIOD_MS = 500
FLUSH_PERIOD_MS = 5000
"""Without regular flushes the trace processor assumes that events may be out of order."""
STALL_THEN_DROP = 3
"""DataSourceConfig.BufferExhaustedPolicy."""
CATEGORY_OPTIONS = ("--no-managers", "--no-gc", "--no-asyncio", "--no-logs", "--no-exceptions")
"""Options of the recorder process, for the built-in categories that no argument asks for."""


def parse_size(text: str | int, what: str = "buffer") -> int:
    """Parse a size like "64mb", "100k", "1g" or a number to bytes.

    Raises:
        ConfigError: The text is malformed, or the size isn't between 4 KiB and 4 GiB.
    """
    if isinstance(text, int):
        size = text
    else:
        word = text.strip().lower()
        digits = word.rstrip("kmgb")
        unit = _UNITS.get(word[len(digits) :])
        if unit is None or not digits.isdigit():
            raise ConfigError(f"{what} {text!r}: give a size like 64mb, 512k or 1g.")
        size = int(digits) * unit
    if not 4096 <= size <= MAX_BUFFER_BYTES:
        raise ConfigError(f"{what} {text!r}: give a size from 4k up to below 4g.")
    return size


def recording_config(
    *,
    buffer_bytes: int,
    stream: bool = False,
    functions: bool = False,
) -> TraceConfig:
    """Return the TraceConfig that `recording` uses."""
    from stretto.protos.config import DataSourceConfig, TraceConfig, TrackEventConfig

    enabled = ["*", "python.functions"] if functions else ["*"]
    track_event = DataSourceConfig(
        name="track_event",
        track_event_config=TrackEventConfig(enabled_categories=enabled),
    )
    config = TraceConfig(
        buffers=[TraceConfig.BufferConfig(size_kb=buffer_bytes // 1024)],
        data_sources=[TraceConfig.DataSource(config=track_event)],
    )
    if stream:
        # No event may be lost: a thread stalls if it writes faster than the file is written.
        track_event.buffer_exhausted_policy = STALL_THEN_DROP
        config.write_into_file = True
        config.file_write_period_ms = STREAM_PERIOD_MS
        config.flush_period_ms = FLUSH_PERIOD_MS
    return config


def open_output(path: str | os.PathLike[str]) -> int:
    """Open the output file without truncating it; a new file is readable by its owner only.

    Raises:
        TransportError: The file can't be written; the message says why.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, flags, 0o600)
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: str | os.PathLike[str], error: OSError) -> TransportError:
    reason = error.strerror or str(error)
    return TransportError(
        f"Cannot write the trace to {os.fspath(path)!r}: {reason}. Choose another path."
    )


def _raise(error: StrettoError) -> None:
    raise error


class recording:  # noqa: N801  # used like a function
    """Record this program while a block runs; `with ... as` returns the session.

    Args:
        path: The output file; it is emptied once the session has started.
        functions: Whether to record every Python function call, too.
        buffer: Size of the ring buffer, like "64mb".
        stream: Whether to write to the file while recording, instead of a ring buffer.
        children: Whether to record child processes, too, as `stretto record` does, by a
            separate recorder process; `with ... as` then returns None.

    Attributes:
        error: A failure after the start of the block, like a full disk or a killed recorder;
            None if the trace is complete. It is reported once, by `sys.unraisablehook`, and
            never raised. The session has no such attribute: keep the recording object
            to read it.

    Raises:
        ConfigError: `buffer` is malformed, or `path` ends in `.json`.
        TransportError: `path` can't be written.
        SessionError: The session was refused.
    """

    error: StrettoError | None = None

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        functions: bool = False,
        buffer: str | int = "64mb",
        stream: bool = False,
        children: bool = False,
    ) -> None:
        if complaint := name_complaint(os.fsdecode(path)):
            raise ConfigError(f"{complaint}.")
        self._path = path
        self._functions = functions
        self._stream = stream
        self._children = children
        self._buffer_bytes = parse_size(buffer)
        self._session: TracingSession | None = None
        self._recorder: StartedRecorder | None = None
        self._pid = os.getpid()
        self._fd = -1

    def __enter__(self) -> TracingSession | None:
        if self._children:
            self._recorder = factories.start_recorder(
                os.fspath(self._path), self._recorder_options()
            )
            return None
        load_in_process()
        from stretto.client.tracing_session import TracingSession

        config = recording_config(
            buffer_bytes=self._buffer_bytes, stream=self._stream, functions=self._functions
        )
        self._fd = open_output(self._path)
        try:
            self._session = self._start(TracingSession(config))
        except BaseException:
            os.close(self._fd)
            raise
        return self._session

    def _recorder_options(self) -> list[str]:
        options = list(CATEGORY_OPTIONS)
        if not self._functions:
            options.append("--no-functions")
        options.append("--stream" if self._stream else f"--buffer={self._buffer_bytes}")
        return options

    def _start(self, session: TracingSession) -> TracingSession:
        try:
            session.setup(self._fd if self._stream else None)
            session.start()
            # The file is emptied after the start: if the session is refused, the file remains
            # unchanged.
            if self._stream:  # The thread that streams to the file writes no data meanwhile.
                tracing.session_backend("in_process").call(self._empty)
            else:
                self._empty()
        except BaseException:
            session.close()
            raise
        return session

    def _empty(self) -> None:
        """Truncate the file at the current position, which is behind the data streamed so far."""
        if not S_ISREG(os.fstat(self._fd).st_mode):
            return
        try:
            os.ftruncate(self._fd, os.lseek(self._fd, 0, os.SEEK_CUR))
        except OSError as error:
            raise _unwritable(self._path, error) from error

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self._end()
        except StrettoError as error:
            self.error = error
            call_safely(_raise, error)

    def _end(self) -> None:
        if self._recorder is not None:
            self._end_recorder(self._recorder)
            return
        session, self._session = self._session, None
        if session is None:
            return
        if session.is_of_parent:  # This is a child, forked inside the block.
            os.close(self._fd)
            return
        try:
            session.stop()
            if not self._stream:
                self._write(session.read())
        finally:
            session.close()
            os.close(self._fd)

    def _write(self, trace: bytes) -> None:
        try:
            _write_all(self._fd, trace)
        except OSError as error:
            raise _unwritable(self._path, error) from error

    def _end_recorder(self, recorder: StartedRecorder) -> None:
        self._recorder = None
        if os.getpid() == self._pid:
            recorder.stop()
        else:
            recorder.abandon()


def _write_all(fd: int, trace: bytes) -> None:
    written = 0
    view = memoryview(trace)
    try:
        while written < len(view):
            written += os.write(fd, view[written:])
    except OSError:
        _cut(fd, view[:written])
        raise


def _cut(fd: int, written: memoryview) -> None:
    """Truncate the file to whole packets, so that it is a valid trace."""
    _, size = _native.tokenize(written)
    try:
        os.ftruncate(fd, size)
    except OSError:
        pass  # Pipes and devices can't be truncated.
