"""Conversions to formats that are only written: of other profilers' viewers, and Parquet."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from stretto.analysis.empty_trace import EmptyTraceError
from stretto.analysis.export.exporters import BINARY, export
from stretto.analysis.missing import MISSING
from stretto.analysis.sql.errors import PlacedError, QueryError
from stretto.analysis.trace_tables import EMPTY, import_trace, is_empty, statistics
from stretto.base.errors import CommandError
from stretto.cli.ending_signals import ending_by_signals
from stretto.cli.output_file import STANDARD, open_output
from stretto.cli.trace_reading import reading

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from stretto import _native

PARQUET = "parquet"


def export_trace(given: argparse.Namespace, target: str) -> int:
    """Write a trace in another format; return the exit code.

    Raises:
        CommandError: The trace can't be read, or the result can't be written.
    """
    with reading("convert", given.source):
        if target == PARQUET:
            _write_tables(given.source, given.target)
            return 0
        importer = import_trace(given.source)
    if is_empty(importer):
        raise nothing_in(given.source)
    _write(importer, given, target)
    if not given.quiet:
        _print_left_out(importer)
    return 0


def _write(importer: _native.TraceImporter, given: argparse.Namespace, target: str) -> None:
    try:
        note = None if given.quiet else _print_note
        parts = export(importer, target, Path(given.source).name, note)
    except EmptyTraceError as error:
        text = f"convert: {given.source!r} has no slices and no samples: there is nothing to "
        raise CommandError(f"{text}convert to {target}.") from error
    status = None if given.source == STANDARD else os.stat(given.source)
    with open_output("convert", given.target, binary=target in BINARY, source=status) as out:
        for part in parts:
            out.write(part)


def nothing_in(path: str) -> CommandError:
    """Return the error of an input without a byte."""
    return CommandError(f"convert: {path!r} is empty: there is nothing to convert.")


def _write_tables(source: str, target: str) -> None:
    from stretto.analysis.table_choice import tables_to_write
    from stretto.analysis.trace_processor import TraceProcessor

    if target == STANDARD:
        raise CommandError("convert: parquet is a folder of files: name a new folder.", 2)
    folder = Path(target)
    if folder.exists():
        raise CommandError(f"convert: {target!r} exists: name a new folder.", 2)
    with TraceProcessor(source) as trace:
        if EMPTY in trace.damage:
            raise nothing_in(source)
        with _new_folder(folder), _errors_of_rows(source):
            for table in tables_to_write(trace):
                trace.query(f"select * from {table}").parquet(folder / f"{table}.parquet")


@contextmanager
def _errors_of_rows(source: str) -> Iterator[None]:
    """Raise errors of the engine, such as an overflow in a view, as one line.

    Raises:
        CommandError: The rows of a table can't be computed.
    """
    try:
        yield
    except QueryError as error:
        problem = error.problem if isinstance(error, PlacedError) else str(error)
        raise CommandError(f"convert: {source!r}: {problem.rstrip('.')}.") from error


@contextmanager
def _new_folder(path: Path) -> Iterator[None]:
    """Create a folder that only its owner can read; if the block fails, it is removed.

    Raises:
        CommandError: The folder, or a file in it, can't be written.
    """
    try:
        path.mkdir(0o700)
        with ending_by_signals(), _removed_after_failure(path):
            yield
    except OSError as error:
        reason = error.strerror or error
        raise CommandError(f"convert: can't write {str(path)!r}: {reason}.", 2) from error


@contextmanager
def _removed_after_failure(folder: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _print_note(text: str) -> None:
    if sys.stderr is not None:
        print(f"stretto: {text}.", file=sys.stderr)


def _print_left_out(importer: _native.TraceImporter) -> None:
    counts = statistics(importer)
    unread = [f"{text} ({counts[name]:,})" for name, text in MISSING.items() if counts.get(name)]
    if unread and sys.stderr is not None:
        print(f"stretto: left out: {', '.join(unread)}", file=sys.stderr)
