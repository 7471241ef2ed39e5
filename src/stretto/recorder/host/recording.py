"""The interface of a recording: one session of a tracing service, for one program.

There are two implementations: `PrivateRecording` has its own service, `SystemRecording` is a
consumer of the machine's service. All methods run on the task runner's thread; methods that wait
run the task runner meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from stretto.client.producer_connection import ProducerConnection
    from stretto.protos.trace import TraceStats
    from stretto.recorder.host.launch import Launch
    from stretto.recorder.host.options import RecordingOptions
    from stretto.recorder.host.output import Output
    from stretto.recorder.host.totals import SharedTotals
    from stretto.recorder.workspace import Options


class Recording(Protocol):
    """One session and its trace."""

    @property
    def ended(self) -> bool:
        """Whether the session has ended, by `stop` or for another reason."""
        ...

    @property
    def error(self) -> str:
        """Why the session ended early, or ""."""
        ...

    @property
    def totals(self) -> SharedTotals:
        """The totals of the recorded processes."""
        ...

    @property
    def matched(self) -> set[int]:
        """The numbers of the patterns of `--include` that some function has matched."""
        ...

    @property
    def target_options(self) -> Options:
        """Options with which recorded processes connect to the service of this recording."""
        ...

    def start(self, launch: Launch, options: RecordingOptions, output: Output) -> None:
        """Start the session, and accept connections at the sockets of the workspace.

        Raises:
            StrettoError: the config is refused, or the buffer can't be allocated.
        """

    def add_producer(self, connection: ProducerConnection) -> None:
        """Connect a producer of the recorder itself.

        Raises:
            StrettoError: the service refuses the producer.
        """

    @property
    def pids(self) -> set[int]:
        """The running recorded processes, as far as known."""
        ...

    def refresh_pids(self) -> None:
        """Start to update `pids`, if the service has to be queried for them."""

    @property
    def has_descendants(self) -> bool:
        """Whether a connected process, or a fork of one, is running."""
        ...

    @property
    def unrecorded(self) -> Mapping[int, str]:
        """Why connected processes have no shared memory: reasons by pid."""
        ...

    @property
    def unmatched(self) -> Sequence[str]:
        """A line for each requested data source and category that no process has offered.

        Also a line for each trigger that the program has activated in vain.
        """
        ...

    def snapshot(self, fd: int, on_done: Callable[[str], object]) -> None:
        """Write the current data of the buffer to `fd`, in steps, while recording continues.

        Args:
            fd: a new file; closed at the end.
            on_done: called with an error message, or "".
        """

    def stop(self) -> None:
        """Flush the producers and end the session. A streamed trace is then complete."""

    def read(self, on_data: Callable[[bytes], object]) -> None:
        """Deliver the trace of the ring, piece by piece.

        Raises:
            SessionError: the service has ended, so the ring is lost.
        """

    def stats(self) -> TraceStats:
        """Return the statistics of the session."""
        ...

    def close(self) -> None:
        """Disconnect from the service and free its buffers."""
