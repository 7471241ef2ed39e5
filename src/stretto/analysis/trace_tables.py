"""Imports a trace into tables, with the native importer."""

from __future__ import annotations

import io
import zlib
from contextlib import ExitStack
from operator import itemgetter
from os import PathLike
from typing import TYPE_CHECKING, cast

from stretto.analysis.empty_trace import has_nothing
from stretto.analysis.missing import DAMAGE, MISSING
from stretto.analysis.open_packets import open_file, trace_files
from stretto.analysis.table_rows import rows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, BinaryIO

    from stretto import _native

PIECE_BYTES = 1 << 20
_SIZE = "trace_size_bytes"

EMPTY = "the whole trace: it is empty"
"""The damage of a trace without a byte, or of JSON without an event."""


def available() -> bool:
    """Return whether traces can be imported: the pure wheel has no importer."""
    try:
        import stretto.analysis.native  # noqa: F401
    except ImportError:
        return False
    return True


def import_trace(
    trace: str | PathLike[str] | bytes | BinaryIO,
    watch: Callable[[bytes], object] = lambda _: None,
    inflate: Callable[[bytes], bytes] = zlib.decompress,
    *,
    raw_events: bool = False,
) -> _native.TraceImporter:
    """Import a trace: Perfetto's or Fuchsia's format, or Chrome's JSON.

    It may be compressed by gzip or zstd, or be a zip or tar archive; the files of an archive become
    one trace. If it is damaged, it is read up to the damage, and the statistics in MISSING count
    what is missing.

    Args:
        trace: A path (`-` is standard input), the bytes of a trace, or a file that is read from
            its current position.
        watch: Called with each piece of the packets; not called for other formats.
        inflate: Called with the content of each compressed packet.
        raw_events: Fill the tables of raw events, too (`raw_tables.py`).

    Raises:
        OSError: The file can't be read.
        DecodeError: The file is not a trace, or can't be unpacked.
    """
    from stretto.analysis.native import TraceImporter  # Other readers work without it.

    importer = TraceImporter(inflate)
    if raw_events:
        importer.keep_raw_events()

    def damaged(_: str) -> None:
        importer.cut_off()

    with ExitStack() as stack:
        if isinstance(trace, str | PathLike):
            file = stack.enter_context(open_file(str(trace)))
        else:
            file = _buffered(trace)
            if file is not trace:
                stack.callback(file.detach)  # So that the trace isn't closed with its reader.
        for number, packets in enumerate(trace_files(file, damaged)):
            if number:
                importer.next_file()
            _read(packets, importer, watch)
    importer.finish()
    return importer


def _buffered(trace: bytes | BinaryIO) -> io.BufferedReader:
    if isinstance(trace, bytes | bytearray | memoryview):
        return io.BufferedReader(io.BytesIO(trace))
    if hasattr(trace, "peek"):
        return cast("io.BufferedReader", trace)
    if not hasattr(trace, "readinto"):
        raise TypeError(f"a trace is a path, bytes or a binary file, not {type(trace).__name__}")
    return io.BufferedReader(cast("io.RawIOBase", trace))


def _read(
    packets: BinaryIO, importer: _native.TraceImporter, watch: Callable[[bytes], object]
) -> None:
    while piece := packets.read(PIECE_BYTES):
        importer.feed(piece)
        if importer.has_packets():
            watch(piece)


def table_rows(importer: _native.TraceImporter, table: str) -> list[dict[str, Any]]:
    """Return the rows of a table, by column."""
    return list(rows_of(importer, table))


def table_columns(
    importer: _native.TraceImporter, table: str, *columns: str
) -> Iterator[tuple[Any, ...]]:
    """Iterate over some columns of a table: faster than `table_rows` for large tables."""
    names, rows = importer.rows(table)
    return map(itemgetter(*(names.index(column) for column in columns)), rows)


def statistics(importer: _native.TraceImporter) -> dict[str, int]:
    """Return the sum of each statistic's values."""
    sums: dict[str, int] = {}
    for name, _, _, _, value in importer.rows("stats")[1]:
        sums[name] = sums.get(name, 0) + value
    return sums


def is_empty(importer: _native.TraceImporter) -> list[str]:
    """Return a line that says so if the trace is empty, else none."""
    facts = {row["name"]: row for row in table_rows(importer, "metadata")}
    has_bytes = _SIZE in facts and facts[_SIZE]["int_value"]
    if has_bytes and not (facts["trace_type"]["str_value"] == "json" and has_nothing(importer)):
        return []
    return [EMPTY]


def damage(importer: _native.TraceImporter) -> list[str]:
    """Return what is missing because the trace is empty, cut off or damaged: a line per reason.

    Events that no slice can be made of are damage, too.
    """
    sums = statistics(importer)
    return is_empty(importer) + [
        f"{MISSING[name]}: {sums[name]:,}" for name in DAMAGE if sums.get(name)
    ]
