"""The verb `recover`: makes a trace of the ring that a killed recorder left."""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

from stretto import _native
from stretto.base.errors import CommandError, StrettoError
from stretto.cli.record.summary import plural
from stretto.cli.verb_parser import VerbParser
from stretto.recorder.host.contents import Contents
from stretto.recorder.host.output import Output
from stretto.service.output.output_file import OutputFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

READ_BYTES = 1 << 20
_BUFFER = 1

DESCRIPTION = """\
Make a trace of the buffer that a recorder left when it was killed.

  stretto recover trace.pftrace.ring               writes trace.pftrace
  stretto recover trace.pftrace.ring -o saved.pftrace

The ring is not changed. Events of the recorder's last second may be missing.
(Without `--ring` there is nothing to recover: OUT.part is a trace.)
"""


def _parse(arguments: Sequence[str]) -> tuple[str, str]:
    parser = VerbParser("recover", DESCRIPTION)
    parser.add_argument("ring", metavar="OUT.ring")
    parser.add_argument("-o", "--output", metavar="OUT", help="the trace (OUT.ring without .ring)")
    parsed = parser.parse_args(arguments)
    ring, output = parsed.ring, parsed.output
    if output is None:
        if not ring.endswith(".ring"):
            raise CommandError(f"recover: {ring!r} doesn't end in .ring: give -o OUT.", 2)
        output = ring.removesuffix(".ring")
    return ring, output


def _open_ring(path: str) -> int:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise CommandError(f"recover: can't read {path!r}: {error.strerror}.", 2) from error
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise CommandError(
            f"recover: {path!r} is in use: its recorder is running, and writes the trace at its "
            "end (to write it now, send the recorder SIGUSR2)."
        ) from None
    return fd


def _packets(fd: int, path: str) -> Iterator[bytes]:
    table = _native.BufferTable()
    try:
        table.recover(_BUFFER, fd)
    except (ValueError, OSError) as error:
        raise CommandError(
            f"recover: {path!r} isn't a ring of `stretto record`: {error}."
        ) from error
    reader = _native.Readback(table)
    reader.begin(_BUFFER)
    more = True
    while more:
        data, more = reader.read(_BUFFER, READ_BYTES)
        yield data


def run(arguments: Sequence[str]) -> int:
    """Run `stretto recover`.

    Raises:
        CommandError: the ring can't be read, or the trace can't be written.
    """
    ring, path = _parse(arguments)
    fd = _open_ring(ring)
    contents = Contents()
    output = Output(path, ring=False)
    try:
        file = OutputFile(os.dup(output.fd()))
        for data in _packets(fd, ring):
            file.write(data)
            contents.add(data)
        file.close()
        output.finish()
    except StrettoError:
        output.discard()
        raise
    finally:
        output.close()
        os.close(fd)
    events, processes = (
        plural(contents.events, "event"),
        plural(len(contents.processes), "process"),
    )
    print(f"stretto: {events} of {processes} in {path}")
    return 0
