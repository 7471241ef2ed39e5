from __future__ import annotations

import os
import select
import subprocess
import sys
import time

import pytest

from stretto import _native
from tests.unit.native.pipeline import field, packet


class TestBoottimeClock:
    def test_boottime_equals_the_clock_of_the_kernel(self) -> None:
        before = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        now = _native.boottime_ns()
        assert before <= now <= time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class TestTokenizeFunction:
    def test_tokenize_counts_whole_packets(self) -> None:
        trace = b"".join(field(1, packet(n, n)) for n in range(300))
        assert _native.tokenize(trace) == (300, len(trace))
        assert _native.tokenize(memoryview(trace)) == (300, len(trace))
        assert _native.tokenize(b"") == (0, 0)

    @pytest.mark.parametrize(
        "rest",
        [
            b"\x0a",
            b"\x0a\x05abcd",
            b"\x12\x00",
            b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        ],
    )
    def test_tokenize_stops_at_a_malformed_packet(self, rest: bytes) -> None:
        whole = field(1, packet(1))
        assert _native.tokenize(whole + rest) == (1, len(whole))

    def test_tokenize_of_a_str_is_a_type_error(self) -> None:
        with pytest.raises(TypeError, match="data must be bytes-like"):
            _native.tokenize("text")  # type: ignore[arg-type]


class TestPendingCalls:
    def test_pending_call_runs_on_the_main_thread(self) -> None:
        calls: list[int] = []
        _native.add_pending_call(lambda: calls.append(1))
        deadline = time.monotonic() + 30
        while not calls and time.monotonic() < deadline:
            pass
        assert calls == [1]

    def test_exception_in_a_pending_call_is_reported_as_unraisable(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        errors: list[str] = []
        monkeypatch.setattr(sys, "unraisablehook", lambda u: errors.append(str(u.exc_value)))

        def fail() -> None:
            raise ValueError("no good")

        _native.add_pending_call(fail)
        deadline = time.monotonic() + 30
        while not errors and time.monotonic() < deadline:
            pass
        assert errors == ["no good"]

    def test_call_when_left_waits_for_the_end_of_the_current_call(self) -> None:
        calls: list[int] = []

        def schedule() -> list[int]:
            caller = sys._getframe(1)
            _native.call_when_left(caller, caller.f_lasti, lambda: calls.append(1))
            for _ in range(100_000):  # The interpreter makes pending calls at the end of a loop.
                pass
            return calls.copy()

        assert schedule() == []
        deadline = time.monotonic() + 30
        while not calls and time.monotonic() < deadline:
            pass
        assert calls == [1]

    def test_pending_call_must_be_callable(self) -> None:
        with pytest.raises(TypeError, match="must be callable"):
            _native.add_pending_call(3)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="must be callable"):
            _native.call_when_left(sys._getframe(), 0, 3)  # type: ignore[arg-type]


class TestSubinterpreters:
    def test_subinterpreter_traces_nothing_and_does_not_affect_the_main_interpreter(self) -> None:
        program = """
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    import _interpreters as interpreters
import stretto
code = '''
import stretto
assert not stretto.available()
category = stretto.Category("other")
with category.slice("work"):
    category.instant("tick")
try:
    from stretto import _native
except ImportError as error:
    assert "main interpreter only" in str(error)
else:
    raise AssertionError("imported")
'''
category = stretto.Category("mine")
for _ in range(3):
    try:
        one = interpreters.create("legacy")
    except TypeError:
        one = interpreters.create(isolated=False)
    error = interpreters.run_string(one, code)
    assert error is None, error
    interpreters.destroy(one)
    with category.slice("work"):
        category.instant("tick")
assert stretto.available()
"""
        result = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=False
        )
        assert (result.returncode, result.stderr) == (0, "")


class TestTimerDescriptor:
    def test_timer_descriptor_becomes_readable_when_the_timer_expires(self) -> None:
        timer = _native.timer_fd()
        try:
            assert not os.get_inheritable(timer)
            assert not select.select([timer], [], [], 0)[0]
            before = time.monotonic()
            _native.set_timer_fd(timer, 20)
            assert not select.select([timer], [], [], 0)[0]
            assert select.select([timer], [], [], 30)[0]
            assert time.monotonic() - before >= 0.02
            _native.set_timer_fd(timer, 1 << 30)
            assert not select.select([timer], [], [], 0)[0]
            _native.set_timer_fd(timer, 0)
            assert select.select([timer], [], [], 30)[0]
        finally:
            os.close(timer)

    def test_timer_values_out_of_range_are_refused(self) -> None:
        timer = _native.timer_fd()
        try:
            for ms in (-1, (1 << 30) + 1):
                with pytest.raises(ValueError, match="ms must be from 0"):
                    _native.set_timer_fd(timer, ms)
        finally:
            os.close(timer)

    def test_setting_a_descriptor_that_is_no_timer_is_an_error(self) -> None:
        with open(os.devnull, "rb") as file, pytest.raises(OSError, match="Invalid argument"):
            _native.set_timer_fd(file.fileno(), 1)


def test_call_untraced_returns_and_raises_like_the_called_function() -> None:
    assert _native.call_untraced(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        _native.call_untraced(divmod, 7, 0)
    with pytest.raises(TypeError, match="function"):
        _native.call_untraced()  # type: ignore[call-arg]
