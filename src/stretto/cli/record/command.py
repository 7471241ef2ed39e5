"""The verb `record`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stretto.base.errors import StrettoError
from stretto.cli.record.arguments import RecordOptions
from stretto.cli.record.executable import resolve
from stretto.cli.record.progress import STDERR
from stretto.cli.record.recorder import Recorder, not_started
from stretto.recorder.host.output import Output
from stretto.recorder.host.program import end_like

if TYPE_CHECKING:
    from collections.abc import Sequence


def run(arguments: Sequence[str]) -> int:
    """`stretto record`; returns the program's exit status, or dies of its signal.

    Raises:
        CommandError: nothing was started; the message says why.
    """
    _occupy_standard_descriptors()
    options = RecordOptions(arguments)
    recording = options.recording
    path, argv = resolve(options.program)
    output = Output(options.output, ring=not recording.stream, mapped=not recording.system)
    try:
        status = _make_recorder(options, output).run(path, argv)
    finally:
        output.close()
    return end_like(status)


def _make_recorder(options: RecordOptions, output: Output) -> Recorder:
    try:
        return Recorder(options.recording, output, quiet=options.quiet)
    except (StrettoError, OSError) as error:
        output.discard()
        raise not_started(error) from error


def _occupy_standard_descriptors() -> None:
    """Where one is closed the next file would get its number, and messages would land in it.

    The program finds it closed, as it would alone.
    """
    while (fd := os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)) <= STDERR:
        pass
    os.close(fd)
