"""The result of a query."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import namedtuple
from importlib import import_module
from itertools import chain, count
from typing import TYPE_CHECKING, Any

from stretto.analysis.sql.errors import QueryError
from stretto.base.private_files import private_file

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Sequence


class QueryResult(ABC):
    """The result of a query. Iterating over it gives rows whose values are attributes.

    A column that has the name of an earlier column gets a number, in rows and in all forms but
    Arrow's: `name`, `name_1`. One with a keyword as its name is an attribute by its position: `_1`.

    The rows can be taken once: by iterating, or by one of the methods.

    Attributes:
        columns: the names of the columns.
    """

    columns: tuple[str, ...]

    @abstractmethod
    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all rows as tuples.

        Raises:
            QueryError: The query can't be executed. The other methods raise this error, too.
        """

    @abstractmethod
    def arrow(self) -> Any:
        """Return the rows as a `pyarrow.Table` (needs pyarrow).

        Raises:
            QueryError: With SQLite: a column has values of several types, such as `1` and `'a'`.
        """

    @abstractmethod
    def pandas(self) -> Any:
        """Return the rows as a `pandas.DataFrame` (needs pandas)."""

    @abstractmethod
    def polars(self) -> Any:
        """Return the rows as a `polars.DataFrame` (needs polars)."""

    @abstractmethod
    def parquet(self, path: str | os.PathLike[str], **added: object) -> None:
        """Write the rows to a Parquet file. (With SQLite: needs pyarrow.)

        Args:
            path: The file. A new one can only be read by its owner (0600).
            added: Columns that have one value in all rows: a text, a number, a bool or None.

        Raises:
            OSError: The file can't be written.
            QueryError: The query can't be executed, or has a column with the name of an added one.
                With SQLite: a column has values of several types.
        """

    def as_pandas_dataframe(self) -> Any:
        """Return `pandas()`; this is the method's name in the package perfetto."""
        return self.pandas()

    def as_polars_dataframe(self) -> Any:
        """Return `polars()`; this is the method's name in the package perfetto."""
        return self.polars()

    @property
    def column_names(self) -> list[str]:
        """The names of the columns, as in the package perfetto."""
        return list(self.columns)

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the rows, as named tuples."""
        names = different_names([_identifier(name) for name in self.columns])
        row_class: Any = namedtuple("Row", names, rename=True)  # type: ignore[misc]  # noqa: PYI024
        yield from map(row_class._make, self.fetchall())


def different_names(names: Iterable[str]) -> list[str]:
    """Return names of which no two are equal in lower case, as DuckDB makes them for Parquet."""
    found: dict[str, str] = {}
    for name in names:
        numbered = (f"{name}_{number}" for number in count(1))
        made = next(each for each in chain([name], numbered) if each.lower() not in found)
        found[made.lower()] = made
    return list(found.values())


def _identifier(name: str) -> str:
    """Return a name for a field of a named tuple: `count_star()` becomes `count_star`."""
    cleaned = "".join(c if c.isalnum() else "_" for c in name).strip("_")
    return cleaned if cleaned.isidentifier() else f"c_{cleaned}"


def load_package(name: str) -> Any:
    """Return the module of a package that a form of the rows needs.

    Raises:
        ModuleNotFoundError: It isn't installed; the message says how to install it.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or name.split(".")[0] != error.name:
            raise
        text = f"this form of the rows needs the package {error.name}: `pip install {error.name}`"
        raise ModuleNotFoundError(text, name=error.name) from error


def check_added(columns: Sequence[str], added: Iterable[str]) -> None:
    """Check that no added column has the name of a column.

    Raises:
        QueryError: One has.
    """
    if twice := set(added) & set(columns):
        raise QueryError(f"the column {min(twice)} is added to each row: give another name")


_TYPES = {int: "integers", float: "reals", str: "texts", bytes: "blobs"}


def _arrow_column(name: str, values: Sequence[Any]) -> Any:
    """Return a column for Arrow.

    Raises:
        QueryError: It has values of several types, which SQLite allows.
    """
    arrow = load_package("pyarrow")
    try:
        return arrow.array(values)
    except arrow.ArrowException as error:
        kinds = " and ".join(text for kind, text in _TYPES.items() if kind in map(type, values))
        raise QueryError(
            f"the column {name} has {kinds}, but a column of Arrow or Parquet has values of one "
            "type: use cast(… as text), or cast(… as real) for numbers"
        ) from error


class RowsResult(QueryResult):
    """A result whose rows are in memory."""

    def __init__(self, columns: Sequence[str], rows: list[tuple[Any, ...]]) -> None:
        self.columns = tuple(columns)
        self._rows = rows

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all rows as tuples."""
        return self._rows

    def arrow(self) -> Any:
        """Return the rows as a `pyarrow.Table` (needs pyarrow)."""
        arrow = load_package("pyarrow")
        values = zip(*self._rows, strict=True) if self._rows else [()] * len(self.columns)
        arrays = [
            _arrow_column(name, column) for name, column in zip(self.columns, values, strict=True)
        ]
        return arrow.Table.from_arrays(arrays, names=list(self.columns))

    def pandas(self) -> Any:
        """Return the rows as a `pandas.DataFrame` (needs pandas)."""
        pandas = load_package("pandas")
        frame = pandas.DataFrame(self._rows, columns=range(len(self.columns)))
        for place, values in enumerate(zip(*self._rows, strict=True)):
            if {type(value) for value in values} == {int, type(None)}:  # Floats would be inexact.
                frame[place] = pandas.array(values, dtype="Int64")
        return frame.set_axis(different_names(self.columns), axis=1)

    def polars(self) -> Any:
        """Return the rows as a `polars.DataFrame` (needs polars)."""
        polars = load_package("polars")
        return polars.DataFrame(
            self._rows, schema=different_names(self.columns), orient="row", infer_schema_length=None
        )

    def parquet(self, path: str | os.PathLike[str], **added: object) -> None:
        """Write the rows to a Parquet file (needs pyarrow)."""
        check_added(self.columns, added)
        arrow, table = load_package("pyarrow"), self.arrow()
        table = table.rename_columns(different_names(self.columns))
        for name, value in added.items():
            table = table.append_column(name, arrow.array([value] * len(self._rows)))
        write_table = load_package("pyarrow.parquet").write_table
        # Given a path, pyarrow deletes the file after a failure, even a device or an older file.
        with private_file(path), open(path, "wb") as file:
            write_table(table, file)
