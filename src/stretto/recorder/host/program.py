"""The recorded program: a child process in our process group, on the same terminal.

    shell --waits for--> recorder --waits for--> program
      stop, exit          <-- repeats what the program does

Rules
- The program starts with the signal mask, the descriptors and the terminal that we were
  given; nothing of its input or output passes through us.
- Every signal is blocked in the recorder, so that it can't die before the trace is written.
  One thread takes them (`sigwaitinfo`) and hands them to the loop.
- What the terminal sends reaches the whole group: the program has it already. What somebody
  sends to us alone is passed on. See `witness` for how the two are told apart.
- If the program stops (Ctrl-Z) we stop as well, so that the shell sees its job stopped.
"""

from __future__ import annotations

import os
import resource
import signal
from _thread import get_ident, start_new_thread
from typing import TYPE_CHECKING

from stretto.base.errors import CommandError
from stretto.recorder.host.group_signals import Witness

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from stretto.base.selector_task_runner import SelectorTaskRunner

_NOT_OURS = {
    signal.SIGKILL, signal.SIGSTOP, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL,
    signal.SIGTRAP, signal.SIGABRT, signal.SIGSYS,
}  # fmt: skip
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
_LOCAL = {signal.SIGCHLD, signal.SIGCONT, signal.SIGWINCH, *_IGNORED_BY_PYTHON}
"""Taken, but never passed on."""
_SI_KERNEL = 0x80

_RUNNING_NOT = 126


class Program:
    """The child, and the signals between it and the world.

    Args:
        runner: runs the callbacks.
        on_snapshot: called for SIGUSR2.
    """

    def __init__(self, runner: SelectorTaskRunner, on_snapshot: Callable[[], object]) -> None:
        self._runner = runner
        self._on_snapshot = on_snapshot
        self._witness: Witness | None = None
        self.pid = 0
        self.ended = False
        self.status = 0
        self.interrupted = False
        """A signal came after the program's end: the user is impatient."""

    def start(
        self, path: str, arguments: Sequence[str], environment: Mapping[str, str], stdout: int = -1
    ) -> None:
        """Start the program.

        Args:
            path: of the executable.
            arguments: its argv.
            environment: all of it.
            stdout: a descriptor for its standard output; -1: ours.

        Raises:
            CommandError: the kernel won't execute it.
        """
        caught = signal.valid_signals() - _NOT_OURS
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, caught)
        actions = [(os.POSIX_SPAWN_DUP2, stdout, 1)] if stdout >= 0 else []
        try:
            self.pid = os.posix_spawn(
                path,
                list(arguments),
                environment,
                file_actions=actions,
                setsigmask=mask,
                setsigdef=_IGNORED_BY_PYTHON,
            )
        except OSError as error:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            raise CommandError(
                f"record: {path!r} can't be executed: {error.strerror}.", _RUNNING_NOT
            ) from error
        self._witness = Witness(self._runner)
        start_new_thread(self._take_signals, (caught,))

    def _take_signals(self, caught: set[signal.Signals]) -> None:
        while True:
            info = signal.sigwaitinfo(caught)
            self._runner.post(lambda i=info: self._on_signal(i))  # type: ignore[misc]

    def _on_signal(self, info: signal.struct_siginfo) -> None:
        number = info.si_signo
        if number == signal.SIGCHLD:
            self._look_at_children()
        elif number == signal.SIGUSR2:
            self._on_snapshot()
        elif self.ended:
            self.interrupted = True
        elif number == signal.SIGCONT:
            self._continue()
        elif number not in _LOCAL and info.si_code != _SI_KERNEL and self._witness is not None:
            self._witness.ask(number, lambda: self._send(number))

    def _send(self, number: int) -> None:
        if not self.ended:
            os.kill(self.pid, number)

    # --- the child's fate

    def _look_at_children(self) -> None:
        if self._witness is not None:
            self._witness.look()
        if self.ended:
            return
        flags = os.WEXITED | os.WSTOPPED | os.WNOHANG
        result = os.waitid(os.P_PID, self.pid, flags)
        if result is None:
            return
        if result.si_code == os.CLD_STOPPED:
            self._stop()
        elif result.si_code in (os.CLD_EXITED, os.CLD_KILLED, os.CLD_DUMPED):
            exited = result.si_code == os.CLD_EXITED
            self.status = result.si_status if exited else -result.si_status
            self.ended = True

    def _stop(self) -> None:
        """Stop as the program did; we come back with SIGCONT."""
        os.kill(os.getpid(), signal.SIGSTOP)
        self._continue()

    def _continue(self) -> None:
        if not self.ended and _is_stopped(self.pid):
            os.kill(self.pid, signal.SIGCONT)

    def close(self) -> None:
        """The program needs us no more."""
        if self._witness is not None:
            self._witness.close()


def _is_stopped(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()[0] == b"T"
    except (OSError, IndexError):
        return False


def end_like(status: int) -> int:
    """End this process as the program ended.

    Args:
        status: its exit status, or minus the signal that killed it.

    Returns:
        The exit status; for a signal it doesn't return.
    """
    if status >= 0:
        return status
    number = -status
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    signal.pthread_kill(get_ident(), number)
    return 128 + number
