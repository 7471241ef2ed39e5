"""Threads of every kind can write events at the threads' start and end, and between sessions."""

from __future__ import annotations

import _thread
import ctypes
import os
import subprocess
import sys
import textwrap
import threading
import weakref
from time import sleep

import pytest

import stretto
from tests.support.polling import wait_until
from tests.support.recorded_events import BEGIN, END, INSTANT, descriptors_of, record

PR_SET_NAME = 15
CATEGORY = stretto.Category("test.threads")


def run_program(source, *options):
    """Run a program; return its standard output. Fail if it writes to standard error."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", *options, "-c", textwrap.dedent(source)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def in_thread(function, **options):
    thread = threading.Thread(target=function, **options)
    thread.start()
    thread.join()


def thread_name(recorded, event):
    return descriptors_of(recorded.trace)[event.track].thread.thread_name


def test_trace_has_the_names_of_threads():
    with record() as recorded:
        in_thread(lambda: CATEGORY.instant("x"), name="a näme")
        CATEGORY.instant("main")
    assert thread_name(recorded, recorded.one("x")) == "a näme"
    assert thread_name(recorded, recorded.one("main")) == "MainThread"


def test_thread_unknown_to_the_module_threading_is_recorded():
    done = threading.Event()

    def work():
        with CATEGORY.slice("raw"):
            pass
        done.set()

    with record() as recorded:
        before = threading.enumerate()
        _thread.start_new_thread(work, ())
        assert done.wait(10)
        assert threading.enumerate() == before
    assert recorded.kinds == "BE"
    assert descriptors_of(recorded.trace)[recorded.events[0].track].has("thread")


def test_thread_renamed_during_a_session_has_its_last_name():
    with record() as recorded:

        def work():
            CATEGORY.instant("before")
            threading.current_thread().name = "second"
            for number in range(2000):  # the events fill several chunks
                CATEGORY.instant("after", number=number)

        in_thread(work, name="first")
    assert thread_name(recorded, recorded.one("before")) == "second"
    assert b"first" in recorded.trace


def rename_in_python():
    threading.current_thread().name = "second"


def rename_in_kernel():
    ctypes.CDLL(None).prctl(PR_SET_NAME, b"second", 0, 0, 0)


@pytest.mark.parametrize("rename", [rename_in_python, rename_in_kernel])
def test_thread_renamed_after_its_last_event_has_its_last_name(rename):
    renamed, end = threading.Event(), threading.Event()

    def work(name):
        CATEGORY.instant(name)
        rename()
        renamed.set()
        assert end.wait(10)

    with record() as recorded:
        end.set()
        in_thread(lambda: work("ended"), name="first")
        end.clear()
        renamed.clear()
        running = threading.Thread(target=work, args=("running",), name="first")
        running.start()
        assert renamed.wait(10)
    end.set()
    running.join()
    # After Python's end of a thread comes that of the kernel's, with which the thread is forgotten.
    wait_until(lambda: not os.path.exists(f"/proc/self/task/{running.native_id}"))
    assert thread_name(recorded, recorded.one("ended")) == "second"
    assert thread_name(recorded, recorded.one("running")) == "second"
    with record() as later:
        CATEGORY.instant("main")
    assert b"second" not in later.trace


def test_thread_renamed_in_python_after_the_kernel_has_the_later_name():
    def work():
        CATEGORY.instant("x")
        rename_in_kernel()
        threading.current_thread().name = "third"

    with record() as recorded:
        in_thread(work, name="first")
    assert thread_name(recorded, recorded.one("x")) == "third"


def test_thread_whose_class_computes_the_name_has_its_last_name():
    class Worker(threading.Thread):
        shown = "first"
        name = property(lambda self: self.shown)

        def run(self):
            CATEGORY.instant("before")
            self.shown = "second"
            for number in range(2000):  # the events fill several chunks
                CATEGORY.instant("after", number=number)

    with record() as recorded:
        worker = Worker()
        worker.start()
        worker.join()
    assert thread_name(recorded, recorded.one("before")) == "second"


def test_recorded_thread_is_not_kept_alive():
    with record():
        thread = threading.Thread(target=CATEGORY.instant, args=("event",))
        thread.start()
        thread.join()
        reference = weakref.ref(thread)
        del thread
        wait_until(lambda: reference() is None)


def test_thread_renamed_between_sessions_has_the_new_name():
    resume, waiting = threading.Event(), threading.Event()

    def work():
        CATEGORY.instant("first")
        waiting.set()
        assert resume.wait(10)
        threading.current_thread().name = "new name"
        CATEGORY.instant("second")

    thread = threading.Thread(target=work, name="old name")
    with record() as one:
        thread.start()
        assert waiting.wait(10)
    with record() as two:
        resume.set()
        thread.join()
    assert thread_name(one, one.event) == "old name"
    assert thread_name(two, two.event) == "new name"
    assert b"old name" not in two.trace


def test_thread_starts_a_new_sequence_in_each_session():
    """The same thread records in three sessions; each trace describes the thread again."""
    turns = threading.Barrier(2)

    def work():
        for _ in range(3):
            turns.wait(10)
            with CATEGORY.slice("turn", number=1):
                CATEGORY.instant("inside")
            turns.wait(10)

    thread = threading.Thread(target=work, name="through")
    thread.start()
    for _ in range(3):
        with record() as recorded:
            turns.wait(10)
            turns.wait(10)
        assert [event.name for event in recorded.events] == ["turn", "inside", ""]
        assert thread_name(recorded, recorded.events[0]) == "through"
    thread.join()


def test_event_written_while_a_thread_ends_is_recorded():
    class Last:
        def __del__(self):
            with CATEGORY.slice("last moment"):
                pass

    local = threading.local()

    def first_event_at_the_end():
        local.last = Last()

    def last_event():
        CATEGORY.instant("alive")
        local.last = Last()

    with record() as recorded:
        in_thread(first_event_at_the_end)
        in_thread(last_event)
    # join() doesn't wait for commits, so the second thread's chunk may be committed first.
    events = sorted(recorded.events, key=lambda event: event.timestamp)
    assert [event.kind for event in events] == [BEGIN, END, INSTANT, BEGIN, END]


def test_slice_can_be_ended_after_its_thread_has_ended():
    with record() as recorded:
        slices = []

        def work():
            slices.append(CATEGORY.slice("orphan"))
            slices[0].__enter__()

        in_thread(work)
        in_thread(lambda: CATEGORY.instant("other"))
        slices[0].__exit__(None, None, None)
    begin, _, end = sorted(recorded.events, key=lambda event: event.timestamp)
    assert begin.track == end.track


def test_threads_can_trace_while_sessions_start_and_stop():
    stop = threading.Event()
    failures = []

    def work():
        try:
            number = 0
            while not stop.is_set():
                number += 1
                with CATEGORY.slice("outer", number=number):
                    CATEGORY.begin("inner", args={"n": [number]})
                    CATEGORY.instant("instant")
                    CATEGORY.end(result=[number])
                sleep(0.0001)  # sleep: other threads write in this time
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    traces = []
    for _ in range(10):
        with record() as outer, record() as inner:
            sleep(0.002)  # sleep: the threads write in this time
        traces += [outer, inner]
    stop.set()
    for thread in threads:
        thread.join()
    assert failures == []
    for recorded in traces:
        depths = {}
        for event in recorded.events:
            depth = depths.get(event.track, 0) + {1: 1, 2: -1}.get(event.kind, 0)
            assert depth >= 0, "an END whose BEGIN is not there"
            depths[event.track] = depth


def test_program_whose_daemon_threads_record_events_exits_normally():
    for _ in range(3):
        run_program("""
            import threading, stretto
            from stretto.client.recording import recording_config
            session = stretto.TracingSession(recording_config(buffer_bytes=1 << 20))
            session.start()
            def work():
                while True:
                    with stretto.slice("x", n=[1]):
                        stretto.instant("y" * 10, text="z" * 100)
            for _ in range(4):
                threading.Thread(target=work, daemon=True).start()
        """)


@pytest.mark.parametrize("end", ["", "os._exit(0)", "sys.exit(0)", "del session"])
def test_program_can_exit_while_a_session_runs(end):
    run_program(f"""
        import atexit, os, sys, threading, stretto
        atexit.register(stretto.instant, "registered before")
        from stretto.client.recording import recording_config
        session = stretto.TracingSession(recording_config(buffer_bytes=1 << 20))
        session.start()
        atexit.register(stretto.instant, "registered after", n=[1])
        slice_ = stretto.slice("open", n=[1])
        slice_.__enter__()
        class Last:
            def __del__(self, category=stretto.Category("python"), slice_=slice_):
                with category.slice("at the very end", values=[1, self]):
                    category.counter("c", 1)
                slice_.__exit__(None, None, None)
        sys.last = Last()
        threading.main_local = threading.local()
        threading.main_local.last = Last()
        module_level = Last()
        {end}
    """)


def test_atexit_functions_can_read_the_recording(tmp_path):
    path = tmp_path / "t.pftrace"
    run_program(f"""
        import sys, stretto
        with stretto.recording({str(path)!r}):
            stretto.instant("inside")
            sys.exit(0)
    """)
    assert b"inside" in path.read_bytes()


SUBINTERPRETER = """
import stretto, threading, sys
try:
    import {module} as interpreters
