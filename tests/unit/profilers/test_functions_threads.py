"""Function tracing of several threads, and of programs that use other profilers."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from stretto.profilers import problems
from tests.support.call_programs import leaf, recursive
from tests.support.call_slices import BEGIN, recorded, track_events

NEW = sys.version_info >= (3, 12)
CATEGORY = "python.functions"
pytestmark = pytest.mark.usefixtures("function_options")


class TestTracedThreads:
    def test_threads_started_before_the_session_are_traced(self) -> None:
        ready, go = threading.Event(), threading.Event()

        def worker() -> None:
            ready.set()
            go.wait()
            leaf()

        thread = threading.Thread(target=worker)
        thread.start()
        ready.wait()
        with recorded(CATEGORY) as result:
            go.set()
            thread.join()
        assert result.all_calls() == [[("leaf", [])]]

    def test_threads_started_in_the_session_are_traced_from_their_first_call(self) -> None:
        import _thread

        done = threading.Semaphore(0)

        def worker() -> None:
            recursive(1)

        def bare() -> None:
            leaf()
            done.release()

        with recorded(CATEGORY) as result:
            thread = threading.Thread(target=worker)
            thread.start()
            thread.join()
            _thread.start_new_thread(bare, ())
            done.acquire()
        one = ("recursive", [("recursive", []), ("leaf", [])])
        names = [worker.__qualname__, bare.__qualname__]
        got = {calls[0][0]: calls[0][1] for calls in result.all_calls()}
        assert sorted(got) == sorted(names)
        assert got[names[0]] == [one]

    def test_calls_of_concurrent_threads_are_recorded(self) -> None:
        barrier = threading.Barrier(8)

        def worker() -> None:
            barrier.wait()
            for _ in range(25):
                recursive(2)

        with recorded(CATEGORY) as result:
            threads = []
            for _ in range(8):
                threads.append(threading.Thread(target=worker))
                threads[-1].start()
            for thread in threads:
                thread.join()
        inner = ("recursive", [("recursive", []), ("leaf", [])])
        expected = [(worker.__qualname__, [("recursive", [inner, ("leaf", [])])] * 25)]
        assert result.all_calls() == [expected] * 8


def profiled() -> None:
    import cProfile

    profile = cProfile.Profile()
    profile.enable()
    leaf()
    profile.disable()


class TestOtherProfilers:
    @pytest.mark.skipif(not NEW, reason="CPython 3.11 has no sys.monitoring")
    def test_monitoring_tool_ids_of_other_tools_are_not_used(self) -> None:
        monitoring = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        monitoring.use_tool_id(3, "somebody")
        try:
            with recorded(CATEGORY) as result:
                assert monitoring.get_tool(4) == "stretto"
                leaf()
            assert result.calls() == [("leaf", [])]
            monitoring.use_tool_id(4, "somebody else")
            with recorded(CATEGORY) as result:
                leaf()
            assert result.calls() == []
            assert "sys.monitoring" in problems()[0]
            monitoring.free_tool_id(4)
        finally:
            monitoring.free_tool_id(3)
        assert [monitoring.get_tool(i) for i in (2, 3, 4)] == [None, None, None]

    @pytest.mark.skipif(not NEW, reason="CPython 3.11 has one profiler a thread")
    def test_profiler_of_the_program_runs_during_function_tracing(self) -> None:
        with recorded(CATEGORY) as result:
            profiled()
        assert ("leaf", []) in result.calls()[0][1]
        assert problems() == []

    @pytest.mark.skipif(NEW, reason="several profilers run beside each other")
    def test_thread_whose_profiler_was_replaced_is_reported(self) -> None:
        with recorded(CATEGORY) as result:
            leaf()
            profiled()
        assert result.calls()[0] == ("leaf", [])
        assert problems() == ["1 thread: profiler replaced by the program"]

    @pytest.mark.skipif(NEW, reason="several profilers run beside each other")
    def test_profiler_set_before_the_session_is_not_replaced(self) -> None:
        def mine(*_arguments: object) -> None: ...

        sys.setprofile(mine)
        try:
            with recorded(CATEGORY) as result:
                leaf()
            assert sys.getprofile() is mine
        finally:
            sys.setprofile(None)
        assert result.calls() == []
        assert problems() == ["1 thread: profiler replaced by the program"]

    @pytest.mark.skipif(NEW, reason="several profilers run beside each other")
    def test_program_that_restores_the_previous_profiler_is_traced_again(self) -> None:
        def program() -> None:
            found = sys.getprofile()
            sys.setprofile(lambda *_arguments: None)
            leaf()
            sys.setprofile(found)
            leaf()

        with recorded(CATEGORY) as result:
            program()
            leaf()
        assert result.calls() == [(program.__qualname__, [("leaf", [])]), ("leaf", [])]


PROGRAM = """
import os, sys, time
import stretto

def user(): pass

with stretto.recording(sys.argv[1], functions=True, stream="stream" in sys.argv):
    user()
    if (pid := os.fork()) == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    user()
    time.sleep(0.3)  # sleep: lets Stretto's threads run
"""


class TestCallsOfStretto:
    """Calls made by Stretto itself are not recorded."""

    @pytest.mark.parametrize("option", ["ring", "stream"])
    def test_only_calls_of_the_program_are_recorded(self, tmp_path: Path, option: str) -> None:
        program, trace = tmp_path / "program.py", tmp_path / "trace"
        program.write_text(PROGRAM)
        command = [sys.executable, str(program), str(trace), option]
        subprocess.run(command, check=True, timeout=60)
        names = {event.name for event in track_events(trace.read_bytes()) if event.type == BEGIN}
        assert names == {"user"}
