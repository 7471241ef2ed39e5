"""`pytest --stretto` records a slice per test, with its phases, fixtures and outcome."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from stretto.cli.main import main
from tests.support.recorded import Run, alone, check_trace, record

pytestmark = pytest.mark.few_versions

TESTS = """
import pytest

@pytest.fixture(scope="module")
def database():
    yield "shop"

@pytest.fixture
def cart(database):
    return [database]

@pytest.fixture
def broken():
    raise LookupError("no shop")

def test_sell(cart): pass
def test_count(cart): assert len(cart) == 2
def test_order(broken): pass
@pytest.mark.skip(reason="later")
def test_return(): pass
@pytest.mark.xfail(strict=True)
def test_repay(): raise KeyError("cart")
"""
OUTCOMES = [
    ("test_shop.py::test_count", "failed", "AssertionError"),
    ("test_shop.py::test_order", "error", "LookupError"),
    ("test_shop.py::test_repay", "xfailed", "KeyError"),
    ("test_shop.py::test_return", "skipped", "Skipped"),
    ("test_shop.py::test_sell", "passed", None),
]
PAGE = Path(__file__).parents[2] / "docs" / "pytest.md"
TESTS_FAILED, USAGE_ERROR = 1, 4


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\naddopts = -p no:cacheprovider -p no:hypothesispytest -p no:anyio -W error\n"
    )
    (tmp_path / "test_shop.py").write_text(TESTS)
    return tmp_path


def run_pytest(folder: Path, *arguments: str) -> Run:
    return alone(sys.executable, "-m", "pytest", *arguments, cwd=folder)


def outcomes(loaded: Any) -> list[tuple[Any, ...]]:
    arguments = ", ".join(
        f"extract_arg(arg_set_id, 'debug.{key}')" for key in ("outcome", "exception")
    )
    return loaded.query(f"select name, {arguments} from slice where name like '%::%' order by name")


def slices_of(loaded: Any, test: str) -> list[tuple[Any, ...]]:
    """Return the depth and name of the slices within a test."""
    return loaded.query(
        "select s.depth, s.name from slice t join slice s on s.track_id = t.track_id"
        " and s.ts >= t.ts and s.ts + s.dur <= t.ts + t.dur and s.depth > t.depth"
        f" where t.name = 'test_shop.py::{test}' order by s.ts, s.depth"
    )


def test_each_test_is_a_slice_with_phases_fixtures_and_outcome(folder: Path, oracle: Any) -> None:
    run = run_pytest(folder, "--stretto=shop.pftrace", "test_shop.py")
    assert run.status == TESTS_FAILED, run
    assert "trace: shop.pftrace" in run.stdout
    assert "stretto view shop.pftrace" in run.stdout
    loaded = check_trace(oracle, (folder / "shop.pftrace").read_bytes())
    assert outcomes(loaded) == OUTCOMES
    assert slices_of(loaded, "test_sell") == [
        (1, "setup"),
        (2, "fixture database"),
        (2, "fixture cart"),
        (1, "call"),
        (1, "teardown"),
    ]
    assert slices_of(loaded, "test_repay")[-1] == (2, "fixture database, teardown")
    lanes = "select distinct t.name from slice join track t on t.id = track_id"
    assert loaded.query(lanes) == [("tests",)]
    (documented,) = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
    fixtures = {name: count for name, count, _ in loaded.query(documented)}
    assert fixtures["fixture cart"] == 2


ERRORS = """
import pytest

@pytest.fixture(scope="module")
def database():
    raise ConnectionError("no route")

@pytest.fixture
def shop(database): pass

@pytest.fixture
def cart():
    yield
    raise KeyError("gone")