except ImportError:
    print("missing")
    sys.exit(0)
from stretto.client.recording import recording_config
session = stretto.TracingSession(recording_config(buffer_bytes=1 << 20))
session.start()
stretto.instant("before")
code = '''
import stretto
assert not stretto.available()
category = stretto.Category("sub", tags=["x"])
with category.slice("in " "sub", n=1):
    category.instant("x")
    stretto.counter("c", 1)
@category.traced
def f(): return 5
assert f() == 5
with stretto.recording("/nonexistent/x"):
    pass
'''
for _ in range(3):
    sub = interpreters.create({arguments})
    interpreters.run_string(sub, code)
    interpreters.destroy(sub)
    stretto.instant("after", n=[1])
session.stop()
assert b"in " + b"sub" not in session.read()
session.close()
print("done")
"""


@pytest.mark.parametrize("arguments", ["", "isolated=False", "'legacy'"])
def test_sub_interpreters_run_without_tracing(arguments):
    new = sys.version_info >= (3, 13)
    if (arguments == "'legacy'") != (new and bool(arguments)):
        pytest.skip(f"not how this version says it: {arguments}")
    module = "_interpreters" if new else "_xxsubinterpreters"
    out = run_program(SUBINTERPRETER.format(module=module, arguments=arguments))
    if out == "missing\n":
        pytest.skip(f"this Python has no {module}")
    assert out == "done\n"
