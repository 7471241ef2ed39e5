"""The verb `record`."""

from __future__ import annotations

import errno
import os

from stretto import _bundle
from stretto.base.errors import CommandError, StrettoError
from stretto.cli.record.arguments import RecordOptions
from stretto.cli.record.executable import resolve
from stretto.recorder.host.launch import Launch
from stretto.recorder.host.output import Output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from stretto.recorder.host.recorder import Recorder

STDERR = 2
NOT_STARTED_EXIT_CODE = 125
"""The exit code if the recorder failed, not the program; as in `env` and `timeout`."""


def run(arguments: Sequence[str]) -> int:
    """Run `stretto record`.

    Returns:
        The program's exit status; if a signal killed it, this process dies of the same signal.

    Raises:
        CommandError: nothing was started; the message says why.
    """
    _occupy_standard_descriptors()
    options = RecordOptions(arguments)
    recording = options.recording
    path, argv = ("", []) if recording.attach else resolve(options.program)
    output = Output(options.output, ring=not recording.stream, mapped=not recording.system)
    try:
        recorder = _start_recorder(options, output, path, argv)
        from stretto.cli.record.exit_status import exit_like  # imported while the program runs

        status = recorder.run()
    finally:
        output.close()
    return exit_like(status)


def _start_recorder(
    options: RecordOptions, output: Output, path: str, argv: Sequence[str]
) -> Recorder:
    launch = None
    try:
        launch = Launch(options.recording, path, argv, to_stdout=output.to_stdout)
        # The recorder's modules are imported while the program's interpreter starts.
        _bundle.load("recorder", freeze=_bundle.has_frozen())  # as `main` has frozen the verb
        from stretto.cli.record.terminal_reporter import TerminalReporter
        from stretto.recorder.host.recorder import Recorder

        reporter = TerminalReporter(
            quiet=options.quiet,
            private=options.private,
            heap=bool(options.recording.heap or options.recording.native_heap),
            flows="flows" in options.recording.target,
        )
        recorder = Recorder(options.recording, output, reporter, launch)
        recorder.start()
    except (StrettoError, OSError, KeyboardInterrupt) as error:
        if launch is not None:
            launch.cancel()
        output.discard()
        if isinstance(error, KeyboardInterrupt):  # The program has not started: it gets signals.
            raise
        raise _not_started(error) from error
    return recorder


def _occupy_standard_descriptors() -> None:
    """Open /dev/null for each standard descriptor that is closed.

    Otherwise the next opened file would get the descriptor's number, and messages would be written
    into that file. The recorded program still finds the descriptor closed.
    """
    while (fd := os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)) <= STDERR:
        pass
    os.close(fd)


def _not_started(error: StrettoError | OSError) -> CommandError:
    """Return an error whose exit status says that the program was not started."""
    if isinstance(error, CommandError) and error.exit_code != 1:
        return error
    if isinstance(error, OSError):
        text = f"record: {error.strerror or error}{_descriptors_hint(error)}"
        return CommandError(text, NOT_STARTED_EXIT_CODE)
    return CommandError(f"{error}{_file_size_hint()}", NOT_STARTED_EXIT_CODE)


def _descriptors_hint(error: OSError) -> str:
    import resource

    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if error.errno != errno.EMFILE:
        return "."
    return f": {limit} are allowed here, and a recorder needs some 20 (`ulimit -n`)."


def _file_size_hint() -> str:
    import resource

    from stretto.cli.record.summary import size_text

    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if limit == resource.RLIM_INFINITY:
        return ""
    return (
        f" Files are limited to {size_text(limit)} here (`ulimit -f`), the ring as well: "
        "choose a smaller --buffer, or --stream."
    )
