"""The tests of a recorded test run that did not pass, and what ended the run early."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stretto.analysis.trace_tables import table_rows

if TYPE_CHECKING:
    from stretto import _native

CATEGORY = "python.tests"
"""The category of the slices that `pytest --stretto` records."""
_FIELDS = ("outcome", "exception", "message", "fixture")


class UnexpectedTest(NamedTuple):
    """A test that did not pass, or the end of the run by `pytest.exit`.

    Attributes:
        test: Its node id; "" for the end of the run.
        outcome: `failed`, `error`, `interrupted`, …; for the end of the run its reason.
        fixture: The fixture that raised the exception; "" if none did.
        exception: The exception's type; "" without one.
        message: The exception's message.
    """

    test: str
    outcome: str
    fixture: str = ""
    exception: str = ""
    message: str = ""


_ENDS = ("pytest.exit", "KeyboardInterrupt")
_EXPECTED = {"passed", "skipped", "xfailed", "deselected"}


def unexpected_tests(importer: _native.TraceImporter) -> list[UnexpectedTest]:
    """Return the tests that neither passed nor were skipped, and the end of the run, by time."""
    tests = [row for row in table_rows(importer, "slice") if row["category"] == CATEGORY]
    if not tests:
        return []
    arguments = _arguments(importer, {row["arg_set_id"] for row in tests})
    found = []
    for row in sorted(tests, key=lambda row: row["ts"]):
        known = arguments.get(row["arg_set_id"], {})
        if row["name"].startswith(_ENDS):
            found.append(UnexpectedTest("", row["name"]))
        elif known.get("outcome", "passed") not in _EXPECTED:
            found.append(UnexpectedTest(row["name"], **{"outcome": "", **known}))
    return found


def _arguments(importer: _native.TraceImporter, sets: set[int]) -> dict[int, dict[str, str]]:
    found: dict[int, dict[str, str]] = {}
    for row in table_rows(importer, "__intrinsic_args"):
        prefix, _, field = row["key"].partition(".")
        if row["arg_set_id"] in sets and prefix == "debug" and field in _FIELDS:
            found.setdefault(row["arg_set_id"], {})[field] = str(row["string_value"])
    return found
