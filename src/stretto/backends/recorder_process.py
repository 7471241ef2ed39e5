"""`stretto.recording(children=True)`: a `stretto record` process that records this process.

    this process --starts--> stretto record --starts--> waiting program
         |   |                   service                  prints the workspace's variables,
         |   +----producer---------^                      ends when it reads a line
         +--starts--> children ----^

The recorder runs as usual, but its own program only waits. This process connects to it as a
producer. Python processes started inside the block find the recorder by the environment.
"""

from __future__ import annotations

import os
import sys

from stretto.backends.system import DEADLINE_MS, SystemBackend
from stretto.base.errors import SessionError, TransportError
from stretto.base.memory import create_sealed_memfd
from stretto.client import fork
from stretto.client.tracing import tracing
from stretto.recorder.fork_socket import ForkSocket
from stretto.recorder.workspace import VARIABLE, Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from subprocess import Popen

    from stretto.base.unix_socket import UnixSocket

BACKEND = "recorder"
VARIABLES = (VARIABLE, "PYTHONPATH")
_WAITING_PROGRAM = f"""
import os, sys
for name in {VARIABLES!r}:
    print(os.environ[name], flush=True)
sys.stdin.readline()
"""
MAX_MESSAGE_BYTES = 1 << 16
"""The capacity of a pipe, in bytes."""


class RecorderProcess:
    """A recorder process, from its start to the written trace.

    Args:
        path: The output file.
        options: Options of `stretto record`.

    Raises:
        TransportError: The recorder did not start, and the message is the recorder's; or this
            system has no shared memory.
        SessionError: This process and its children are already being recorded.
    """

    def __init__(self, path: str, options: Sequence[str]) -> None:
        if VARIABLE in os.environ:
            raise SessionError(
                "This process is being recorded with its children already: "
                "use recording() without children=True inside `stretto record`."
            )
        os.close(create_sealed_memfd(1))
        self._process = _start(path, options)
        found = {name: self._read_line() for name in VARIABLES}
        self._previous = {name: os.environ.get(name) for name in VARIABLES}
        workspace = Workspace(found[VARIABLE])
        self._producer_socket = workspace.producer_socket
        os.environ.update(found)
        self._fork_socket = ForkSocket(workspace.fork_socket, DEADLINE_MS)
        fork.after_in_child.append(self._connect_child)
        self._connect()

    def _read_line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if line:
            return line.rstrip("\n")
        message = self._wait()
        raise TransportError(f"The recorder did not start: {message or 'no reason given'}")

    def _connect(self, make_connection: Callable[[], UnixSocket] | None = None) -> None:
        name = os.path.basename(sys.executable)
        self._backend = SystemBackend(self._producer_socket, name, DEADLINE_MS, make_connection)
        tracing.connect(BACKEND, self._backend)

    def _connect_child(self) -> None:
        self._close_pipes()
        self._connect(self._fork_socket.connect if self._fork_socket.is_open else None)

    def stop(self) -> None:
        """End the recording, and wait until the trace is written.

        Raises:
            TransportError: The trace could not be written; the message says why.
        """
        fork.after_in_child.remove(self._connect_child)
        self._backend.close()
        self._fork_socket.close()
        tracing.forget(BACKEND)
        for name, value in self._previous.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        message = self._wait()
        if self._process.returncode or message:
            raise TransportError(f"The recorder failed: {message or self._process.returncode}")

    def _wait(self) -> str:
        """End the waiting program, wait for the recorder, and return its messages.

        The wait is for the recorder's exit, not for the end of a pipe. A process that was forked by
        native code, or by another thread while the recorder was started, may have inherited the
        pipes, and keep them open as long as it runs.
        """
        stdin, stderr = self._process.stdin, self._process.stderr
        assert stdin is not None
        assert stderr is not None
        try:
            stdin.write("\n")
            stdin.flush()
        except BrokenPipeError:
            pass  # The recorder was killed, or did not start.
        self._process.wait()
        os.set_blocking(stderr.fileno(), False)
        try:
            message = os.read(stderr.fileno(), MAX_MESSAGE_BYTES)
        except BlockingIOError:
            message = b""
        self._close_pipes()
        return message.decode(errors="replace").strip()

    def abandon(self) -> None:
        """Drop the recorder without ending it: called in a forked child that leaves the block."""
        self._close_pipes()
        self._process.returncode = 0

    def _close_pipes(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    pass  # The recorder was killed before its program read the line.


def _start(path: str, options: Sequence[str]) -> Popen[str]:
    from subprocess import PIPE, Popen

    program = [sys.executable, "-I", "-S", "-c", _WAITING_PROGRAM]
    command = [sys.executable, "-m", "stretto", "record", "--quiet", "-o", path, *options]
    return Popen(
        [*command, "--", *program],
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        text=True,
        errors="surrogateescape",
        start_new_session=True,  # Ctrl-C in the terminal must reach this program only.
    )
