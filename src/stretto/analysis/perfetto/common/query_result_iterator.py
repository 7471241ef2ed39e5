"""The rows of a query."""

from __future__ import annotations

from collections.abc import Sized
from importlib import import_module
from typing import TYPE_CHECKING, Any

from stretto.analysis.perfetto.common.exceptions import PerfettoException

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self


def dataframes(package: str) -> Any:
    """Return pandas or polars.

    Raises:
        PerfettoException: The package isn't installed.
    """
    try:
        return import_module(package)
    except ModuleNotFoundError:
        raise PerfettoException(f"dataframes need {package}: `pip install {package}`") from None


class QueryResultIterator(Sized):
    """Iterates once over the rows; each has an attribute per column.

    Args:
        column_names: The names of the columns.
        rows: The rows.
    """

    class Row:
        """A row. Of two columns with the same name, the last one counts."""

        if TYPE_CHECKING:

            def __getattr__(self, name: str) -> Any: ...

        def __repr__(self) -> str:
            return repr(self.__dict__)

    def __init__(self, column_names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        self.column_names = list(column_names)
        self.column_count = len(self.column_names)
        self.row_count = len(rows)
        self._rows = [[_plain(value) for value in row] for row in rows]
        self._next = 0

    def as_pandas_dataframe(self) -> Any:
        """Return all rows as a `pandas.DataFrame`, with cells of any type."""
        pandas = dataframes("pandas")
        return pandas.DataFrame(self._rows, columns=self.column_names, dtype=object)

    def as_polars_dataframe(self) -> Any:
        """Return all rows as a `polars.DataFrame`."""
        columns = zip(*self._rows, strict=True) if self._rows else [()] * self.column_count
        values = map(list, columns)
        return dataframes("polars").DataFrame(
            dict(zip(self.column_names, values, strict=True)), strict=False
        )

    def __len__(self) -> int:
        return self.row_count

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Row:
        if self._next == self.row_count:
            raise StopIteration
        row = self.Row()
        row.__dict__.update(zip(self.column_names, self._rows[self._next], strict=True))
        self._next += 1
        return row


def _plain(value: Any) -> Any:
    """Return a truth value as a number, as SQLite gives it."""
    return int(value) if isinstance(value, bool) else value
