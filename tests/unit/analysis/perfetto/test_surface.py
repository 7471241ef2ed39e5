"""Programs for the package perfetto run after a change of their imports.

Each test runs with three sets of classes: ours in this process, ours with a server, and the
package's own with our server. The package's own binary isn't needed.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("sqlglot")

import stretto
from tests.support.query_server import serving
from tests.support.recorded_events import record

pytestmark = pytest.mark.once

OURS = "stretto.analysis.perfetto"
category = stretto.Category("test.surface")


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> str:
    with record() as recorded:
        for size in (1, 2):
            with category.slice("work", size=size):
                pass
    path = tmp_path_factory.mktemp("traces") / "t.pftrace"
    path.write_bytes(recorded.trace)
    return str(path)


@pytest.fixture(
    scope="module", params=["ours", "ours with a server", "perfetto's own with our server"]
)
def package(request: pytest.FixtureRequest) -> Iterator[SimpleNamespace]:
    """The modules, and a function that makes a TraceProcessor."""
    name = "perfetto" if "own" in request.param else OURS
    if name == "perfetto":
        pytest.importorskip("perfetto.trace_processor")
    api = importlib.import_module(f"{name}.trace_processor")
    found = SimpleNamespace(
        api=api,
        error=importlib.import_module(f"{name}.common.exceptions").PerfettoException,
        open=api.TraceProcessor,
    )
    if "server" not in request.param:
        yield found
        return
    with serving() as address:
        found.open = lambda *args, **names: api.TraceProcessor(*args, addr=address, **names)
        yield found


class TestTraceProcessor:
    def test_rows_have_attributes_and_are_iterated_once(
        self, package: SimpleNamespace, trace: str
    ) -> None:
        with package.open(trace=trace) as tp:
            rows = tp.query(
                "select ts, name, category as cat, dur / 2.0 as half, null as no from slice"
            )
            assert len(rows) == 2
            assert rows.column_names == ["ts", "name", "cat", "half", "no"]
            first, second = rows
            assert (first.name, second.cat, first.no) == ("work", "test.surface", None)
            assert isinstance(first.ts, int)
            assert isinstance(first.half, float)
            assert list(rows) == []

    def test_query_gives_a_dataframe(self, package: SimpleNamespace, trace: str) -> None:
        pytest.importorskip("pandas")
        with package.open(trace=trace) as tp:
            frame = tp.query(
                "select name, count(*) as n from slice group by name"
            ).as_pandas_dataframe()
        assert frame.to_dict("records") == [{"name": "work", "n": 2}]

    def test_statements_keep_what_they_create(self, package: SimpleNamespace, trace: str) -> None:
        with package.open(trace=trace) as tp:
            assert len(tp.query("create perfetto table t as select 1 as a")) == 0
            assert [row.a for row in tp.query("select a from t")] == [1]

    def test_wrong_query_raises_the_packages_error(
        self, package: SimpleNamespace, trace: str
    ) -> None:
        with package.open(trace=trace) as tp, pytest.raises(package.error, match="nme"):
            tp.query("select nme from slice")

    def test_file_and_pieces_are_traces(self, package: SimpleNamespace, trace: str) -> None:
        def pieces() -> Iterator[bytes]:
            data = Path(trace).read_bytes()
            yield data[:7]
            yield data[7:]

        with open(trace, "rb") as file:
            for reference in (file, pieces()):
                with package.open(trace=reference) as tp:
                    assert [row.n for row in tp.query("select count(*) as n from slice")] == [2]

    def test_summary_has_the_rows_of_a_metric(self, package: SimpleNamespace, trace: str) -> None:
        spec = """
            metric_spec {
              id: "slices" dimensions: "slice_name" value: "n"
              query {
                simple_slices { slice_name_glob: "w*" }
                group_by { column_names: "slice_name"
                  aggregates { op: COUNT result_column_name: "n" } }
              }
            }"""
        with package.open(trace=trace) as tp:
            (bundle,) = tp.trace_summary([spec]).metric_bundles
        assert bundle.row[0].dimension[0].string_value == "work"
        assert bundle.row[0].values[0].double_value == 2

    def test_wrong_summary_raises(self, package: SimpleNamespace, trace: str) -> None:
        with package.open(trace=trace) as tp, pytest.raises(package.error, match="has no query"):
            tp.trace_summary(['metric_spec { id: "m" value: "v" }'])

    def test_metrics_of_version_1_are_refused(self, package: SimpleNamespace, trace: str) -> None:
        with package.open(trace=trace) as tp, pytest.raises(package.error, match=r"trace.summary"):
            tp.metric(["trace_stats"])


@pytest.fixture(params=["ours", "perfetto"])
def resolvers(request: pytest.FixtureRequest) -> SimpleNamespace:
    """The modules of resolvers."""
    name = OURS if request.param == "ours" else "perfetto"
    if name == "perfetto":
        pytest.importorskip("perfetto.trace_uri_resolver")
    folder = f"{name}.trace_uri_resolver"
    resolver = importlib.import_module(f"{folder}.resolver")
    return SimpleNamespace(
        base=resolver.TraceUriResolver,
        constraint=resolver.ConstraintClass,
        registry=importlib.import_module(f"{folder}.registry").ResolverRegistry,
        path=importlib.import_module(f"{folder}.path").PathUriResolver,
    )


class TestResolvers:
    def lab(self, resolvers: SimpleNamespace, trace: str) -> Any:
        class Lab(resolvers.base):  # type: ignore[name-defined,misc]
            PREFIX = "lab"

            def __init__(self, device: list[str] | str = "", number: str = "") -> None:
                self.device = [device] if isinstance(device, str) else device

            def resolve(self) -> list[Any]:
                return [self.Result(trace, {"device": each}) for each in self.device]

        return Lab

    def test_uri_names_traces_with_metadata(self, resolvers: SimpleNamespace, trace: str) -> None:
        registry = resolvers.registry([resolvers.path, self.lab(resolvers, trace)])
        found = registry.resolve("lab:device=a,b;number=3")
        assert [each.metadata for each in found] == [
            {"device": name, "_path": trace} for name in "ab"
        ]
        assert b"".join(found[0].generator) == Path(trace).read_bytes()

    def test_resolver_and_list_are_references(self, resolvers: SimpleNamespace, trace: str) -> None:
        registry = resolvers.registry([resolvers.path])
        lab = self.lab(resolvers, trace)
        with open(trace, "rb") as file:
            assert len(registry.resolve([lab("x"), trace, file])) == 3

    def test_operator_needs_an_argument_that_takes_it(
        self, resolvers: SimpleNamespace, trace: str
    ) -> None:
        with pytest.raises(ValueError, match="number"):
            self.lab(resolvers, trace).from_trace_uri("lab:number>3")

    def test_constraints_keep_their_operators(self, resolvers: SimpleNamespace) -> None:
        constraint = resolvers.constraint

        class Builds(resolvers.base):  # type: ignore[name-defined,misc]
            PREFIX = "builds"

            def __init__(self, version: Any = None) -> None:
                self.version = version

            __init__.__annotations__["version"] = str | constraint[str]

        made = Builds.from_trace_uri("builds:version>=1;version<5")
        assert made.version == [
            constraint("1", constraint.Op.GE),
            constraint("5", constraint.Op.LT),
        ]


class TestBatch:
    @pytest.fixture
    def batch(self) -> Any:
        pytest.importorskip("pandas")
        return importlib.import_module(f"{OURS}.batch_trace_processor")

    def test_frames_are_joined_with_metadata(self, batch: Any, trace: str) -> None:
        with batch.BatchTraceProcessor([trace, trace]) as btp:
            frame = btp.query_and_flatten("select count(*) as n from slice")
            assert frame.to_dict("records") == [{"n": 2, "_path": trace}] * 2
            assert [len(each) for each in btp.query("select * from slice")] == [2, 2]
            assert btp.query_single_result("select count(*) from slice") == [2, 2]
            assert btp.execute(lambda tp: tp.metadata) == [{"_path": trace}] * 2

    def test_polars_frames(self, batch: Any, trace: str) -> None:
        pytest.importorskip("polars")
        with batch.BatchTraceProcessor([trace, trace]) as btp:
            frame = btp.query_and_flatten_polars("select name from slice limit 1")
        assert frame.to_dict(as_series=False) == {"name": ["work"] * 2, "_path": [trace] * 2}

    def test_failures_are_counted_if_so_asked(self, batch: Any, trace: str, tmp_path: Path) -> None:
        broken = tmp_path / "broken"
        broken.write_text("hello")
        count = batch.FailureHandling.INCREMENT_STAT
        config = batch.BatchTraceProcessorConfig(
            load_failure_handling=count, execute_failure_handling=count
        )
        with batch.BatchTraceProcessor([trace, str(broken)], config=config) as btp:
            assert btp.query("select nme from slice") == []
            assert (btp.stats().load_failures, btp.stats().execute_failures) == (1, 1)

    def test_failure_raises(self, batch: Any, tmp_path: Path) -> None:
        broken = tmp_path / "broken"
        broken.write_text("hello")
        error = importlib.import_module(f"{OURS}.common.exceptions").PerfettoException
        with pytest.raises(error, match="no trace"):
            batch.BatchTraceProcessor([str(broken)])

    def test_observer_sees_each_trace(self, batch: Any, trace: str) -> None:
        seen = []

        class Observer(batch.BatchTraceProcessor.Observer):  # type: ignore[name-defined,misc]
            def trace_processed(self, metadata: dict[str, str], seconds: float) -> None:
                seen.append(metadata["_path"])

        with batch.BatchTraceProcessor([trace], observer=Observer()) as btp:
            btp.query_and_flatten("select 1 as a")
        assert seen == [trace]


def test_sql_packages_can_be_included(trace: str, tmp_path: Path) -> None:
    api = importlib.import_module(f"{OURS}.trace_processor")
    (tmp_path / "mine" / "deep").mkdir(parents=True)
    (tmp_path / "mine" / "deep" / "one.sql").write_text(
        "create perfetto table one as select 1 as a"
    )
    config = api.TraceProcessorConfig(add_sql_packages=[str(tmp_path / "mine")])
    with api.TraceProcessor(trace, config=config) as tp:
        rows = tp.query("include perfetto module mine.deep.one; select a from one")
        assert [row.a for row in rows] == [1]


def test_two_traces_are_refused(trace: str) -> None:
    api = importlib.import_module(f"{OURS}.trace_processor")
    with pytest.raises(api.TraceProcessorException, match="2 traces"):
        api.TraceProcessor([trace, trace])
