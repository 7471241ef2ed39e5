"""Helper threads stopped for a fork resume only in the parent."""

from __future__ import annotations

import os

import pytest

from stretto.client import fork


@pytest.fixture
def started(monkeypatch):
    """Return the list of processes that restarted the stopped threads."""
    started: list[int] = []
    monkeypatch.setattr(fork, "after_in_parent", [lambda: started.append(os.getpid())])
    monkeypatch.setattr(fork, "_stopped", [os.getpid()])
    return started


def test_threads_resume_once_in_the_parent(started):
    fork.resume()
    fork.resume()
    assert started == [os.getpid()]


def test_parents_threads_never_resume_in_a_child(started, monkeypatch):
    """A copied pending call of the parent may run before the child's own fork hook."""
    with monkeypatch.context() as child:
        child.setattr(os, "getpid", lambda: -1)
        fork.resume()
    assert not started
    fork.resume()
    assert started == [os.getpid()]
