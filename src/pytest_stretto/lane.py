"""The lane `tests`: a slice per test, and in it its phases and fixtures."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pytest

import stretto
from stretto.profilers.exception_text import message_of, type_name

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import CodeType

MAX_MESSAGE = 4000
"""The longest recorded message of an exception, in characters."""

category = stretto.Category("python.tests", "tests, with their phases and fixtures")


class Lane:
    """Records the tests of this process as slices of one track.

    Args:
        name: the name of the track.
    """

    def __init__(self, name: str) -> None:
        self._track = stretto.Track(name, parent=stretto.process_track())
        self._result: dict[str, str] = {}
        self._fixtures: dict[CodeType, str] = {}
        """The names of the fixtures that were set up, by their code."""

    def _slice(self, name: str, **arguments: Any) -> Any:
        return category.slice(name, track=self._track, **arguments)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        with self._slice("collection"):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._result = {}
        category.begin(item.nodeid, track=self._track)
        try:
            return (yield)
        except (pytest.exit.Exception, KeyboardInterrupt) as error:
            self._add_outcome("interrupted")
            self._add_exception(error)
            raise
        finally:
            category.end(track=self._track, args=self._result)

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Record the end of the run by `pytest.exit` or Ctrl-C, in a test or outside of tests."""
        is_exit = isinstance(excinfo.value, pytest.exit.Exception)
        name = "pytest.exit" if is_exit else type_name(excinfo.type)
        message = message_of(excinfo.value)[:MAX_MESSAGE]
        category.instant(f"{name}: {message}" if message else name, track=self._track)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self) -> Generator[None, object, object]:
        with self._slice("setup"):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        with self._slice("call"):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self) -> Generator[None, object, object]:
        with self._slice("teardown"):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any]
    ) -> Generator[None, object, object]:
        """Record the fixture's code, including the code after its `yield`.

        The finalizers of a fixture run from the last to the first.
        """
        name = f"fixture {fixturedef.argname}"
        open_slices: list[Any] = []
        function: Any = fixturedef.func
        if (code := getattr(function, "__code__", None)) is not None:
            self._fixtures[code] = fixturedef.argname
        has_teardown = inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)

        def begin() -> None:
            open_slices.append(self._slice(f"{name}, teardown", scope=fixturedef.scope))
            open_slices[0].__enter__()

        def end() -> None:
            while open_slices:
                open_slices.pop().__exit__(None, None, None)

        if has_teardown:
            fixturedef.addfinalizer(end)
        with self._slice(name, scope=fixturedef.scope):
            value = yield
        if has_teardown:
            fixturedef.addfinalizer(begin)
        return value

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[object]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Store the outcome as pytest's own summary names it: passed, error, xfailed, ..."""
        report = yield
        status = item.ihook.pytest_report_teststatus(report=report, config=item.config)
        outcome = status[0] if status else report.outcome
        if outcome and (report.when == "call" or outcome != "passed"):
            self._add_outcome(outcome)
        if call.excinfo is not None and "exception" not in self._result:
            self._add_exception(call.excinfo.value)
        return report

    def _add_outcome(self, outcome: str) -> None:
        before = self._result.get("outcome")
        self._result["outcome"] = f"{before}, {outcome}" if before else outcome

    def _add_exception(self, error: BaseException) -> None:
        self._result["exception"] = type_name(type(error))
        self._result["message"] = _message(error)[:MAX_MESSAGE]
        if fixture := self._fixture_of(error):
            self._result["fixture"] = fixture

    def _fixture_of(self, error: BaseException) -> str:
        """Return the innermost fixture whose code the exception has left, or ""."""
        if isinstance(error, pytest.FixtureLookupError):
            return error.argname or ""
        found, traceback = "", error.__traceback__
        while traceback is not None:
            found = self._fixtures.get(traceback.tb_frame.f_code, found)
            traceback = traceback.tb_next
        return found


def _message(error: BaseException) -> str:
    if isinstance(error, pytest.FixtureLookupError):
        return error.msg or f"fixture {error.argname!r} not found"
    return message_of(error)
