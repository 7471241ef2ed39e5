"""docs/compat.md lists every field, method and statistic, with a test that exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import pytest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2

from tests.support.sources import PACKAGE, ROOT, report, where

PAGE = ROOT / "docs" / "compat.md"
PORTS = ("ProducerPort", "ConsumerPort", "RelayPort")
OF_PRODUCERS = "DataSourceConfig"
FIRST_OF_DATA_SOURCES = 100
"""Fields of a DataSourceConfig from this number on are configs of single data sources."""

NEEDS_TEST = {"works", "differs", "passed on", "refused"}
STATUSES = NEEDS_TEST | {"ignored"}


class Row(NamedTuple):
    """A row of a table in docs/compat.md: a field, method or statistic."""

    line: int
    names: list[str]
    status: str
    text: str
    tests: list[str]


def parse(page: str) -> dict[str, list[Row]]:
    """Return the table rows of docs/compat.md below each heading, which names a message or port."""
    tables: dict[str, list[Row]] = {}
    title = ""
    for number, line in enumerate(page.splitlines(), 1):
        if line.startswith("#"):
            title = line[4:] if line.startswith("### ") else ""
        elif title and line.startswith("| `"):
            names, status, text, tests = (cell.strip() for cell in line.split("|")[1:-1])
            row = Row(number, code_in(names), status, text, code_in(tests))
            tables.setdefault(title, []).append(row)
    return tables


def code_in(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def name_of(message: Any) -> str:
    return str(message.full_name).removeprefix("perfetto.protos.")


def is_of_data_source(field: Any) -> bool:
    """Return whether a field configures one data source and may be missing in docs/compat.md."""
    in_config = name_of(field.containing_type) == OF_PRODUCERS
    listed = field.name == "track_event_config"
    return in_config and field.number >= FIRST_OF_DATA_SOURCES and not listed


def messages_below(message: Any, found: dict[str, list[str]]) -> dict[str, list[str]]:
    """Collect the field names of a message and of its nested messages, by message name."""
    not_listed = name_of(message).startswith(("ProtoVmConfig", f"{OF_PRODUCERS}."))
    if name_of(message) in found or not message.fields or not_listed:
        return found
    found[name_of(message)] = [field.name for field in message.fields]
    for field in message.fields:
        if field.message_type is not None and not is_of_data_source(field):
            messages_below(field.message_type, found)
    return found


def expected() -> dict[str, list[str]]:
    """Return the names that docs/compat.md must list, by heading."""
    found: dict[str, list[str]] = {}
    for name in ("TraceConfig", "TraceStats"):
        messages_below(perfetto_trace_pb2.DESCRIPTOR.message_types_by_name[name], found)
    for port in PORTS:
        found[port] = methods_of(port)
    return found


def methods_of(port: str) -> list[str]:
    """Return the methods in the .proto file of a port."""
    stem = re.sub("(?<=[a-z])(?=[A-Z])", "_", port).lower()
    text = (PACKAGE / "protos" / "ipc" / f"{stem}.proto").read_text()
    return re.findall(r"^\s*rpc (\w+)", text, re.MULTILINE)


@pytest.fixture(scope="module")
def tables() -> dict[str, list[Row]]:
    return parse(PAGE.read_text())


def test_compat_page_lists_every_field_method_and_statistic_once(
    tables: dict[str, list[Row]],
) -> None:
    listed = {
        title: sorted(name for row in rows for name in row.names) for title, rows in tables.items()
    }
    wanted = {title: sorted(names) for title, names in expected().items()}
    assert listed == wanted


def test_every_row_of_the_compat_page_has_a_status_and_either_a_test_or_a_reason(
    tables: dict[str, list[Row]],
) -> None:
    violations = []
    for row in rows_of(tables):
        if row.status not in STATUSES:
            violations.append(where(PAGE, row.line, f"{row.status!r} is no status"))
        if row.status in NEEDS_TEST and not row.tests:
            violations.append(where(PAGE, row.line, f"{row.names[0]} has no test"))
        if row.status in ("differs", "ignored", "refused") and not row.text:
            violations.append(where(PAGE, row.line, f"{row.names[0]} has no reason"))
    report(violations)


def test_every_test_cited_in_the_compat_page_exists(tables: dict[str, list[Row]]) -> None:
    report(
        [
            where(PAGE, row.line, f"there is no test {test}")
            for row in rows_of(tables)
            for test in row.tests
            if test not in ids_in(test.partition("::")[0])
        ]
    )


def rows_of(tables: dict[str, list[Row]]) -> Iterator[Row]:
    for rows in tables.values():
        yield from rows


@cache
def ids_in(path: str) -> frozenset[str]:
    """Return the node ids of a file's tests, without parameters."""
    file = ROOT / path
    if not path.startswith("tests/") or not file.is_file():
        return frozenset()
    return frozenset(f"{path}::{name}" for name in names_of_tests(ast.parse(file.read_text()).body))


def names_of_tests(body: list[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            yield from (f"{node.name}::{name}" for name in names_of_tests(node.body))
        elif isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node.name


def test_citation_of_a_missing_test_is_found() -> None:
    assert ids_in("tests/unit/nowhere.py") == frozenset()
    here = ids_in("tests/meta/test_compat.py")
    assert "tests/meta/test_compat.py::test_citation_of_a_missing_test_is_found" in here


def test_table_row_of_the_compat_page_is_parsed() -> None:
    table = "### A\n\n| field |\n| `a`<br>`b` | works | text | `t::x`<br>`t::y` |\n"
    page = f"{table}## B\n| `c` | x | y | |\n"
    assert parse(page) == {"A": [Row(4, ["a", "b"], "works", "text", ["t::x", "t::y"])]}
