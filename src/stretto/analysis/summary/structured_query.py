"""Makes SQL of structured queries: a source, filters, groups, columns, order.

Each query becomes a `select`; the queries it is made of are subqueries in its `from`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.analysis.sql.errors import QueryError
from stretto.analysis.sql.macros import substitute
from stretto.analysis.sql.statements import statements
from stretto.protos.trace_processor import PerfettoSqlStructuredQuery

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Query = PerfettoSqlStructuredQuery
_Operator = Query.Filter.Operator
_Op = Query.GroupBy.Aggregate.Op

_OPERATORS = {
    _Operator.EQUAL: "=",
    _Operator.NOT_EQUAL: "!=",
    _Operator.LESS_THAN: "<",
    _Operator.LESS_THAN_EQUAL: "<=",
    _Operator.GREATER_THAN: ">",
    _Operator.GREATER_THAN_EQUAL: ">=",
    _Operator.GLOB: "glob",
}
_AGGREGATES = {
    _Op.COUNT: "count({0})",
    _Op.COUNT_DISTINCT: "count(distinct {0})",
    _Op.SUM: "sum({0})",
    _Op.MIN: "min({0})",
    _Op.MAX: "max({0})",
    _Op.MEAN: "avg({0})",
    _Op.MEDIAN: "percentile({0}, 50)",
    _Op.PERCENTILE: "percentile({0}, {1})",
    _Op.DURATION_WEIGHTED_MEAN: "sum(cast({0} * dur as double)) / cast(sum(dur) as double)",
}
_GLOBS = ("slice_name", "thread_name", "process_name", "track_name")


class StructuredQueries:
    """Makes the SQL of structured queries.

    Args:
        shared: The queries that others refer to, by id.

    Attributes:
        preamble: Statements that must run before: modules that are included, and preambles.
    """

    def __init__(self, shared: Iterable[Query]) -> None:
        self._shared: Mapping[str, Query] = {query.id: query for query in shared}
        self._open: list[str] = []
        self.preamble: list[str] = []

    def by_id(self, name: str) -> str:
        """Return the SQL of a shared query.

        Raises:
            QueryError: There is no such query, or it contains itself.
        """
        if name not in self._shared:
            raise QueryError(f"there is no query with the id {name!r}")
        if name in self._open:
            raise QueryError(f"the query {name!r} contains itself")
        self._open.append(name)
        sql = self.sql(self._shared[name])
        self._open.pop()
        return sql

    def sql(self, query: Query) -> str:
        """Return the SQL of a query.

        Raises:
            QueryError: The query is incomplete, or uses what isn't supported.
        """
        self._include(*query.referenced_modules)
        conditions = _conditions(query.filters)
        if query.experimental_filter_group is not None:
            conditions.append(_group_condition(query.experimental_filter_group))
        parts = [f"select {_columns(query)} from {self._source(query)}"]
        if conditions:
            parts.append("where " + " and ".join(conditions))
        if query.group_by is not None and query.group_by.column_names:
            parts.append("group by " + ", ".join(query.group_by.column_names))
        return " ".join([*parts, *_order(query)])

    def _include(self, *modules: str) -> None:
        for module in modules:
            statement = f"include perfetto module {module};"
            if statement not in self.preamble:
                self.preamble.append(statement)

    def _source(self, query: Query) -> str:
        if query.table is not None:
            if query.table.module_name:
                self._include(query.table.module_name)
            return query.table.table_name
        if query.simple_slices is not None:
            return f"({self._simple_slices(query.simple_slices)})"
        if query.sql is not None:
            return f"({self._own_sql(query.sql)})"
        if query.inner_query is not None:
            return f"({self.sql(query.inner_query)})"
        if query.inner_query_id:
            return f"({self.by_id(query.inner_query_id)})"
        return f"({self._combination(query)})"

    def _combination(self, query: Query) -> str:
        """Return the SQL of several queries."""
        if query.interval_intersect is not None:
            return self._intersect(query.interval_intersect)
        if query.experimental_join is not None:
            return self._join(query.experimental_join)
        if query.experimental_union is not None:
            union = query.experimental_union
            word = " union all " if union.use_union_all else " union "
            return word.join(f"select * from ({self.sql(each)})" for each in union.queries)
        given = [n for n in query.set_fields() if n.startswith("experimental_")]
        if given:
            raise QueryError(f"{given[0]} of structured queries is not available")
        raise QueryError(f"the query {query.id!r} has no source")

    def _simple_slices(self, slices: Query.SimpleSlices) -> str:
        self._include("slices.with_context")
        globs = [
            f"{name} glob {_text(getattr(slices, f'{name}_glob'))}"
            for name in _GLOBS
            if slices.has(f"{name}_glob")
        ]
        inner = (
            "select id, ts, dur, name as slice_name, thread_name, process_name, track_name "
            "from thread_or_process_slice"
        )
        return f"select * from ({inner}) where {' and '.join(globs)}" if globs else inner

    def _own_sql(self, source: Query.Sql) -> str:
        *before, last = [each.start for each in statements(source.sql)] or [0]
        if source.preamble:
            self.preamble.append(f"{source.preamble};")
        elif before:
            self.preamble.append(source.sql[:last])
        inner = {each.alias.lower(): each.query for each in source.dependencies}
        queries = {alias: f"({self.sql(query)})" for alias, query in inner.items() if query}
        text = substitute(source.sql[last:].strip().rstrip(";"), queries)
        return f"select {', '.join(source.column_names) or '*'} from ({text})"

    def _intersect(self, given: Query.IntervalIntersect) -> str:
        if given.base is None or not given.interval_intersect:
            raise QueryError("an interval intersection needs a base and other intervals")
        self._include("intervals.intersect")
        tables = [self.sql(each) for each in (given.base, *given.interval_intersect)]
        valid = [f"(select * from ({sql}) where dur >= 0)" for sql in tables]
        partitions = ", ".join(given.partition_columns)
        joins = "".join(
            f" join {sql} source_{i} on ii.id_{i} = source_{i}.id" for i, sql in enumerate(valid)
        )
        others = "".join(
            f", source_{i}.ts as ts_{i}, source_{i}.dur as dur_{i}" for i in range(len(valid))
        )
        return (
            f"select ii.ts, ii.dur{others}, source_0.* "
            f"from _interval_intersect!(({', '.join(valid)}), ({partitions})) ii{joins}"
        )

    def _join(self, join: Query.ExperimentalJoin) -> str:
        if join.left_query is None or join.right_query is None:
            raise QueryError("a join needs left_query and right_query")
        left, right = self.sql(join.left_query), self.sql(join.right_query)
        word = "left join" if join.type == Query.ExperimentalJoin.Type.LEFT else "join"
        if (free := join.freeform_condition) is not None:
            a, b, condition = free.left_query_alias, free.right_query_alias, free.sql_expression
        elif (equal := join.equality_columns) is not None:
            a, b = "left_side", "right_side"
            condition = f"{a}.{equal.left_column} = {b}.{equal.right_column}"
        else:
            raise QueryError("a join needs equality_columns or a freeform_condition")
        return f"select {a}.*, {b}.* from ({left}) {a} {word} ({right}) {b} on {condition}"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _columns(query: Query) -> str:
    """Return the columns; those of a group are its keys and aggregates."""
    chosen = [
        (column.column_name_or_expression or column.column_name, column.alias)
        for column in query.select_columns
    ]
    if query.group_by is None:
        return ", ".join(f"{what} as {alias}" if alias else what for what, alias in chosen) or "*"
    made = {name: name for name in query.group_by.column_names}
    for aggregate in query.group_by.aggregates:
        made[aggregate.result_column_name] = _aggregate(aggregate)
    for name, _ in chosen:
        if name not in made:
            raise QueryError(f"the column {name} is neither a key of the group nor an aggregate")
    wanted = chosen or [(name, "") for name in made]
    return ", ".join(f"{made[name]} as {alias or name}" for name, alias in wanted)


def _aggregate(aggregate: Query.GroupBy.Aggregate) -> str:
    if not aggregate.result_column_name:
        raise QueryError("an aggregate needs a result_column_name")
    if aggregate.op == _Op.CUSTOM:
        return aggregate.custom_sql_expression
    if aggregate.op not in _AGGREGATES:
        raise QueryError(f"the aggregate {aggregate.result_column_name} has no operation")
    if aggregate.op == _Op.COUNT and not aggregate.column_name:
        return "count(*)"
    return _AGGREGATES[aggregate.op].format(aggregate.column_name, aggregate.percentile)


def _conditions(filters: Iterable[Query.Filter]) -> list[str]:
    return [_condition(each) for each in filters]


def _condition(given: Query.Filter) -> str:
    if given.op in (_Operator.IS_NULL, _Operator.IS_NOT_NULL):
        return f"{given.column_name} is {'not ' * (given.op == _Operator.IS_NOT_NULL)}null"
    if given.op not in _OPERATORS:
        raise QueryError(f"the filter of {given.column_name} has no operator")
    values = [
        *map(_text, given.string_rhs),
        *map(repr, given.double_rhs),
        *map(str, given.int64_rhs),
    ]
    if not values:
        raise QueryError(f"the filter of {given.column_name} has no value")
    operator = _OPERATORS[given.op]
    return "(" + " or ".join(f"{given.column_name} {operator} {value}" for value in values) + ")"


def _group_condition(group: Query.ExperimentalFilterGroup) -> str:
    """Return the conditions of a group, and of the groups inside, by its `and` or `or`."""
    parts = [
        *_conditions(group.filters),
        *map(_group_condition, group.groups),
        *(f"({each})" for each in group.sql_expressions),
    ]
    word = " or " if group.op == Query.ExperimentalFilterGroup.Operator.OR else " and "
    if not parts:
        raise QueryError("a group of filters is empty")
    return "(" + word.join(parts) + ")"


def _order(query: Query) -> list[str]:
    parts = []
    if query.order_by is not None:
        descending = Query.OrderBy.Direction.DESC
        keys = [
            each.column_name + (" desc" if each.direction == descending else "")
            for each in query.order_by.ordering_specs
        ]
        parts.append("order by " + ", ".join(keys))
    if query.has("limit"):
        parts.append(f"limit {query.limit}")
    if query.has("offset"):
        if not query.has("limit"):
            raise QueryError("offset needs limit")
        parts.append(f"offset {query.offset}")
    return parts
