"""`span_join`, `span_left_join` and `span_outer_join` as SQL.

The times at which a row of either side begins or ends cut the time of a partition into pieces. Each
piece has at most one row of each side, because rows of one side don't overlap. An instant (no
duration) is a piece of its own, and so is an unfinished row (dur -1), at the time where it begins:
its piece is unfinished, too.

    a     [---x---)    [-y-)
    b         [----7----)
    both      [-x,7)   [y7)

A side without a partition is repeated for each partition of the other side. Rows whose partition is
NULL are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stretto.analysis.sql.errors import QueryError
from stretto.analysis.sql.tokens import split, tokenize

if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.analysis.sql.tokens import Token

_KEPT = {
    "span_join": "a._n and b._n",
    "span_left_join": "a._n",
    "span_outer_join": "a._n or b._n",
}
"""The pieces that are in the result: those with a row of both sides, of the first, or of any."""


class Side(NamedTuple):
    """A table of a span join.

    Attributes:
        table: Its name.
        partition: The column by which it is partitioned; "" for none.
        columns: All columns but ts, dur and the partition.
        has_dur: Whether it has the column dur; if not, its rows are instants.
    """

    table: str
    partition: str
    columns: tuple[str, ...]
    has_dur: bool


def span_join(definition: str, columns_of: Callable[[str], list[str]]) -> str:
    """Return the query of a span join.

    Args:
        definition: The text after `using`, such as `span_join(a partitioned utid, b)`.
        columns_of: Returns the columns of a table, in their order.

    Raises:
        QueryError: The tables can't be joined.
    """
    kind, sides = _read(definition, columns_of)
    left, right = sides
    for name in {*map(str.lower, left.columns)} & {*map(str.lower, right.columns)}:
        raise QueryError(f"{kind}: both tables have the column {name}")
    if left.partition and right.partition and left.partition != right.partition:
        raise QueryError(
            f"{kind}: the tables have the partitions {left.partition} and {right.partition}"
        )
    return _query(kind, left, right)


def _read(definition: str, columns_of: Callable[[str], list[str]]) -> tuple[str, tuple[Side, Side]]:
    tokens = tokenize(definition)
    kind = tokens[0].text.lower()
    if kind not in _KEPT:
        raise QueryError(f"there is no {kind}: use {', '.join(_KEPT)}")
    parts = list(split(tokens[2:-1], ","))
    if len(parts) != 2:
        raise QueryError(f"{kind} joins two tables, not {len(parts)}")
    return kind, (_side(kind, parts[0], columns_of), _side(kind, parts[1], columns_of))


def _side(kind: str, tokens: list[Token], columns_of: Callable[[str], list[str]]) -> Side:
    words = [token.text for token in tokens]
    partition = ""
    if len(words) == 3 and words[1].lower() == "partitioned":
        partition = words[2].lower()
    elif len(words) != 1:
        raise QueryError(f"{kind}: expected `table` or `table partitioned column`")
    columns = columns_of(words[0])
    lower = [name.lower() for name in columns]
    if "ts" not in lower or (partition and partition not in lower):
        missing = "ts" if "ts" not in lower else partition
        raise QueryError(f"{kind}: {words[0]} has no column {missing}")
    rest = tuple(n for n in columns if n.lower() not in ("ts", "dur", partition))
    return Side(words[0], partition, rest, "dur" in lower)


def _rows(side: Side) -> str:
    """Return the query of a side's rows.

    Its columns: number _n, partition _p, start _s, end _e, whether it is unfinished _u, the others.
    """
    dur = "dur" if side.has_dur else "0"
    partition = f'"{side.partition}"' if side.partition else "null"
    columns = "".join(f', "{name}"' for name in side.columns)
    known = f" and {partition} is not null" if side.partition else ""
    return (
        f"select row_number() over (order by {partition}, ts) as _n, {partition} as _p, "
        f"ts as _s, ts + greatest({dur}, 0) as _e, {dur} < 0 as _u{columns} from {side.table} "
        f"where ts is not null{known}"
    )


def _listed(name: str, side: Side) -> str:
    return "".join(f', {name}."{column}"' for column in side.columns)


def _query(kind: str, left: Side, right: Side) -> str:
    partition = left.partition or right.partition
    # A side without a partition has a copy of its rows in each partition of the other one.
    spread = [
        f"{name}_rows as (select "
        + (
            f"r._n, k._p, r._s, r._e, r._u{_listed('r', side)} from {name}_all r, keys k)"
            if partition and not side.partition
            else f"* from {name}_all)"
        )
        for name, side in (("a", left), ("b", right))
    ]
    sources = [
        f"select _p from {name}_all"
        for name, side in (("a", left), ("b", right))
        if side.partition or not partition
    ]
    columns = [
        f'{name}."{column}"'
        for name, side in (("a", left), ("b", right))
        for column in side.columns
    ]
    unfinished = "pieces._s = pieces._e and (a._u or b._u)"
    dur = f"case when {unfinished} then -1 else pieces._e - pieces._s end as dur"
    output = ["pieces._s as ts", dur]
    output += [f'pieces._p as "{partition}"'] if partition else []
    return f"""
with a_all as ({_rows(left)}), b_all as ({_rows(right)}),
keys as (select distinct _p from ({" union ".join(sources)})),
{", ".join(spread)},
both_rows as (select _p, _s, _e from a_rows union all select _p, _s, _e from b_rows),
marks as (select distinct _p, _s as _t from both_rows union select distinct _p, _e from both_rows),
pieces as (
    select _p, _t as _s, lead(_t) over (partition by _p order by _t) as _e from marks
    union all select distinct _p, _s, _e from both_rows where _s = _e)
select {", ".join([*output, *columns])}
from pieces
left join a_rows a on a._p is not distinct from pieces._p
    and a._s <= pieces._s and pieces._e <= a._e
    and (a._e > pieces._s or a._s = pieces._s and a._e = pieces._e)
left join b_rows b on b._p is not distinct from pieces._p
    and b._s <= pieces._s and pieces._e <= b._e
    and (b._e > pieces._s or b._s = pieces._s and b._e = pieces._e)
where pieces._e is not null and ({_KEPT[kind].replace("._n", "._n is not null")})
    and (pieces._s < pieces._e or a._s = a._e or b._s = b._e)
order by pieces._p, pieces._s, pieces._e
"""
