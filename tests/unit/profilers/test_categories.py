"""Profilers of garbage collections, tasks, log records and uncaught exceptions."""

from __future__ import annotations

import asyncio
import gc
import io
import logging
import re
import sys
import threading
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.pool import ThreadPool

import pytest

import stretto
from stretto.profilers import asyncio_tasks, exceptions, log
from stretto.profilers import gc as gc_profiler
from tests.support.call_slices import BEGIN, END, INSTANT, recorded


class Odd(Exception):  # noqa: N818
    """An exception whose `__str__` raises an error."""

    def __str__(self) -> str:
        raise RuntimeError


@pytest.fixture(autouse=True)
def installed() -> None:
    for profiler in (asyncio_tasks, exceptions, gc_profiler, log):
        profiler.install()


class TestGarbageCollections:
    def test_garbage_collection_is_a_slice(self) -> None:
        gc.collect()
        gc.disable()
        try:
            with recorded("python.gc") as result:
                cycle: list[object] = []
                cycle.append(cycle)
                del cycle
                gc.collect(0)
        finally:
            gc.enable()
        begin, end = result.events
        assert (begin.type, begin.name, begin.args) == (
            BEGIN,
            "garbage collection",
            {"generation": 0},
        )
        assert (end.type, end.args["collected"], end.args["uncollectable"]) == (END, 1, 0)

    def test_gc_callback_is_removed_after_the_session(self) -> None:
        before = list(gc.callbacks)
        with recorded("python.gc"):
            assert len(gc.callbacks) == len(before) + 1
        assert gc.callbacks == before


