"""Which functions a statement may call: those of the trace processor, and the user's.

DuckDB has many others, some of which show its settings and files. The trace processor refuses them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp

from stretto.analysis.sql.advice import FUNCTIONS
from stretto.analysis.sql.calls import OWN_FUNCTIONS
from stretto.analysis.sql.errors import UnknownNameError
from stretto.analysis.sql.trees import call_name

if TYPE_CHECKING:
    from stretto.analysis.sql.catalog import Catalog

KNOWN = (
    FUNCTIONS
    | OWN_FUNCTIONS
    | frozenset(
        "ceiling concat concat_ws experimental_flamegraph greatest if last_non_null likely "
        "null_if_empty octet_length percentile_cont percentile_disc regexp string_agg to_timecode "
        "unistr unlikely".split()
    )
)
"""The functions that SQLite or the trace processor has, in lower case."""
_READS_FILES = re.compile("read_|glob$|sniff_csv$|parquet_")
"""Functions that read files: DuckDB's configuration refuses them, and the error says so."""
_OF_DUCKDB = re.compile(r"(duckdb|pragma|pg)_|(information_schema|pg_catalog|system)$")
"""Tables and schemas of DuckDB's own."""


def _is_known(name: str, catalog: Catalog) -> bool:
    is_private = name.startswith("_")  # The modules' own.
    is_told = bool(_READS_FILES.match(name))
    return name in KNOWN or is_private or is_told or catalog.has_function(name)


def check_names(tree: exp.Expr, catalog: Catalog) -> None:
    """Check that a statement calls no function of DuckDB's own, and names no such table.

    Raises:
        UnknownNameError: It does.
    """
    for node in tree.find_all(exp.Anonymous):
        name = call_name(node)
        if not _is_known(name, catalog):
            raise UnknownNameError("function", name)
    own = {part.alias.lower() for part in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        name = table.name.lower()
        is_foreign = _OF_DUCKDB.match(name) or _OF_DUCKDB.match(table.db.lower())
        if is_foreign and name not in own and table.name not in catalog.tables():
            raise UnknownNameError("table", name)
