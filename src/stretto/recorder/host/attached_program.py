"""A running program to which the recorder attaches, by a script that it injects into the program.

    Recorder ── start ──> sys.remote_exec ──> script in the program ──> control connection
             ── producer connection closed ──> the program detaches ──> control connection ends

`AttachedProgram` has the interface of `Program`. Signals to the recorder end the recording, but not
the program. The interpreter runs the script when its main thread runs Python code. A request to run
the script can't be revoked: it is replaced by a request to run an empty file, /dev/null. If the
script fails, it writes the reason into a FIFO.
"""

from __future__ import annotations

import os
import signal
import sys
from _thread import start_new_thread
from contextlib import suppress
from pathlib import Path

import stretto
from stretto.base.errors import CommandError, TransportError
from stretto.base.unix_socket import UnixListener
from stretto.ipc.listener import Listener
from stretto.recorder.host import attach_checks
from stretto.recorder.target import injected

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.base.selector_task_runner import SelectorTaskRunner
    from stretto.base.stream_socket import StreamSocket
    from stretto.recorder.workspace import Workspace

TIMEOUT_MS = 10_000
"""How long the program may take to run the script."""
DETACH_TIMEOUT_MS = 3000
_ENDING = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT}


class AttachedProgram:
    """The process to which the recorder attaches.

    Args:
        runner: the task runner of the callbacks.
        on_snapshot: called for SIGUSR2.
        pid: the pid of the process.

    Attributes:
        ended: whether the process has ended, or the user has ended the recording.
        interrupted: whether the user has ended the recording.
        status: always 0: the recorder's exit status doesn't depend on the process.
    """

    status = 0

    def __init__(
        self, runner: SelectorTaskRunner, on_snapshot: Callable[[], object], pid: int
    ) -> None:
        self._runner = runner
        self._on_snapshot = on_snapshot
        self._listener: Listener | None = None
        self._pidfd = -1
        self._refusals = -1
        self._controls: set[StreamSocket] = set()
        self._refusal = ""
        self._attached = False
        self.pid = pid
        self.ended = self.interrupted = False

    def start(self, workspace: Workspace) -> None:
        """Inject the script, and wait until the process is connected.

        Raises:
            CommandError: the recorder can't attach; the message contains the reason.
        """
        attach_checks.check(self.pid)
        self._watch_process()
        self._receive_signals()
        self._listener = Listener(
            UnixListener(workspace.control_socket), self._runner, self._on_control
        )
        os.mkfifo(workspace.refusals, 0o600)
        self._refusals = os.open(workspace.refusals, os.O_RDWR | os.O_NONBLOCK)
        self._runner.watch(self._refusals, self._on_refusal)
        self._write_script(workspace.script)
        self._inject(workspace.script)
        try:
            self._wait()
        except BaseException:
            self._cancel()
            raise

    def _watch_process(self) -> None:
        try:
            self._pidfd = os.pidfd_open(self.pid)
        except OSError as error:
            raise attach_checks.refusal(self.pid, error.strerror or "it has ended") from error
        self._runner.watch(self._pidfd, self._on_process_end)

    def _on_process_end(self) -> None:
        self._runner.unwatch(self._pidfd)
        self.ended = True

    def _write_script(self, path: str) -> None:
        packages = os.path.dirname(os.path.dirname(os.path.abspath(stretto.__file__)))
        source = Path(injected.__file__).read_text(encoding="utf-8")
        # The import would run a `__future__` module of the program, or fail with its `sys.path`.
        source = source.replace("from __future__ import annotations\n", "\n")
        # The file name marks the code as Stretto's own, which isn't traced.
        code = f"compile({source!r}, {injected.__file__!r}, 'exec')"
        with open(path, "x", encoding="utf-8") as file:
            file.write(
                "try:\n"
                f"    exec({code}, scope := {{'__name__': {injected.__name__!r}}})\n"
                f"    scope['attach']({os.path.dirname(path)!r}, {packages!r})\n"
                "except BaseException:\n    pass\n"
            )

    def _inject(self, script: str) -> None:
        try:
            sys.remote_exec(self.pid, script)  # type: ignore[attr-defined, unused-ignore]
        except (OSError, RuntimeError) as error:
            raise attach_checks.explain(self.pid, error) from error

    def _cancel(self) -> None:
        with suppress(CommandError):
            self._inject(os.devnull)

    def _wait(self) -> None:
        self._runner.run_until(
            lambda: self._attached or bool(self._refusal) or self.ended, TIMEOUT_MS
        )
        if self._attached:
            return
        if self._refusal:
            raise attach_checks.refusal(self.pid, " ".join(self._refusal.split()).rstrip("."))
        if self.interrupted:
            raise attach_checks.refusal(self.pid, "interrupted")
        if self.ended:
            raise attach_checks.refusal(self.pid, "it has ended")
        raise attach_checks.refusal(
            self.pid,
            f"its main thread ran no Python code for {TIMEOUT_MS // 1000} s, as it waits in a "
            "call. Try again when it is busy",
        )

    def _receive_signals(self) -> None:
        signals = {*_ENDING, signal.SIGUSR2}
        signal.pthread_sigmask(signal.SIG_BLOCK, signals)
        start_new_thread(self._wait_for_signals, (signals,))

    def _wait_for_signals(self, signals: set[signal.Signals]) -> None:
        while True:
            number = signal.sigwait(signals)
            self._runner.post(lambda n=number: self._on_signal(n))  # type: ignore[misc]

    def _on_signal(self, number: int) -> None:
        if number == signal.SIGUSR2:
            self._on_snapshot()
        else:
            self.end()

    def end(self) -> None:
        """End the recording."""
        self.ended = self.interrupted = True

    def _on_control(self, end: StreamSocket) -> None:
        peer = end.peer_credentials()
        if peer is None or peer.pid != self.pid:
            end.close()
            return
        self._controls.add(end)
        self._runner.watch(end.fileno(), lambda: self._receive(end))

    def _receive(self, end: StreamSocket) -> None:
        try:
            received = end.recv_into(memoryview(bytearray(1)))
        except TransportError:
            received = (0, -1)
        if received is None:
            return
        size, fd = received
        if fd >= 0:
            os.close(fd)
        if size:
            self._attached = True
        else:
            self._drop(end)

    def _drop(self, end: StreamSocket) -> None:
        self._controls.remove(end)
        self._runner.unwatch(end.fileno())
        end.close()

    def _on_refusal(self) -> None:
        text = os.read(self._refusals, injected.MAX_REASON_BYTES)
        self._refusal = self._refusal or text.decode(errors="replace")

    def wait(self) -> None:
        """Wait until the process is detached. The recording's connection must be closed before."""
        self._runner.run_until(lambda: not self._controls, DETACH_TIMEOUT_MS)
        self.ended = True

    def close(self) -> None:
        """Close all descriptors."""
        for end in tuple(self._controls):
            self._drop(end)
        if self._listener is not None:
            self._listener.close()
        for fd in (self._pidfd, self._refusals):
            if fd >= 0:
                self._runner.unwatch(fd)
                os.close(fd)
        self._pidfd = self._refusals = -1
