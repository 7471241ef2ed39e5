"""Computes a TraceSummary: the rows of each metric, in bundles.

spec ─> templates become metrics ─> metrics of one query and bundle ─> rows
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stretto.analysis.sql.errors import QueryError
from stretto.analysis.summary.structured_query import StructuredQueries
from stretto.protos.trace_processor import (
    TraceMetricV2Bundle,
    TraceMetricV2Spec,
    TraceMetricV2TemplateSpec,
    TraceSummary,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from stretto.analysis.trace_processor import TraceProcessor
    from stretto.protos.trace_processor import TraceSummarySpec

    Row = Sequence[Any]

_Type = TraceMetricV2Spec.DimensionType
_Dimension = TraceMetricV2Bundle.Row.Dimension
_Value = TraceMetricV2Bundle.Row.Value
_TYPES: dict[int, tuple[type, str]] = {
    _Type.STRING: (str, "text"),
    _Type.INT64: (int, "integer"),
    _Type.DOUBLE: (float, "real number"),
    _Type.BOOLEAN: (int, "truth value"),
}
_SHARED_FIELDS = ("dimensions_specs", "dimensions", "dimension_uniqueness", "query")


def summarize_by_specs(
    processor: TraceProcessor,
    spec: TraceSummarySpec,
    metric_ids: Collection[str] | None = None,
    metadata_query_id: str | None = None,
) -> TraceSummary:
    """Compute the metrics of a spec.

    Args:
        processor: The trace.
        spec: The metrics and queries.
        metric_ids: The metrics that are computed; None for all.
        metadata_query_id: The query, with the columns `key` and `value`, that gives metadata.

    Raises:
        QueryError: A spec is wrong, or a query can't be executed.
    """
    bundles: dict[str, list[TraceMetricV2Spec]] = {}
    for metric in _metrics(spec):
        if metric_ids is None or metric.id in metric_ids:
            bundles.setdefault(metric.bundle_id or metric.id, []).append(metric)
    known = {metric.id for metrics in bundles.values() for metric in metrics}
    if missing := sorted(set(metric_ids or ()) - known):
        raise QueryError(f"there is no metric {missing[0]}")
    summary = TraceSummary()
    summary.metric_bundles = [
        _bundle(processor, spec, name, metrics) for name, metrics in bundles.items()
    ]
    if metadata_query_id:
        summary.metadata = list(_metadata(processor, spec, metadata_query_id))
    return summary


def _metrics(spec: TraceSummarySpec) -> Iterator[TraceMetricV2Spec]:
    seen = set()
    given = [*spec.metric_spec, *(m for each in spec.metric_template_spec for m in _made(each))]
    for metric in given:
        if not metric.id:
            raise QueryError("a metric has no id")
        if metric.id in seen:
            raise QueryError(f"there are two metrics {metric.id}")
        if metric.interned_dimension_specs:
            raise QueryError(f"{metric.id}: interned_dimension_specs are not available")
        if metric.dimensions and metric.dimensions_specs:
            raise QueryError(f"{metric.id} has both dimensions and dimensions_specs")
        seen.add(metric.id)
        yield metric


def _made(template: TraceMetricV2TemplateSpec) -> Iterator[TraceMetricV2Spec]:
    """Give the metric of each value column of a template."""
    if template.interned_dimension_specs:
        raise QueryError(f"{template.id_prefix}: interned_dimension_specs are not available")
    shared = {name: getattr(template, name) for name in _SHARED_FIELDS if template.has(name)}
    if not template.disable_auto_bundling:
        shared["bundle_id"] = template.id_prefix
    for name in template.value_columns:
        yield TraceMetricV2Spec(id=f"{template.id_prefix}_{name}", value=name, **shared)
    for column in template.value_column_specs:
        given = {
            n: getattr(column, n) for n in ("unit", "custom_unit", "polarity") if column.has(n)
        }
        identity = f"{template.id_prefix}_{column.name}"
        yield TraceMetricV2Spec(id=identity, value=column.name, **given, **shared)


def _rows(
    processor: TraceProcessor, queries: StructuredQueries, sql: str
) -> tuple[list[str], list[Row]]:
    result = processor.query(f"{''.join(queries.preamble)} {sql}")
    return list(result.columns), list(result.fetchall())


def _bundle(
    processor: TraceProcessor,
    spec: TraceSummarySpec,
    name: str,
    metrics: list[TraceMetricV2Spec],
) -> TraceMetricV2Bundle:
    first = metrics[0]
    if any(_shape(metric) != _shape(first) for metric in metrics):
        raise QueryError(f"the metrics of the bundle {name} differ in query or dimensions")
    if first.query is None:
        raise QueryError(f"{first.id} has no query")
    queries = StructuredQueries(spec.query)
    columns, rows = _rows(processor, queries, queries.sql(first.query))
    values = [_position(columns, metric.value, metric.id) for metric in metrics]
    types: dict[str, int] = {each.name: each.type for each in first.dimensions_specs}
    types = types or dict.fromkeys(first.dimensions, 0)
    places = [(_position(columns, each, first.id), each, kind) for each, kind in types.items()]
    bundle = TraceMetricV2Bundle(bundle_id=name, specs=metrics)
    seen = set()
    for row in rows:
        if all(row[place] is None for place in values):
            continue
        key = tuple(row[place] for place, _, _ in places)
        if key in seen and first.dimension_uniqueness == first.DimensionUniqueness.UNIQUE:
            raise QueryError(f"{first.id}: the dimensions {key} are not unique")
        seen.add(key)
        bundle.row.append(
            TraceMetricV2Bundle.Row(
                values=[_value(row[place], first.id) for place in values],
                dimension=[_dimension(row[place], kind, each) for place, each, kind in places],
            )
        )
    return bundle


def _shape(metric: TraceMetricV2Spec) -> tuple[object, ...]:
    return metric.query, list(metric.dimensions), list(metric.dimensions_specs)


def _position(columns: list[str], name: str, metric: str) -> int:
    if name not in columns:
        raise QueryError(f"{metric}: the query has no column {name!r}, only {', '.join(columns)}")
    return columns.index(name)


def _value(value: Any, metric: str) -> _Value:
    if value is None:
        return _Value(null_value=_Value.Null())
    if isinstance(value, str | bytes):
        raise QueryError(f"{metric}: the value {value!r} is no number")
    return _Value(double_value=float(value))


def _dimension(value: Any, kind: int, name: str) -> _Dimension:
    if value is None:
        return _Dimension(null_value=_Dimension.Null())
    wanted, shown = _TYPES.get(kind, (None, ""))
    if wanted is not None and not isinstance(value, wanted):
        raise QueryError(f"the dimension {name} is no {shown}: {value!r}")
    if kind == _Type.BOOLEAN:
        return _Dimension(bool_value=bool(value))
    if isinstance(value, str):
        return _Dimension(string_value=value)
    if isinstance(value, int):
        return _Dimension(int64_value=int(value))
    return _Dimension(double_value=float(value))


def _metadata(
    processor: TraceProcessor, spec: TraceSummarySpec, query_id: str
) -> Iterator[TraceSummary.Metadata]:
    queries = StructuredQueries(spec.query)
    columns, rows = _rows(processor, queries, queries.by_id(query_id))
    if columns != ["key", "value"]:
        raise QueryError(f"the metadata query {query_id} must have the columns key and value")
    for key, value in rows:
        if value is not None:
            yield TraceSummary.Metadata(key=str(key), value=str(value))
