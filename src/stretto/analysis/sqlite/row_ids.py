"""SQLite's column `rowid`: the trace processor has it only for tables of `create table`.

SQLite would give NULL for views, and its own numbers for copies of the trace's tables.
"""

from __future__ import annotations

import re
import sqlite3

_NAMES = re.compile(r"\b(rowid|_rowid_|oid)\b", re.IGNORECASE)
_REFUSED = re.compile(r"access to \S+ROWID is prohibited")
_OF_SQLITE = ("sqlite_", "json_", "pragma_")
"""How the names of SQLite's own tables begin; it reads their rowid itself."""


class RowIds:
    """Refuses the column `rowid` of tables that the user has not made by `create table`."""

    def __init__(self) -> None:
        self._tables = set[str]()

    def authorize(self, action: int, table: str | None, column: str | None, *_: str | None) -> int:
        """Answer whether a statement may do something; sqlite3 calls this for each column."""
        name = (table or "").lower()
        if action == sqlite3.SQLITE_CREATE_TABLE:
            self._tables.add(name)
        is_row_id = action == sqlite3.SQLITE_READ and column == "ROWID"
        if is_row_id and name not in self._tables and not name.startswith(_OF_SQLITE):
            return sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_OK

    def hide(self, table: str) -> None:
        """Refuse the rowid of a table: it was not made by `create table`."""
        self._tables.discard(table.lower())


def without_row_id(message: str, sql: str) -> str:
    """Return SQLite's message about a statement; that of a refused rowid as one that it is missing.

    Args:
        message: What SQLite says.
        sql: The statement.
    """
    found = _NAMES.search(sql)
    if _REFUSED.search(message) is None or found is None:
        return message
    return f"no such column: {found[0]}"
