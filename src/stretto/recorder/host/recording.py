"""The interface of a recording: one session of a tracing service, for one program.

There are two implementations: `PrivateRecording` has a service of its own, `SystemRecording` is a
consumer of the machine's. All methods run on the task runner's thread; those that wait run the
task runner meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stretto.client.producer_connection import ProducerConnection
    from stretto.protos.trace import TraceStats
    from stretto.recorder.host.options import RecordingOptions
    from stretto.recorder.host.output import Output
    from stretto.recorder.workspace import Options, Workspace

SHM_SIZE = 8 << 20
PAGE_SIZE = 32 << 10
"""Shared memory of a recorded process, in bytes."""
RECORDER_SHM_SIZE = 256 << 10
RECORDER_PAGE_SIZE = 4 << 10
"""Shared memory of the recorder's own producer, in bytes."""
FLUSH_TIMEOUT_MS = 2000
STOP_TIMEOUT_MS = 6000


class Recording(Protocol):
    """One session, from its start to the last byte of the trace."""

    @property
    def ended(self) -> bool:
        """Whether the session has ended, by `stop` or by itself."""
        ...

    @property
    def error(self) -> str:
        """Why the session ended early, or ""."""
        ...

    @property
    def target_options(self) -> Options:
        """Options that recorded processes need to reach the service of this recording."""
        ...

    def start(self, workspace: Workspace, options: RecordingOptions, output: Output) -> None:
        """Start the session, and accept connections in the workspace.

        Raises:
            StrettoError: the config is refused, or there is no memory for the buffer.
        """

    def add_producer(self, connection: ProducerConnection) -> None:
        """Connect a producer of the recorder itself.

        Raises:
            StrettoError: the service refuses it.
        """

    @property
    def pids(self) -> set[int]:
        """The recorded processes that live, as far as known."""
        ...

    def refresh_pids(self) -> None:
        """Start to bring `pids` up to date where the service has to be asked for them."""

    @property
    def has_descendants(self) -> bool:
        """Whether a process lives that has connected, or was forked by one that had."""
        ...

    @property
    def unrecorded(self) -> Mapping[int, str]:
        """Processes that connected but got no shared memory: pid, reason."""
        ...

    def snapshot(self, fd: int, on_done: Callable[[str], object]) -> None:
        """Write what the buffer holds now to `fd`, in steps, while recording continues.

        Args:
            fd: a new file; closed at the end.
            on_done: called with an error message, or "".
        """

    def stop(self) -> None:
        """Flush the producers and end the session; the file of a stream is then complete."""

    def read(self, on_data: Callable[[bytes], object]) -> None:
        """Deliver the trace that is in the ring, piece by piece.

        Raises:
            SessionError: the service has ended, and the ring with it.
        """

    def stats(self) -> TraceStats:
        """Return the statistics of the session."""
        ...

    def close(self) -> None:
        """Disconnect from the service and free its buffers."""
