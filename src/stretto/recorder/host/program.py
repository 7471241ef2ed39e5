"""The recorded program: a child process in the recorder's process group, on the same terminal.

    shell --waits for--> recorder --waits for--> program
      stop, exit          <-- stops and exits like the program

Rules
- The program starts with the signal mask, the descriptors and the terminal with which the recorder
  was started; its input and output don't pass through the recorder.
- Every signal is blocked in the recorder, so that it can't end before the trace is written. One
  thread receives signals (`sigwaitinfo`) and posts them to the task runner.
- A signal from the terminal is sent to the whole group, including the program. A signal to the
  recorder alone is forwarded. `group_signals` distinguishes the two cases.
- If the program stops (Ctrl-Z) the recorder stops too, so that the shell sees a stopped job.
- Samples with C functions stop a thread for some microseconds by `ptrace`. The kernel reports these
  stops to the parent, too, with another code.
"""

from __future__ import annotations

import os
from _thread import start_new_thread

from stretto.base import proc_files
from stretto.base.c_modules import signal
from stretto.base.errors import CommandError
from stretto.recorder.host.group_signals import GroupSignalDetector

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from stretto.base.selector_task_runner import SelectorTaskRunner

_NEVER_BLOCKED = {
    signal.SIGKILL, signal.SIGSTOP, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL,
    signal.SIGTRAP, signal.SIGABRT, signal.SIGSYS,
}  # fmt: skip
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
_NEVER_FORWARDED = {signal.SIGCHLD, signal.SIGCONT, signal.SIGWINCH, *_IGNORED_BY_PYTHON}
"""Signals that are received, but not forwarded."""
_SI_KERNEL = 0x80
"""siginfo's si_code of a signal that the kernel sent, like one from the terminal."""

_STOPPED, _STOPPED_FOR_SAMPLE = b"T", b"t"
"""States of a process in /proc/PID/stat."""

AFTER_SAMPLE_MS = 20
"""After which time a program that was stopped for a sample is checked again."""

NOT_EXECUTABLE_EXIT_CODE = 126


class Program:
    """The child process, and the signals that are forwarded to it.

    Args:
        runner: the task runner of the callbacks.

    Attributes:
        on_snapshot: called for SIGUSR2.
        pid: pid of the child.
        ended: whether the child has ended.
        status: exit status of the child, or minus the signal that killed it.
        interrupted: whether a signal such as SIGINT arrived after the child had ended. The recorder
            then doesn't wait for other processes.
    """

    def __init__(self, runner: SelectorTaskRunner) -> None:
        self.on_snapshot: Callable[[], object] = bool
        self._runner = runner
        self._detector: GroupSignalDetector | None = None
        self._checks_later = False
        self.pid = 0
        self.ended = False
        self.status = 0
        self.interrupted = False

    def start(
        self, path: str, arguments: Sequence[str], environment: Mapping[str, str], stdout: int = -1
    ) -> None:
        """Start the program.

        Args:
            path: path of the executable.
            arguments: argv of the program.
            environment: the complete environment of the program.
            stdout: descriptor for its standard output; -1 for that of the recorder.

        Raises:
            CommandError: the kernel can't execute the file.
        """
        caught = signal.valid_signals() - _NEVER_BLOCKED
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
                f"record: {path!r} can't be executed: {error.strerror}.", NOT_EXECUTABLE_EXIT_CODE
            ) from error
        self._detector = GroupSignalDetector(self._runner)
        start_new_thread(self._receive_signals, (caught,))

    def _receive_signals(self, caught: set[signal.Signals]) -> None:
        while True:
            info = signal.sigwaitinfo(caught)
            self._runner.post(lambda i=info: self._on_signal(i))  # type: ignore[misc]

    def _on_signal(self, info: signal.struct_siginfo) -> None:
        number = info.si_signo
        if number == signal.SIGCHLD:
            self._check_children()
        elif number == signal.SIGUSR2:
            self.on_snapshot()
        elif self.ended:
            self.interrupted = True
        elif number == signal.SIGCONT:
            self._continue()
        elif number not in _NEVER_FORWARDED and info.si_code != _SI_KERNEL:
            assert self._detector is not None
            self._detector.if_not_for_group(number, lambda: self._send(number))

    def _send(self, number: int) -> None:
        if not self.ended:
            os.kill(self.pid, number)

    def _check_children(self) -> None:
        if self._detector is not None:
            self._detector.check()
        if self.ended:
            return
        # The event isn't taken: a stop may be that of a sample, for which the sampler waits.
        flags = os.WEXITED | os.WSTOPPED | os.WNOHANG | os.WNOWAIT
        result = os.waitid(os.P_PID, self.pid, flags)
        if result is None:
            return
        if result.si_code == os.CLD_STOPPED:
            self._stop()
        elif result.si_code == os.CLD_TRAPPED:
            self._check_later()
        elif result.si_code in (os.CLD_EXITED, os.CLD_KILLED, os.CLD_DUMPED):
            exited = result.si_code == os.CLD_EXITED
            self.status = result.si_status if exited else -result.si_status
            os.waitpid(self.pid, 0)
            self.ended = True

    def _check_later(self) -> None:
        """Check again after a sample, which hides the stop by a signal and its SIGCHLD."""
        if not self._checks_later:
            self._checks_later = True
            self._runner.post_delayed(self._check_again, AFTER_SAMPLE_MS)

    def _check_again(self) -> None:
        self._checks_later = False
        self._check_children()

    def _stop(self) -> None:
        """Stop the recorder after the program has stopped; SIGCONT continues both."""
        os.kill(os.getpid(), signal.SIGSTOP)
        self._continue()

    def _continue(self) -> None:
        if self.ended:
            return
        state = _state(self.pid)
        if state == _STOPPED_FOR_SAMPLE:
            self._runner.post_delayed(self._continue, 1)
        elif state == _STOPPED:
            os.kill(self.pid, signal.SIGCONT)

    def wait(self) -> None:
        """Wait until the program has ended."""
        self._runner.run_until(lambda: self.ended)

    def kill(self) -> None:
        """End the program, if it runs, without a signal that it could handle."""
        if self.pid and not self.ended:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.ended = True

    def close(self) -> None:
        """Stop forwarding signals; called after the program has ended, or if it wasn't started."""
        if self._detector is not None:
            self._detector.close()


def _state(pid: int) -> bytes:
    return b"".join(proc_files.stat(pid)[:1])
