"""Names of results, and text in double quotes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from stretto.analysis.sql.result_names import result_texts

if TYPE_CHECKING:
    from stretto.analysis.sql.catalog import Catalog

_NEVER_TEXT = "never_text"


def name_results(tree: exp.Expr, text: str) -> None:
    """Name the expressions of the outermost select by their text, as SQLite does."""
    select = tree.expression if isinstance(tree, exp.Create) else tree
    while isinstance(select, exp.SetOperation):
        select = select.left
    if not isinstance(select, exp.Select):
        return
    written = result_texts(text)
    if len(written) != len(select.expressions):
        return
    for part, words in zip(list(select.expressions), written, strict=True):
        is_name = isinstance(part, exp.Column) and not words.startswith("+")
        if not is_name and not isinstance(part, exp.Alias | exp.Star):
            part.replace(exp.alias_(part.copy(), words, quoted=True))


def mark_names(tree: exp.Expr, text: str) -> None:
    """Mark the names that can't be texts: `[x]` and backquotes, while `"x"` may be a text.

    Args:
        tree: A statement.
        text: What it was parsed from.
    """
    for part in tree.find_all(exp.Identifier):
        if part.quoted and text[part.meta.get("start", 0)] in "[`":
            part.meta[_NEVER_TEXT] = True


def unknown_quoted_names(tree: exp.Expr, catalog: Catalog) -> None:
    """Make a string of each name in double quotes that no column and no result has."""
    quoted = [
        column
        for column in tree.find_all(exp.Column)
        if _may_be_text(column.this) and not column.table
    ]
    if not quoted:
        return
    known = _names_of_columns(tree, catalog)
    for column in quoted:
        if column.name.lower() not in known:
            text: exp.Expr = exp.Literal.string(column.name)
            if isinstance(column.parent, exp.Select) and column.arg_key == "expressions":
                text = exp.alias_(text, f'"{column.name}"', quoted=True)
            column.replace(text)


def _may_be_text(name: exp.Expr) -> bool:
    return isinstance(name, exp.Identifier) and name.quoted and _NEVER_TEXT not in name.meta


def _names_of_columns(tree: exp.Expr, catalog: Catalog) -> set[str]:
    """Return the names of columns of the tables and results in a statement, in lower case."""
    known = catalog.columns({table.name.lower() for table in tree.find_all(exp.Table)})
    known |= {alias.alias.lower() for alias in tree.find_all(exp.Alias)}
    return known | {
        column.name.lower() for alias in tree.find_all(exp.TableAlias) for column in alias.columns
    }


def unknown_column(tree: exp.Expr, catalog: Catalog) -> str | None:
    """Return a column that no table and no result has; None if there is none, or a table hides it.

    DuckDB says only that it doesn't know the type, where a macro has the column.
    """
    tables = {table.name.lower() for table in tree.find_all(exp.Table)}
    tables -= {part.alias.lower() for part in tree.find_all(exp.CTE)}
    if not tables <= {name.lower() for name in catalog.tables()}:
        return None
    known = _names_of_columns(tree, catalog)
    columns = (c.this for c in tree.find_all(exp.Column) if isinstance(c.this, exp.Identifier))
    return next((c.name for c in columns if not c.quoted and c.name.lower() not in known), None)
