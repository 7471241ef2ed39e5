"""Errors that a signal handler raises during Stretto's Python code reach the program."""

from __future__ import annotations

import contextvars
import functools
import gc
import signal
import traceback
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

import pytest

import stretto
from stretto import _native, _pyhooks
from stretto.client.track_event import process
from stretto.client.track_event.task_track import current_task_track
from stretto.profilers import gc as gc_profiler
from tests.support.call_slices import recorded

SIGNAL = signal.SIGUSR1


class TimeLimitError(Exception):
    """An error that the program's signal handler raises."""


def on_signal(*_: object) -> None:
    raise TimeLimitError("too long")


class Handler:
    def __call__(self, *_: object) -> None:
        raise TimeLimitError("too long")


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    before = signal.signal(SIGNAL, on_signal)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(SIGNAL, before)


def interrupted(*_: object) -> Any:
    signal.raise_signal(SIGNAL)


def run_on() -> None:
    for _ in range(1000):
        pass


def call(function: Callable[..., object], *args: object) -> None:
    """Call a function, then run bytecode so that pending signal handlers are executed."""
    try:
        function(*args)
    finally:
        run_on()


def collect_often() -> None:
    signal.setitimer(signal.ITIMER_REAL, 0.0005)
    for _ in range(100):
        gc.collect()


def instant_in_new_context(category: stretto.Category) -> None:
    contextvars.copy_context().run(category.instant, "event")


def failing(*_: object) -> Any:
    raise TimeLimitError("an error of our own")


class TestHandlerErrorsInObservers:
    def test_handler_error_in_the_first_observer_is_raised_after_the_function(self) -> None:
        seen: list[int] = []
        around = _pyhooks.Around(seen.append, interrupted)
        with pytest.raises(TimeLimitError, match="too long") as caught:
            call(around, 1)
        assert seen == [1]
        names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
        assert names[0].startswith("test_")
        assert names[-1] == "on_signal"
        assert "interrupted" not in names

    def test_handler_error_in_the_second_observer_is_raised(self) -> None:
        with pytest.raises(TimeLimitError):
            call(_pyhooks.Around(run_on, lambda *_: 1, interrupted))

    @pytest.mark.parametrize(
        "kind", [Handler(), functools.partial(on_signal, 1), Handler().__call__]
    )
    def test_error_of_any_kind_of_signal_handler_is_raised(self, kind: Callable[..., None]) -> None:
        signal.signal(SIGNAL, kind)
        with pytest.raises(TimeLimitError):
            call(_pyhooks.Around(run_on, interrupted))

    @pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
    def test_errors_that_end_the_program_are_always_raised(
        self, error: type[BaseException]
    ) -> None:
        def ending(*_: object) -> None:
            raise error(3)

        with pytest.raises(error) as caught:
            call(_pyhooks.Around(run_on, ending))
        assert caught.value.args == (3,)

    def test_errors_raised_by_observers_are_ignored(self) -> None:
        _pyhooks.Around(run_on, failing, failing)()
        run_on()

    def test_error_of_a_signal_handler_replaces_the_error_of_the_wrapped_function(self) -> None:
        with pytest.raises(TimeLimitError) as caught:
            call(_pyhooks.Around(failing, lambda *_: 1, interrupted))
        assert str(caught.value) == "too long"


def test_handler_error_while_a_thread_is_described_is_raised() -> None:
    category = stretto.Category("test.handler_errors")
    process.soon.append(interrupted)
    with recorded("test.handler_errors"), pytest.raises(TimeLimitError):
        call(category.instant, "event")
    assert interrupted not in process.soon  # The list may contain callbacks of earlier tests.


def test_handler_error_while_the_track_of_a_task_is_made_is_raised() -> None:
    category = stretto.Category("test.handler_errors")
    with recorded("test.handler_errors"):
        category.instant("event")
        _native.set_hooks(
            process.announce_process, process.describe_thread, interrupted, process.soon
        )
        try:
            with pytest.raises(TimeLimitError):
                call(instant_in_new_context, category)
        finally:
            _native.set_hooks(
                process.announce_process,
                process.describe_thread,
                current_task_track,
                process.soon,
            )


def test_handler_error_in_the_filter_of_functions_is_raised() -> None:
    def accepts(code: CodeType, _module: str | None) -> bool:
        if code is run_on.__code__:
            interrupted()
        return False

    _pyhooks.start(stretto.Category("test.handler_errors"), accepts=accepts)
    try:
        with pytest.raises(TimeLimitError):
            run_on()
    finally:
        _pyhooks.stop()


@pytest.fixture
def no_other_gc_callbacks() -> Iterator[None]:
    """Remove the GC callback of Hypothesis, in which the signal handler could run."""
    others = gc.callbacks[:]
    gc.callbacks.clear()
    yield
    gc.callbacks[:] = others


@pytest.mark.usefixtures("no_other_gc_callbacks")
def test_signal_handler_does_not_run_in_the_gc_callback(capsys: pytest.CaptureFixture[str]) -> None:
    gc_profiler.install()
    signal.signal(signal.SIGALRM, on_signal)
    # Collecting this many objects takes longer than the delay of the alarm signal.
    heap = [[] for _ in range(300_000)]
    with recorded("python.gc"), pytest.raises(TimeLimitError):
        collect_often()
    del heap
    assert capsys.readouterr().err == ""
