"""Structured queries become SQL; metrics of specs become bundles of rows."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("sqlglot")

import stretto
from stretto.analysis import QueryError, TraceProcessor
from stretto.analysis.summary.specs import read_specs
from stretto.analysis.summary.structured_query import StructuredQueries
from stretto.analysis.summary.trace_summary import summarize_by_specs
from stretto.protos.trace_processor import PerfettoSqlStructuredQuery, TraceSummary
from stretto.protozero.text_parser import parse_text
from tests.support.recorded_events import record

category = stretto.Category("test.summary")

ROWS = """
create perfetto table numbers as
select 1 as id, 10 as ts, 5 as dur, 'a' as name, 2.5 as size union all
select 2, 12, 8, 'b', 1.0 union all select 3, 30, 2, 'a', null;
create perfetto view by_name as
select name, min(dur) as smallest, max(dur) as largest from numbers group by name
"""


@pytest.fixture(scope="module")
def processor() -> TraceProcessor:
    with record() as recorded, category.slice("request"), category.slice("query"):
        pass
    made = TraceProcessor(bytes(recorded.trace))
    made.query(ROWS)
    return made


def rows(processor: TraceProcessor, text: str) -> list[tuple[Any, ...]]:
    queries = StructuredQueries(())
    sql = queries.sql(parse_text(text, PerfettoSqlStructuredQuery))
    return processor.query(f"{''.join(queries.preamble)} {sql}").fetchall()


NUMBERS = 'table { table_name: "numbers" }'
BY_NAME = 'group_by { column_names: "name" aggregates { column_name: "dur" op: %s'
BY_NAME += ' result_column_name: "r" } }'
BY_NAME += ' order_by { ordering_specs { column_name: "name" } }'


class TestQueries:
    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            (NUMBERS + ' select_columns { column_name: "id" }', [(1,), (2,), (3,)]),
            (
                NUMBERS
                + ' filters { column_name: "name" op: EQUAL string_rhs: "b" string_rhs: "c" }'
                ' select_columns { column_name_or_expression: "id * 2" alias: "twice" }',
                [(4,)],
            ),
            (NUMBERS + ' filters { column_name: "size" op: IS_NULL }', [(3, 30, 2, "a", None)]),
            (
                NUMBERS + ' select_columns { column_name: "id" } limit: 1 offset: 1'
                ' order_by { ordering_specs { column_name: "dur" direction: DESC } }',
                [(1,)],
            ),
            (
                NUMBERS + ' select_columns { column_name: "id" } experimental_filter_group { op: OR'
                ' filters { column_name: "dur" op: LESS_THAN int64_rhs: 3 }'
                ' sql_expressions: "size = 1.0" }',
                [(2,), (3,)],
            ),
            (NUMBERS + BY_NAME % "SUM", [("a", 7), ("b", 8)]),
            (NUMBERS + BY_NAME % "COUNT", [("a", 2), ("b", 1)]),
            (NUMBERS + BY_NAME % "MAX", [("a", 5), ("b", 8)]),
            (NUMBERS + BY_NAME % "MEAN", [("a", 3.5), ("b", 8.0)]),
            (NUMBERS + BY_NAME % "DURATION_WEIGHTED_MEAN", [("a", 29 / 7), ("b", 8.0)]),
            (
                'sql { sql: "create perfetto table made as select 7 as x; select x from made;" }',
                [(7,)],
            ),
            (
                (
                    'sql { sql: "select count(*) as n from $in" dependencies { alias: "in"'
                    f" query {{ {NUMBERS} }} }} }}"
                ),
                [(3,)],
            ),
            (
                (
                    'simple_slices { slice_name_glob: "q*" } '
                    'select_columns { column_name: "slice_name" }'
                ),
                [("query",)],
            ),
            (
                (
                    "experimental_join { type: LEFT"
                    ' left_query { sql { sql: "select 1 as k union all select 2" } }'
                    ' right_query { sql { sql: "select 2 as k2, 5 as v" } }'
                    ' equality_columns { left_column: "k" right_column: "k2" } }'
                    ' order_by { ordering_specs { column_name: "k" } }'
                ),
                [(1, None, None), (2, 2, 5)],
            ),
            (
                (
                    "experimental_union { use_union_all: true"
                    ' queries { sql { sql: "select 1 as a" } }'
                    ' queries { sql { sql: "select 1 as a" } } }'
                ),
                [(1,), (1,)],
            ),
            (
                (
                    f"interval_intersect {{ base {{ {NUMBERS} }} interval_intersect {{"
                    ' sql { sql: "select 9 as id, 11 as ts, 3 as dur" } } }'
                    ' select_columns { column_name: "ts" } select_columns { column_name: "dur" }'
                    ' select_columns { column_name: "id" }'
                    ' order_by { ordering_specs { column_name: "id" } }'
                ),
                [(11, 3, 1), (12, 2, 2)],
            ),
        ],
    )
    def test_query_gives_rows(
        self, processor: TraceProcessor, query: str, expected: list[tuple[Any, ...]]
    ) -> None:
        processor.query("drop table if exists made")
        assert rows(processor, query) == expected

    @pytest.mark.parametrize(
        ("query", "complaint"),
        [
            ("", "has no source"),
            (NUMBERS + " offset: 1", "offset needs limit"),
            (NUMBERS + ' filters { column_name: "a" op: EQUAL }', "has no value"),
            ('inner_query_id: "x"', "no query with the id 'x'"),
            ("experimental_time_range { mode: STATIC }", "experimental_time_range"),
        ],
    )
    def test_incomplete_query_is_refused(
        self, processor: TraceProcessor, query: str, complaint: str
    ) -> None:
        with pytest.raises(QueryError, match=complaint):
            rows(processor, query)

    def test_query_that_contains_itself_is_refused(self) -> None:
        shared = parse_text('id: "a" inner_query_id: "a"', PerfettoSqlStructuredQuery)
        with pytest.raises(QueryError, match="contains itself"):
            StructuredQueries([shared]).by_id("a")


METRIC = """
metric_spec {
  id: "total" value: "total" dimensions: "name"
  query { inner_query_id: "numbers" group_by { column_names: "name"
    aggregates { column_name: "size" op: SUM result_column_name: "total" } }
    order_by { ordering_specs { column_name: "name" } } }
}
query { id: "numbers" table { table_name: "numbers" } }
query { id: "facts" sql { sql: "select 'host' as key, 'here' as value" } }
"""
TEMPLATE = """
metric_template_spec {
  id_prefix: "sizes" value_columns: "smallest"
  value_column_specs { name: "largest" unit: BYTES }
  dimensions_specs { name: "name" type: STRING } dimension_uniqueness: UNIQUE
  query { sql { sql: "select * from by_name order by 1" } }
}
"""


class TestMetrics:
    def compute(self, processor: TraceProcessor, *specs: str, **options: Any) -> TraceSummary:
        return summarize_by_specs(processor, read_specs(specs), **options)

    def test_metric_has_a_row_for_each_dimension(self, processor: TraceProcessor) -> None:
        (bundle,) = self.compute(processor, METRIC).metric_bundles
        assert bundle.bundle_id == "total"
        assert [
            (row.dimension[0].string_value, row.values[0].double_value) for row in bundle.row
        ] == [("a", 2.5), ("b", 1.0)]

    def test_template_makes_one_bundle_of_its_columns(self, processor: TraceProcessor) -> None:
        (bundle,) = self.compute(processor, TEMPLATE).metric_bundles
        assert [spec.id for spec in bundle.specs] == ["sizes_smallest", "sizes_largest"]
        assert [[v.double_value for v in row.values] for row in bundle.row] == [[2, 5], [8, 8]]

    def test_chosen_metrics_are_computed(self, processor: TraceProcessor) -> None:
        summary = self.compute(processor, METRIC, TEMPLATE, metric_ids=["sizes_largest"])
        assert [bundle.bundle_id for bundle in summary.metric_bundles] == ["sizes"]
        with pytest.raises(QueryError, match="there is no metric none"):
            self.compute(processor, METRIC, metric_ids=["none"])

    def test_metadata_are_the_rows_of_their_query(self, processor: TraceProcessor) -> None:
        summary = self.compute(processor, METRIC, metric_ids=[], metadata_query_id="facts")
        assert [(each.key, each.value) for each in summary.metadata] == [("host", "here")]

    def test_row_without_values_is_left_out(self, processor: TraceProcessor) -> None:
        text = 'metric_spec { id: "m" value: "v" query { sql { sql: "select null as v" } } }'
        assert not self.compute(processor, text).metric_bundles[0].row

    @pytest.mark.parametrize(
        ("text", "complaint"),
        [
            ('metric_spec { value: "v" }', "has no id"),
            (METRIC + METRIC, "two metrics total"),
            ('metric_spec { id: "m" value: "v" }', "m has no query"),
            (
                'metric_spec { id: "m" value: "v" query { sql { sql: "select 1 as x" } } }',
                "no column 'v', only x",
            ),
            (
                'metric_spec { id: "m" value: "v" query { sql { sql: "select \'x\' as v" } } }',
                "no number",
            ),
            (
                (
                    'metric_spec { id: "m" value: "v" dimension_uniqueness: UNIQUE dimensions: "d"'
                    ' query { sql { sql: "select 1 as v, 2 as d union all select 3, 2" } } }'
                ),
                "not unique",
            ),
            (
                (
                    'metric_spec { id: "m" value: "v" dimensions_specs { name: "d" type: INT64 }'
                    " query { sql { sql: \"select 1 as v, 'x' as d\" } } }"
                ),
                "the dimension d is no integer",
            ),
        ],
    )
    def test_wrong_spec_is_refused(
        self, processor: TraceProcessor, text: str, complaint: str
    ) -> None:
        with pytest.raises(QueryError, match=complaint):
            self.compute(processor, text)
