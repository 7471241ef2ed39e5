"""Helper threads are stopped for a fork. After the fork they resume only in the parent."""

from __future__ import annotations

import os

import pytest

from stretto.client import fork


@pytest.fixture
def started(monkeypatch):
    """Return a list that gets the process id at each restart of the helper threads."""
    started: list[int] = []
    monkeypatch.setattr(fork, "after_in_parent", [lambda: started.append(os.getpid())])
    monkeypatch.setattr(fork, "_stopped", [os.getpid()])
    return started


def test_threads_resume_only_once_in_the_parent(started):
    fork.resume()
    fork.resume()
    assert started == [os.getpid()]


def test_threads_of_the_parent_never_resume_in_a_child(started, monkeypatch):
    """A pending call copied from the parent may run in the child before the child's fork hook."""
    with monkeypatch.context() as child:
        child.setattr(os, "getpid", lambda: -1)
        fork.resume()
    assert not started
    fork.resume()
    assert started == [os.getpid()]


def test_functions_that_a_connecting_thread_adds_before_the_fork_are_called(monkeypatch):
    """The first one waits for such a thread, which removes it and adds its own."""
    hooks: list[object] = []
    called: list[str] = []

    def wait():
        called.append("wait")
        hooks.append(stop)
        hooks.remove(wait)

    def other():
        called.append("other")

    def stop():
        called.append("stop")

    hooks += [wait, other]
    monkeypatch.setattr(fork, "before", hooks)
    fork._stop_helpers()
    assert called == ["wait", "other", "stop"]
