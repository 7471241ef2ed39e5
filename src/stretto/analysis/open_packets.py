"""A trace as packets, whichever of both formats it has: Perfetto's, or Fuchsia's."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from stretto.analysis.fxt.format import BIG_ENDIAN_MAGIC_BYTES, MAGIC_BYTES
from stretto.analysis.fxt.importer import import_fxt

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedReader
    from typing import BinaryIO


@contextmanager
def open_packets(file: BufferedReader) -> Iterator[BinaryIO]:
    """The packets of a trace; FXT is converted, in a temporary file.

    Args:
        file: The trace, at its beginning.

    Raises:
        DecodeError: It is an FXT trace of a big-endian machine.
    """
    if not file.peek(len(MAGIC_BYTES)).startswith((MAGIC_BYTES, BIG_ENDIAN_MAGIC_BYTES)):
        yield cast("BinaryIO", file)
        return
    with tempfile.TemporaryFile(prefix="stretto-") as packets:
        import_fxt(cast("BinaryIO", file), packets.write)
        packets.seek(0)
        yield cast("BinaryIO", packets)
