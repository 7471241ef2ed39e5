"""Names the version of SQLite in errors about what older versions lack."""

from __future__ import annotations

import re
import sqlite3
from typing import TYPE_CHECKING

from stretto.analysis.sql.errors import PlacedError, located

if TYPE_CHECKING:
    from stretto.analysis.sql.errors import QueryError

REFERENCE = (3, 50, 3)
"""The version of SQLite in the trace processor v52."""
_NEWER = re.compile(
    r"there is no function (?:concat|concat_ws|string_agg|percentile_cont|percentile_disc|if|unistr"
    r"|unistr_quote|octet_length|timediff|jsonb\w*|json_pretty|json_error_position)\."
    r"|wrong number of arguments to function iif\(\)|near \"order\": syntax error",
    re.IGNORECASE,
)
"""Errors of older versions at statements that the trace processor may accept."""


def with_version(error: QueryError) -> QueryError:
    """Return an error that names this SQLite's version, if a newer one may accept the statement."""
    if not isinstance(error, PlacedError) or sqlite3.sqlite_version_info >= REFERENCE:
        return error
    found = _NEWER.match(error.problem)
    if found is None:
        return error
    versions = f"this Python has SQLite {sqlite3.sqlite_version}, the trace processor v52 has "
    problem = f"{found[0].rstrip('.')}: {versions}{'.'.join(map(str, REFERENCE))}"
    return located(problem, error.text, error.start)
