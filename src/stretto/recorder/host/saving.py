"""Saves the trace of an ended recording."""

from __future__ import annotations

import os

from stretto.base.errors import CommandError, StrettoError
from stretto.service.output.output_file import OutputFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto.recorder.host.contents import Contents
    from stretto.recorder.host.output import Output
    from stretto.recorder.host.recording import Recording


def save_trace(recording: Recording, output: Output, contents: Contents) -> int:
    """Write the ring of the recording, or finish the file of a stream.

    Args:
        recording: the stopped recording.
        output: destination of the trace.
        contents: the counters of events, filled in unless the trace was streamed into a pipe.

    Returns:
        Size of the trace in bytes; 0 if it was streamed into a pipe.

    Raises:
        StrettoError: the trace can't be written; the message names the file that has the
            events.
    """
    if not output.streams:
        size = _write_ring(recording, output, contents)
    else:
        if not output.direct:
            contents.add_file(output.fd())
        size = output.size()
    output.finish()
    return size


def _write_ring(recording: Recording, output: Output, contents: Contents) -> int:
    try:
        file = OutputFile(os.dup(output.fd()))
    except StrettoError as error:
        raise _ring_kept(output, error) from error
    errors: list[StrettoError] = []

    def write(data: bytes) -> None:
        if errors:
            return
        try:
            file.write(data)
            contents.add(data)
        except StrettoError as error:
            errors.append(error)

    try:
        recording.read(write)
    finally:
        file.close()
    if errors:
        raise _ring_kept(output, errors[0])
    return file.bytes_written


def _ring_kept(output: Output, error: StrettoError) -> CommandError:
    output.keep_ring_only()
    return CommandError(f"{error}{output.recovery_hint()}")
