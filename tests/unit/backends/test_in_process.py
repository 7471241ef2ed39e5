"""The in-process backend runs calls and tasks on a thread that `threading` doesn't list."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from stretto.backends.in_process import InProcessBackend
from stretto.client import fork


@pytest.fixture
def backend():
    backend = InProcessBackend()
    yield backend
    backend._thread.stop()
    backend.after_fork_in_child()  # `after_fork_in_child` also releases the backend's resources.


def test_call_runs_on_the_backend_thread_and_returns_its_result(backend):
    assert backend.call(threading.get_ident) != threading.get_ident()
    assert backend.call(lambda: backend.call(lambda: 5)) == 5


@pytest.mark.parametrize("error", [KeyError, SystemExit, KeyboardInterrupt])
def test_exception_of_a_call_is_raised_in_the_caller(backend, error):
    def fails():
        raise error("mine")

    with pytest.raises(error, match="mine"):
        backend.call(fails)
    assert backend.call(lambda: 5) == 5


def test_posted_functions_run_in_order_and_their_exceptions_are_reported(backend, monkeypatch):
    complaints, ran = [], []
    monkeypatch.setattr("sys.unraisablehook", lambda args: complaints.append(args.exc_type))

    def fails():
        raise KeyError

    backend.post(lambda: ran.append(1))
    backend.post(fails)
    backend.post(lambda: ran.append(2))
    backend.call(lambda: None)
    assert ran == [1, 2]
    assert complaints == [KeyError]


def test_backend_thread_is_not_listed_by_threading(backend):
    before = threading.enumerate()
    backend.call(lambda: None)
    assert threading.enumerate() == before


def test_signals_are_blocked_in_the_backend_thread(backend):
    blocked = backend.call(lambda: signal.pthread_sigmask(signal.SIG_BLOCK, []))
    assert {signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGALRM} <= blocked
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_stopped_thread_can_be_started_again(backend):
    for _ in range(5):
        backend._thread.stop()
        assert backend._thread._thread is None
        assert backend.call(lambda: 5) == 5


def test_calls_made_while_the_thread_is_stopped_run_after_its_start(backend):
    """A fork stops the backend's thread; a caller that waits for a result restarts the thread."""
    waiting, results = threading.Event(), []

    def caller():
        waiting.set()
        results.append(backend.call(lambda: 5))

    busy, release = threading.Event(), threading.Event()
    backend.post(lambda: (busy.set(), release.wait(30)))
    assert busy.wait(10)  # Without this wait, the thread may stop before the call.
    threads = [threading.Thread(target=target) for target in (backend._thread.stop, caller)]
    threads[0].start()
    while not backend._thread.runner._quit:
        pass
    threads[1].start()
    assert waiting.wait(10)
    release.set()
    for thread in threads:
        thread.join(10)
    assert results == [5]


def test_thread_stops_before_a_fork_and_resumes_in_the_parent(backend):
    stopped = backend.call(threading.get_native_id)
    for hook in list(fork.before):
        hook()
    assert str(stopped) not in os.listdir("/proc/self/task")
    for hook in list(fork.after_in_parent):
        hook()
    again = backend.call(threading.get_native_id)
    assert again not in (stopped, threading.get_native_id())
    assert str(again) in os.listdir("/proc/self/task")