class TestLogRecords:
    @pytest.fixture
    def logger(self) -> Iterator[tuple[logging.Logger, io.StringIO]]:
        output = io.StringIO()
        handler = logging.StreamHandler(output)
        logger = logging.Logger("app.part", logging.DEBUG)
        logger.addHandler(handler)
        yield logger, output
        logger.removeHandler(handler)

    def test_log_records_of_level_info_and_higher_are_instants(
        self, logger: tuple[logging.Logger, io.StringIO]
    ) -> None:
        log_, output = logger
        with recorded("python.log") as result:
            log_.debug("not %s", "this")
            log_.info("hello %s", "world")
            log_.error("plain")
        first, second = result.events
        assert (first.type, first.name, second.name) == (INSTANT, "hello world", "plain")
        assert (first.log, second.log) == ((4, "hello world"), (6, "plain"))
        assert first.args == {"logger": "app.part", "level": "INFO"}
        assert first.location == (__file__, second.location[1] - 1)
        assert output.getvalue() == "not this\nhello world\nplain\n"

    def test_logged_exception_has_type_message_and_frames(
        self, logger: tuple[logging.Logger, io.StringIO]
    ) -> None:
        log_, output = logger

        def fails() -> None:
            raise ConnectionError("no route")

        with recorded("python.log") as result:
            try:
                fails()
            except ConnectionError as error:
                log_.exception("lost %s", "it")
                log_.warning("again", exc_info=error)
                log_.info("without")
        first, second, third = result.events
        for event, message in ((first, "lost it"), (second, "again")):
            assert event.log[1] == message
            assert event.args["exception_type"] == "ConnectionError"
            assert event.args["exception_message"] == "no route"
            lines = event.args["traceback"].splitlines()
            assert lines[0] == "Traceback (most recent call last):"
            assert [line.rpartition(" ")[2] for line in lines[1:]] == [
                sys._getframe().f_code.co_qualname, fails.__qualname__,
            ]  # fmt: skip
            assert f'File "{__file__}", line ' in lines[-1]
        assert set(third.args) == {"logger", "level"}
        assert output.getvalue().count("ConnectionError: no route") == 2

    def test_source_lines_of_formatted_stacks_are_left_out_on_request(
        self, logger: tuple[logging.Logger, io.StringIO], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        log_, _output = logger
        monkeypatch.setattr(log, "_keeps_source", True)
        error = ExceptionGroup("several", [ValueError("one"), ExceptionGroup("x", [OSError()])])
        record = log_.makeRecord("app", 40, __file__, 1, "it", (), None)
        with recorded("python.log") as result:
            try:
                try:
                    raise KeyError("inner")
                except KeyError:
                    raise error  # noqa: B904
            except ExceptionGroup:
                record.exc_text = traceback.format_exc()
                record.stack_info = (
                    'Stack:\n  File "x.py", line 1, in f\n    secret()\n    ^^^^^^^^'
                )
            log_.handle(record)
            log.leave_out_source()
            log_.handle(record)
        before, after = result.events
        assert before.args["stack"] == record.stack_info
        assert after.args["stack"] == 'Stack:\n  File "x.py", line 1, in f'
        text, frames = before.args["traceback"], after.args["traceback"]
        assert text == record.exc_text
        assert "raise" not in frames
        left_out = [line for line in text.splitlines() if line not in frames.splitlines()]
        assert all(re.search(r"raise|[~^]{3}", line) for line in left_out)

    def test_stack_frames_of_causes_and_contexts_precede_frames_of_the_exception(
        self, logger: tuple[logging.Logger, io.StringIO]
    ) -> None:
        log_, _output = logger
        with recorded("python.log") as result:
            try:
                try:
                    try:
                        raise KeyError("qty")
                    except KeyError:
                        raise ValueError("no quantity")  # noqa: B904
                except ValueError as error:
                    raise RuntimeError("no order") from error
            except RuntimeError:
                log_.exception("failed")
            try:
                try:
                    raise KeyError("qty")
                except KeyError:
                    raise ValueError("hidden") from None
            except ValueError:
                log_.exception("failed")
        chained, hidden = (event.args["traceback"] for event in result.events)
        assert chained.count("Traceback (most recent call last):") == 3
        links = [
            line
            for line in chained.splitlines()
            if line and not line.startswith((" ", "Traceback"))
        ]
        assert links == [
            "KeyError: 'qty'",
            "While the exception above was handled, this one was raised:",
            "ValueError: no quantity",
            "The exception above was the direct cause of this one:",
        ]
        assert hidden.count("Traceback") == 1
        assert "KeyError" not in hidden

    def test_exceptions_of_an_exception_group_are_listed_after_the_stack_frames(
        self, logger: tuple[logging.Logger, io.StringIO]
    ) -> None:
        log_, _output = logger
        members = [ValueError(f"no {number}") for number in range(10)]
        with recorded("python.log") as result:
            try:
                raise ExceptionGroup("all", members)
            except ExceptionGroup:
                log_.exception("failed")
        lines = result.events[0].args["traceback"].splitlines()
        assert lines[-9:] == [
            *(f"  + ValueError: no {number}" for number in range(8)),
            "  + 2 more",
        ]

    def test_log_records_without_an_exception_object_are_recorded(
        self, logger: tuple[logging.Logger, io.StringIO]
    ) -> None:
        log_, _output = logger
        with recorded("python.log") as result:
            log_.error("none", exc_info=True)
            log_.error("stack", stack_info=True)
            made = {"name": "app", "levelno": 40, "levelname": "ERROR", "exc_text": "elsewhere"}
            log_.handle(logging.makeLogRecord(made))
        nothing, stack, elsewhere = result.events
        assert "traceback" not in nothing.args
        assert stack.args["stack"].startswith("Stack (most recent call last):")
        assert elsewhere.args["traceback"] == "elsewhere"

    def test_exception_with_a_failing_str_or_invalid_exc_info_is_recorded(
        self, logger: tuple[logging.Logger, io.StringIO]
    ) -> None:
        log_, _output = logger
        log_.handlers[0].setFormatter(logging.Formatter("", validate=False))
        log_.handlers[0].handle = lambda _record: True  # type: ignore[method-assign]
        odd = logging.makeLogRecord({"levelno": 40, "levelname": "ERROR", "exc_info": ("x",)})
        with recorded("python.log") as result:
            try:
                raise Odd
            except Odd:
                log_.exception("odd")
            log_.handle(odd)
        first, second = result.events
        assert first.args["exception_type"] == f"{__name__}.Odd"
        assert first.args["exception_message"] == "<RuntimeError in str>"
        assert "traceback" not in second.args

    def test_first_and_last_frames_of_a_deep_traceback_are_recorded(
        self, logger: tuple[logging.Logger, io.StringIO]
    ) -> None:
        def deep(n: int) -> None:
            if n == 0:
                raise ValueError("x" * 100_000)
            deep(n - 1)

        with recorded("python.log") as result:
            try:
                deep(300)
            except ValueError:
                logger[0].exception("deep")
        (event,) = result.events
        text = event.args["traceback"]
        assert len(text.encode()) <= 4096
        lines = text.splitlines()
        assert len(lines) == 1 + 4 + 1 + 12
        assert lines[5] == "  ... 286 more ..."
        assert f"line {deep.__code__.co_firstlineno + 2}," in lines[-1]
        assert len(event.args["exception_message"].encode()) <= 4096

    def test_error_in_formatting_a_log_record_is_printed_as_without_tracing(
        self, logger: tuple[logging.Logger, io.StringIO], capsys: pytest.CaptureFixture[str]
    ) -> None:
        def output(record: bool) -> str:
            if record:
                with recorded("python.log") as result:
                    logger[0].info("%d", "x")
                assert result.events[0].log == (4, "%d")
            else:
                logger[0].info("%d", "x")
            lines = capsys.readouterr().err.splitlines()
            return "\n".join(line for line in lines if "in output" not in line and "^" not in line)

        alone, with_us = output(False), output(True)
        assert "Logging error" in alone
        assert "stretto" not in with_us
        assert len(alone.splitlines()) - len(with_us.splitlines()) in (-1, 0, 1)

    def test_name_of_a_long_message_is_its_shortened_first_line(
        self, logger: tuple[logging.Logger, io.StringIO]
    ) -> None:
        log_, _output = logger
        messages = ["first\nsecond", "x" * 121, "é" * 10_000, "", "\ud800"]
        with recorded("python.log") as result:
            for message in messages:
                log_.critical(message)
        names = ["first", "x" * 117 + "...", "é" * 117 + "...", "CRITICAL", "\\ud800"]
        assert [event.name for event in result.events] == names
        bodies = [*messages[:2], "é" * 8192, "", "\\ud800"]
        assert [event.log for event in result.events] == [(7, body) for body in bodies]

    def test_extra_attributes_of_a_log_record_are_event_arguments(
        self, logger: tuple[logging.Logger, io.StringIO]
    ) -> None:
        log_, _output = logger
        with recorded("python.log") as result:
            log_.info("sold", extra={"order": 17})
            log_.info("sold")
        assert ["extra" in event.args for event in result.events] == [True, False]

    def test_log_record_without_a_location_is_recorded_without_location(
        self, logger: tuple[logging.Logger, io.StringIO]
    ) -> None:
        odd = logging.makeLogRecord({"levelno": 35, "pathname": None, "lineno": None})
        with recorded("python.log") as result:
            logger[0].handle(odd)
        (event,) = result.events
        assert (event.log, event.location) == ((5, ""), None)

    def test_patched_method_of_the_logger_is_restored_after_the_session(self) -> None:
        original = logging.Logger.callHandlers
        with recorded("python.log"):
            assert logging.Logger.callHandlers is not original
        assert logging.Logger.callHandlers is original


class TestUncaughtExceptions:
    def test_uncaught_exception_of_a_thread_is_recorded(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def fails() -> None:
            raise ValueError("no good")

        seen = []
        original = threading.excepthook
        threading.excepthook = seen.append
        try:
            with recorded("python.exceptions") as result:
                for target in (fails, sys.exit):
                    thread = threading.Thread(target=target)
                    thread.start()
                    thread.join()
        finally:
            threading.excepthook = original
        (event,) = result.events
        assert (event.type, event.name) == (INSTANT, "ValueError: no good")
        assert event.log == (7, "ValueError: no good")
        assert event.location == (__file__, fails.__code__.co_firstlineno + 1)
        assert event.args["type"] == "ValueError"
        assert event.args["message"] == "no good"
        assert event.args["traceback"].startswith("Traceback (most recent call last):")
        assert event.args["traceback"].endswith("fails")
        assert [given.exc_type for given in seen] == [ValueError, SystemExit]

    def test_uncaught_exception_of_the_main_thread_is_recorded(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        original = sys.excepthook
        with recorded("python.exceptions") as result:
            assert sys.excepthook is not original
            for error in (KeyError("x"), Odd()):
                try:
                    raise error
                except Exception as caught:
                    # The interpreter does so before it calls the hook.
                    monkeypatch.setattr(sys, "last_value", caught, raising=False)
                    sys.excepthook(type(caught), caught, caught.__traceback__)
        assert [(e.args["type"], e.args["message"], e.log[0]) for e in result.events] == [
            ("KeyError", "'x'", 7),
            (f"{__name__}.Odd", "<RuntimeError in str>", 7),
        ]
        assert "KeyError: 'x'" in capsys.readouterr().err
        assert sys.excepthook is original

    def test_exception_that_the_program_handles_by_the_hook_is_a_warning(self) -> None:
        with recorded("python.exceptions") as result:
            try:
                raise KeyError("x")
            except KeyError:
                sys.__excepthook__(*sys.exc_info())  # type: ignore[arg-type]
        assert [(event.name, event.log[0]) for event in result.events] == [("KeyError: 'x'", 5)]


class TestIgnoredExceptions:
    def test_exception_of_a_destructor_is_a_warning_with_the_name_of_the_destructor(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class File:
            def __del__(self) -> None:
                raise KeyError("closed")

        seen = []
        monkeypatch.setattr(sys, "unraisablehook", lambda given: seen.append(given.exc_type))
        original = sys.unraisablehook
        with recorded("python.exceptions") as result:
            File()
        (event,) = result.events
        assert (event.name, event.log[0]) == ("KeyError: 'closed'", 5)
        assert event.args["ignored_in"] == File.__del__.__qualname__
        assert event.location == (__file__, File.__del__.__code__.co_firstlineno + 1)
        assert seen == [KeyError]
        assert sys.unraisablehook is original


class TestKeptExceptions:
    def test_exceptions_that_results_of_a_pool_keep_are_recorded(self) -> None:
        def fails(_item: int) -> None:
            raise KeyError("qty")

        with recorded("python.exceptions") as result, ThreadPool(1) as pool:
            for call in (pool.map, pool.imap, pool.imap_unordered):
                with pytest.raises(KeyError):
                    list(call(fails, [1]))
            pool.apply_async(fails, [1]).wait()
        assert [(event.name, event.args["kept_by"]) for event in result.events] == [
            ("KeyError: 'qty'", "pool")
        ] * 4

    def test_exception_that_a_future_keeps_is_recorded(self) -> None:
        with recorded("python.exceptions") as result, ThreadPoolExecutor(1) as pool:
            future = pool.submit({}.__getitem__, "qty")
        assert isinstance(future.exception(), KeyError)
        (event,) = result.events
        assert (event.name, event.args["kept_by"]) == ("KeyError: 'qty'", "future")

    def test_exception_that_gather_returns_is_recorded_once(self) -> None:
        async def fails() -> None:
            raise KeyError("qty")

        async def outer() -> None:
            await fails_in_task()

        async def fails_in_task() -> None:
            await asyncio.create_task(fails())

        async def main() -> None:
            await asyncio.gather(outer(), return_exceptions=True)

        with recorded("python.exceptions", "python.asyncio") as result:
            asyncio.run(main())
        kept = [event for event in result.events if "kept_by" in event.args]
        assert [(event.name, event.args["kept_by"]) for event in kept] == [
            ("KeyError: 'qty'", "task")
        ]
        failed = [event for event in result.events if "exception" in event.args]
        assert [(event.type, event.args["exception"]) for event in failed] == [
            (END, "KeyError"), (END, "KeyError"),
        ]  # fmt: skip

    @pytest.mark.parametrize("uses_uvloop", [False, True])
    def test_exceptions_that_only_the_event_loop_reports_are_recorded(
        self, uses_uvloop: bool, caplog: pytest.LogCaptureFixture
    ) -> None:
        new_loop = pytest.importorskip("uvloop").new_event_loop if uses_uvloop else None

        async def fails() -> None:
            raise OSError("disk")

        async def main() -> None:
            loop = asyncio.get_running_loop()
            future = loop.create_future()
            future.set_exception(KeyError("qty"))
            retrieved = loop.create_future()
            retrieved.set_exception(ValueError("fine"))
            assert isinstance(retrieved.exception(), ValueError)
            del future, retrieved
            loop.call_soon([].pop)
            task = loop.create_task(fails())
            for _ in range(3):
                await asyncio.sleep(0)
            del task
            gc.collect()

        with (
            recorded("python.exceptions") as result,
            asyncio.Runner(loop_factory=new_loop) as runner,
        ):
            runner.run(main())
        kept = [(event.name, event.args["kept_by"]) for event in result.events]
        assert kept == [
            ("KeyError: 'qty'", "future"),
            ("IndexError: pop from empty list", "callback"),
            ("OSError: disk", "task"),
        ]
        assert len(caplog.records) == 3

    def test_exception_that_an_earlier_session_has_recorded_is_recorded_again(self) -> None:
        error = KeyError("qty")
        for keeper in ("future", "task"):
            with recorded("python.exceptions") as result:
                exceptions.on_kept(error, keeper)
            assert [event.args["kept_by"] for event in result.events] == [keeper]

    def test_recording_does_not_mark_a_task_exception_as_retrieved(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def fails() -> None:
            raise KeyError("qty")

        async def main() -> None:
            task = asyncio.create_task(fails())
            await asyncio.wait([task])

        with recorded("python.exceptions", "python.asyncio"):
            asyncio.run(main())
            gc.collect()
        assert "Task exception was never retrieved" in caplog.text


class TestAsyncioTasks:
    def test_creation_and_steps_of_a_task_are_connected_by_a_flow(self) -> None:
        async def child() -> None:
            await asyncio.sleep(0)

        async def parent() -> None:
            await asyncio.create_task(child(), name="kid")

        with recorded("python.asyncio") as result:
            asyncio.run(parent())
        events = [e for e in result.events if e.type != END and "shutdown" not in str(e.args)]
        events = [e for e in events if e.track == 0 and "shutdown" not in e.name]
        names = [(e.type, e.name.rpartition(".")[2], e.args["task"]) for e in events]
        kid_at_birth = names[2][2]  # Before CPython 3.13, a task is created without its name.
        assert names == [
            (INSTANT, "create task", names[0][2]),
            (BEGIN, "parent", names[0][2]),
            (INSTANT, "create task", kid_at_birth),
            (BEGIN, "child", "kid"),
            (BEGIN, "child", "kid"),
            (BEGIN, "parent", names[0][2]),
        ]
        parents, kids = events[0].flows, events[2].flows
        assert parents != kids
        assert [e.flows for e in events] == [parents, parents, kids, kids, kids, parents]
        assert [e.terminating_flows for e in events] == [[], [], [], [], [], kids]
        assert {e.track for e in events} == {0}

    def test_wait_of_a_task_is_written_when_it_begins(self) -> None:
        """With `--full` the trace processor doesn't sort events that come much later."""

        async def waits(future: asyncio.Future[None]) -> None:
            await future

        async def main() -> None:
            future = asyncio.get_running_loop().create_future()
            task = asyncio.create_task(waits(future))
            for _ in range(3):
                await asyncio.sleep(0)
            stretto.instant("meanwhile", track=stretto.thread_track())
            future.set_result(None)
            await task

        with recorded("python", "python.asyncio") as result:
            asyncio.run(main())
        events = result.events
        meanwhile = next(i for i, event in enumerate(events) if event.name == "meanwhile")
        on_future = [i for i, event in enumerate(events) if event.args.get("on") == "Future"]
        assert on_future
        assert on_future[0] < meanwhile

    @pytest.mark.skipif(sys.version_info < (3, 14), reason="asyncio's call graph is new in 3.14")
    def test_steps_of_a_task_contain_the_name_of_the_task_that_awaits_it(self) -> None:
        async def leaf() -> None:
            await asyncio.sleep(0)

        async def gathers() -> None:
            await asyncio.gather(asyncio.create_task(leaf(), name="leaf"), asyncio.sleep(0))

        async def main() -> None:
            await asyncio.create_task(gathers(), name="gathers")

        with recorded("python.asyncio") as result:
            asyncio.run(main())
        main_name = next(e.args["task"] for e in result.events if "task" in e.args)
        awaited_by = {
            e.args["task"]: e.args.get("awaited_by")
            for e in result.events
            if e.type == BEGIN and e.track == 0
        }
        assert awaited_by["leaf"] == "gathers"
        assert awaited_by["gathers"] == main_name
        assert awaited_by[main_name] is None

    def test_steps_of_tasks_do_not_overlap(self) -> None:
        async def waits() -> None:
            await asyncio.gather(*(asyncio.sleep(0) for _ in range(3)))

        with recorded("python.asyncio") as result:
            asyncio.run(waits())
        depth = 0
        for event in result.events:
            if event.track == 0:
                depth += {BEGIN: 1, END: -1}.get(event.type, 0)
            assert depth in (0, 1)
        assert depth == 0

    def test_patched_methods_of_the_event_loop_are_restored_after_the_session(self) -> None:
        original = (asyncio.Handle._run, asyncio.BaseEventLoop.create_task)
        with recorded("python.asyncio"):
            assert asyncio.Handle._run is not original[0]
        assert (asyncio.Handle._run, asyncio.BaseEventLoop.create_task) == original
