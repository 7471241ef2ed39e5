"""Prepares a recording: makes the workspace, and starts a program that can wait for the service.

A Python program connects to the sockets of the workspace before its first line runs, and waits for
the service. So a Python program is started at once, and the recorder imports the service while the
interpreter starts. Any other program is started when the service runs.
"""

from __future__ import annotations

from stretto.base.selector_task_runner import SelectorTaskRunner
from stretto.base.unix_socket import UnixListener
from stretto.recorder.host import workspace_folder
from stretto.recorder.host.program import Program
from stretto.recorder.python_command import is_python, option_problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from stretto.recorder.host.options import RecordingOptions

STDERR = 2


class Launch:
    """The workspace of a recording, its listening sockets and its program.

    Args:
        options: the options of the recording.
        path: path of the program's executable; "" to attach.
        arguments: argv of the program.
        to_stdout: whether the trace is written to standard output, and therefore the program's own
            output to standard error.

    Raises:
        StrettoError: the folder or a socket can't be created, or the kernel can't execute the file.

    Attributes:
        runner: the task runner of the recording.
        program: the program.
        workspace: the workspace.
        producers: the listening socket for producers, used by a recording with its own service.
        forks: the listening socket for fork sockets.
    """

    def __init__(
        self, options: RecordingOptions, path: str, arguments: Sequence[str], *, to_stdout: bool
    ) -> None:
        self.runner = SelectorTaskRunner()
        self.program = Program(self.runner)
        self._options = options
        self._command = path, arguments
        self._stdout = STDERR if to_stdout else -1
        self.workspace = workspace_folder.create(options.target)
        listeners = list[UnixListener]()
        try:
            for address in (self.workspace.producer_socket, self.workspace.fork_socket):
                listeners.append(UnixListener(address))
            self.producers, self.forks = listeners
            if is_python(path) and not option_problem([*arguments]) and not options.system:
                self.start_program()
        except BaseException:  # KeyboardInterrupt, too
            for listener in listeners:
                listener.close()
            workspace_folder.remove(self.workspace)
            raise

    def start_program(self) -> None:
        """Start the program, unless it is started.

        Raises:
            CommandError: the kernel can't execute the file.
        """
        if not self.program.pid:
            path, arguments = self._command
            environment = workspace_folder.environment(self.workspace, self._options)
            self.program.start(path, arguments, environment, stdout=self._stdout)

    def cancel(self) -> None:
        """End the program, which still waits for the service, and remove the workspace."""
        self.program.kill()
        self.close()

    def close(self) -> None:
        """Stop forwarding signals to the program, and remove the workspace."""
        self.program.close()
        self.producers.close()
        self.forks.close()
        workspace_folder.remove(self.workspace)
