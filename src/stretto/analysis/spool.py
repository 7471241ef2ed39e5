"""Sorts more entries than fit into memory.

    add ──> in memory, up to a limit ──> sorted, as a run, into a temporary file
                                              │
    iterate <── the runs, merged <────────────┘

A spool can be iterated several times, also by several iterators at once. Entries with equal keys
keep their order. Memory holds at most the entries up to the limit, and one block of each run.
"""

from __future__ import annotations

import heapq
import marshal
import tempfile
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Self

    Key = tuple[int, ...]
    Entry = tuple[Key, int, tuple[Any, ...]]

_MAX_ENTRIES = 200_000
_MAX_BYTES = 64 << 20
_PIECE_ENTRIES = 256


class Spool:
    """Entries in the order of their keys. Close the spool, or use it in a `with` statement.

    Args:
        max_entries: The number of entries to hold in memory.
    """

    def __init__(self, *, max_entries: int = _MAX_ENTRIES) -> None:
        self._max_entries = max_entries
        self._entries: list[Entry] = []
        self._bytes = 0
        self._count = 0
        self._runs: list[list[tuple[int, int]]] = []
        self._file: IO[bytes] | None = None
        self._end = 0

    def __len__(self) -> int:
        """Return the number of added entries."""
        return self._count

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Delete all entries."""
        self._entries.clear()
        self._runs.clear()
        if self._file is not None:
            self._file.close()
            self._file = None

    def add(self, key: Key, value: tuple[Any, ...], size: int = 0) -> None:
        """Add an entry.

        Args:
            key: A tuple; all keys have the same length.
            value: Numbers, strings, bytes, None, and tuples of these.
            size: The size of large members, in bytes; 0 if all are small.
        """
        self._entries.append((key, self._count, value))
        self._count += 1
        self._bytes += size
        if len(self._entries) >= self._max_entries or self._bytes >= _MAX_BYTES:
            self._spill()

    def _spill(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="stretto-")  # noqa: SIM115
        self._entries.sort()
        self._file.seek(self._end)
        run = []
        for start in range(0, len(self._entries), _PIECE_ENTRIES):
            data = marshal.dumps(self._entries[start : start + _PIECE_ENTRIES])
            self._file.write(data)
            run.append((self._end, len(data)))
            self._end += len(data)
        self._runs.append(run)
        self._entries.clear()
        self._bytes = 0

    def _run(self, file: IO[bytes], run: list[tuple[int, int]]) -> Iterator[Entry]:
        for start, size in run:
            file.seek(start)
            yield from marshal.loads(file.read(size))

    def __iter__(self) -> Iterator[tuple[Key, tuple[Any, ...]]]:
        """Iterate over (key, value), sorted. Nothing may be added during an iteration."""
        self._entries.sort()
        runs = [self._run(self._file, run) for run in self._runs if self._file is not None]
        for key, _, value in heapq.merge(*runs, self._entries):
            yield key, value
