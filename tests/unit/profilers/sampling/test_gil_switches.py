"""The count of GIL switches grows when two threads compete for the GIL."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from stretto.profilers.sampling.gil_switches import GilSwitches


@pytest.mark.skipif(sys.version_info < (3, 12), reason="CPython 3.11's count isn't read")
def test_count_grows_by_the_switches_between_two_threads() -> None:
    switches = GilSwitches()
    first = switches.count(os.getpid())
    turns = [threading.Semaphore(1), threading.Semaphore(0)]

    def take_turns(own: int) -> None:
        for _ in range(100):
            turns[own].acquire()
            turns[1 - own].release()

    threads = [threading.Thread(target=take_turns, args=(each,)) for each in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    last = switches.count(os.getpid())
    assert first is not None
    assert last is not None
    assert 150 <= last - first <= 2000


def test_process_that_is_not_python_has_no_count() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        try:
            assert GilSwitches().count(process.pid) is None
        finally:
            process.kill()


def test_process_that_has_ended_has_no_count() -> None:
    switches = GilSwitches()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        switches.count(process.pid)
    assert switches.count(process.pid) is None
    assert switches.count(process.pid) is None
