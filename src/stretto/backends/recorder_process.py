"""`stretto.recording(children=True)`: a recorder of our own, beside this process.

    this process --starts--> stretto record --starts--> keeper
         |   |                   service                  says where the service is,
         |   +----producer---------^                      ends when we close its input
         +--starts--> children ----^

`stretto record` does all the work, for a program that only waits. This process joins it as a
producer, and every Python that it starts meanwhile finds it in the environment.
"""

from __future__ import annotations

import os
import sys

from stretto.backends.system import DEADLINE_MS, SystemBackend
from stretto.base.errors import SessionError, TransportError
from stretto.client import fork
from stretto.client.tracing import tracing
from stretto.recorder.fork_socket import Lifeline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from subprocess import Popen

    from stretto.base.unix_socket import UnixSocket

BACKEND = "recorder"
VARIABLES = ("STRETTO_RECORD", "PYTHONPATH")
_KEEPER = f"""
import os, sys
for name in {VARIABLES!r}:
    print(os.environ[name], flush=True)
sys.stdin.read()
"""


class RecorderProcess:
    """A recorder process, from its start to the written trace.

    Args:
        path: where the trace goes.
        options: of `stretto record`.

    Raises:
        TransportError: it did not start; the message is its own.
        SessionError: this process is recorded with its children already.
    """

    def __init__(self, path: str, options: Sequence[str]) -> None:
        if "STRETTO_RECORD" in os.environ:
            raise SessionError(
                "This process is being recorded with its children already: "
                "use recording() without children=True inside `stretto record`."
            )
        self._process = _start(path, options)
        found = {name: self._read_line() for name in VARIABLES}
        self._before = {name: os.environ.get(name) for name in VARIABLES}
        folder = found["STRETTO_RECORD"]
        self._socket = os.path.join(folder, "producer.sock")
        os.environ.update(found)
        self._line = Lifeline(os.path.join(folder, "lifeline.sock"), DEADLINE_MS)
        fork.after_in_child.append(self._connect_child)
        self._connect()

    def _read_line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if line:
            return line.rstrip("\n")
        _, said = self._process.communicate()
        raise TransportError(f"The recorder did not start: {said.strip() or 'no reason given'}")

    def _connect(self, dial: Callable[[], UnixSocket] | None = None) -> None:
        name = os.path.basename(sys.executable)
        self._backend = SystemBackend(self._socket, name, DEADLINE_MS, dial)
        tracing.connect(BACKEND, self._backend)

    def _connect_child(self) -> None:
        self._connect(self._line.dial if self._line.is_open else None)

    def stop(self) -> None:
        """End the recording, and wait until the trace is written.

        Raises:
            TransportError: it could not be written; the message says why.
        """
        fork.after_in_child.remove(self._connect_child)
        self._backend.close()
        self._line.close()
        tracing.forget(BACKEND)
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        _, said = self._process.communicate()
        if self._process.returncode or said:
            raise TransportError(f"The recorder says: {said.strip() or self._process.returncode}")

    def abandon(self) -> None:
        """In the child of a fork that leaves the block: the recorder is the parent's."""
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        self._process.returncode = 0


def _start(path: str, options: Sequence[str]) -> Popen[str]:
    from subprocess import PIPE, Popen

    keeper = [sys.executable, "-I", "-S", "-c", _KEEPER]
    command = [sys.executable, "-m", "stretto", "record", "--quiet", "-o", path, *options]
    return Popen(
        [*command, "--", *keeper],
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        text=True,
        errors="surrogateescape",
        start_new_session=True,  # Ctrl-C is for the program
    )