def test_open(shop): pass
def test_again(shop): pass
def test_sell(cart): pass
def test_wrong(nothing): pass
def test_stop(): pytest.exit("the disk is full")
def test_never(): pass
"""
LOOKUP_ERROR = "_pytest.fixtures.FixtureLookupError"
EXIT = "_pytest.outcomes.Exit"


def test_errors_of_fixtures_and_the_exit_of_the_run_are_named(
    folder: Path, oracle: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "test_shop.py").write_text(ERRORS)
    run = run_pytest(folder, "--stretto=shop.pftrace", "test_shop.py")
    assert "the disk is full" in run.stdout
    path = folder / "shop.pftrace"
    loaded = check_trace(oracle, path.read_bytes())
    keys = ("outcome", "fixture", "exception", "message")
    arguments = ", ".join(f"extract_arg(arg_set_id, 'debug.{key}')" for key in keys)
    rows = loaded.query(f"select name, {arguments} from slice where name like '%::%' order by ts")
    assert [(name.partition("::")[2], *rest) for name, *rest in rows] == [
        ("test_open", "error", "database", "ConnectionError", "no route"),
        ("test_again", "error", "database", "ConnectionError", "no route"),
        ("test_sell", "passed, error", "cart", "KeyError", "'gone'"),
        ("test_wrong", "error", "nothing", LOOKUP_ERROR, "fixture 'nothing' not found"),
        ("test_stop", "interrupted", None, EXIT, "the disk is full"),
    ]
    ends = "select count(*) from slice where name = 'pytest.exit: the disk is full'"
    assert loaded.query(ends) == [(1,)]
    assert main(["summary", str(path)]) == 0
    shown = capsys.readouterr().out.partition("\nTests that did not pass\n\n")[2].splitlines()
    assert [line for line in shown if "test_wrong" not in line] == [
        "  error  test_shop.py::test_open  fixture database: ConnectionError: no route",
        "  error  test_shop.py::test_again  fixture database: ConnectionError: no route",
        "  passed, error  test_shop.py::test_sell  fixture cart: KeyError: 'gone'",
        f"  interrupted  test_shop.py::test_stop  {EXIT}: the disk is full",
        "  pytest.exit: the disk is full",
    ]


@pytest.mark.thorough
def test_workers_of_xdist_are_lanes_of_one_trace(folder: Path, oracle: Any) -> None:
    run = run_pytest(folder, "-n", "2", "--dist", "each", "--stretto")
    assert run.status == TESTS_FAILED, run
    loaded = check_trace(oracle, (folder / "trace.pftrace").read_bytes())
    assert outcomes(loaded) == sorted([*OUTCOMES, *OUTCOMES], key=lambda row: row[0])
    lanes = "select p.name, t.name, count(*) from slice join process_track t on t.id = track_id"
    lanes += " join process p using (upid) where slice.name like '%::%' group by t.id order by 2"
    assert loaded.query(lanes) == [
        (f"pytest {worker}", f"tests {worker}", len(OUTCOMES)) for worker in ("gw0", "gw1")
    ]


@pytest.mark.parametrize("option", ["", "--stretto=other.pftrace"])
def test_pytest_under_stretto_record_has_the_slices_of_the_plugin(
    folder: Path, oracle: Any, option: str
) -> None:
    path = folder / "trace.pftrace"
    run = record(path, "--no-functions", "-m", "pytest", *option.split(), cwd=folder)
    assert run.status == TESTS_FAILED, run
    assert ("--stretto has no effect" in run.stdout) is bool(option)
    assert "PytestAssertRewriteWarning" not in run.stdout
    loaded = check_trace(oracle, run.trace)
    assert outcomes(loaded) == OUTCOMES
    assert not (folder / "other.pftrace").exists()


def test_without_the_option_stretto_is_not_imported(folder: Path) -> None:
    (folder / "test_shop.py").write_text(
        "import sys\n"
        "def test_imports():\n"
        "    names = {n for n in sys.modules if n.startswith(('stretto', 'pytest_stretto'))}\n"
        "    assert names == {'pytest_stretto'}\n"
    )
    run = run_pytest(folder)
    assert run.status == 0, run.stdout


@pytest.mark.once
@pytest.mark.parametrize("value", ["test_shop.py", ".", "test_shop.py::test_sell"])
def test_value_of_the_option_that_names_tests_is_refused(folder: Path, value: str) -> None:
    run = run_pytest(folder, f"--stretto={value}")
    assert run.status == USAGE_ERROR, run
    assert f"--stretto={value}: this isn't a trace" in run.stderr
    assert (folder / "test_shop.py").read_text() == TESTS


CART = "test_cart.py"


@pytest.mark.once
@pytest.mark.parametrize(
    ("words", "trace"),
    [
        (["--stretto", CART], "trace.pftrace"),
        ([CART, "--stretto"], "trace.pftrace"),
        (["--stretto", "-q", CART], "trace.pftrace"),
        (["--stretto", f"{CART}::test_add"], "trace.pftrace"),
        (["--stretto", "--", CART], "trace.pftrace"),
        (["--stretto=cart.pftrace", CART], "cart.pftrace"),
        (["--stretto", "cart.pftrace", CART], "cart.pftrace"),
        ([CART, "--stretto", "cart.pftrace"], "cart.pftrace"),
    ],
)
def test_word_after_the_option_is_its_value_only_if_it_names_a_trace(
    folder: Path, words: list[str], trace: str
) -> None:
    (folder / CART).write_text("def test_add(): pass\n")
    run = run_pytest(folder, *words)
    assert (run.status, run.stderr) == (0, ""), run
    assert "1 passed" in run.stdout
    assert f"trace: {trace}, " in run.stdout
    assert [each.name for each in folder.glob("*.pftrace")] == [trace]


def test_options_of_the_conftest_next_to_the_named_tests_are_known(folder: Path) -> None:
    (folder / "cart").mkdir()
    (folder / "cart" / CART).write_text("def test_add(request): request.config.option.shop\n")
    (folder / "cart" / "conftest.py").write_text(
        "def pytest_addoption(parser): parser.addoption('--shop')\n"
    )
    run = run_pytest(folder, "--stretto", "cart", "--shop=a")
    assert run.status == 0, run


def test_refusal_of_a_json_name_contains_the_command_that_makes_json(folder: Path) -> None:
    run = run_pytest(folder, "--stretto=shop.json")
    assert run.status == USAGE_ERROR, run
    path = folder / "shop"
    assert f"`stretto convert {path}.pftrace {path}.json`" in run.stdout + run.stderr


def test_trace_that_cannot_be_written_is_an_error_before_the_first_test(folder: Path) -> None:
    run = run_pytest(folder, "--stretto=missing/shop.pftrace")
    assert run.status == USAGE_ERROR, run
    assert "missing/shop.pftrace" in run.stdout + run.stderr
    assert "passed" not in run.stdout
