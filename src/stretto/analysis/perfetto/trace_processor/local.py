"""A trace in this process."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stretto.analysis.perfetto.common.exceptions import PerfettoException
from stretto.analysis.sql.errors import QueryError
from stretto.analysis.summary.specs import read_specs
from stretto.analysis.summary.trace_summary import summarize_by_specs
from stretto.analysis.trace_processor import TraceProcessor
from stretto.base.errors import StrettoError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stretto.protos.trace_processor import TraceSummary

    Table = tuple[Sequence[str], Sequence[Sequence[Any]]]


class Pieces(io.RawIOBase):
    """A file whose content comes in pieces."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Read what is left of a piece, or of the next one; 0 at the end."""
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


class LocalBackend:
    """Answers from a trace that was read into this process.

    Args:
        packages: Folders of SQL modules, with the first part of the modules' names.
        raw_events: Whether the tables of raw events are filled.
    """

    def __init__(
        self, packages: Iterable[tuple[str, str]] = (), *, raw_events: bool = False
    ) -> None:
        self._raw_events = raw_events
        self._packages = list(packages)
        self._processor: TraceProcessor | None = None

    def load(self, pieces: Iterable[bytes]) -> None:
        """Read a trace.

        Raises:
            PerfettoException: It is not a trace.
        """
        try:
            self._processor = TraceProcessor(
                io.BufferedReader(Pieces(pieces)), raw_events=self._raw_events
            )
        except StrettoError as error:
            raise PerfettoException(str(error)) from error
        for path, name in self._packages:
            self._processor.add_modules(_modules(Path(path), name))

    def query(self, sql: str) -> Table:
        """Run statements, and return the columns and rows of the last one."""
        try:
            result = self._trace().query(sql)
            return result.columns, result.fetchall()
        except QueryError as error:
            raise PerfettoException(str(error)) from error

    def trace_summary(
        self, specs: Sequence[str | bytes], ids: Sequence[str] | None, metadata_id: str | None
    ) -> TraceSummary:
        """Compute a summary."""
        try:
            return summarize_by_specs(self._trace(), read_specs(specs), ids, metadata_id)
        except StrettoError as error:
            raise PerfettoException(str(error)) from error

    def close(self) -> None:
        """Free the trace."""
        if self._processor is not None:
            self._processor.close()

    def _trace(self) -> TraceProcessor:
        if self._processor is None:
            self._processor = TraceProcessor(b"")
        return self._processor


def _modules(folder: Path, package: str) -> dict[str, str]:
    """Return the SQL of each file of a folder, by the name of its module."""
    return {
        ".".join((package, *path.relative_to(folder).with_suffix("").parts)): path.read_text()
        for path in sorted(folder.rglob("*.sql"))
    }
