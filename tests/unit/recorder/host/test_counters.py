"""The counters of recorded processes."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from stretto.recorder.host.counters import GIL_SWITCHES, RecordedCounters

if TYPE_CHECKING:
    from collections.abc import Iterator

ONE_THREAD = "print(flush=True); input()"
TWO_THREADS = f"import threading; threading.Thread(target=input).start(); {ONE_THREAD}"


@contextmanager
def running(program: str) -> Iterator[int]:
    """Run a program until the end of the block; it has printed a line."""
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.communicate(b"\n\n")


def test_hand_overs_of_the_gil_are_not_read_from_a_process_with_one_thread() -> None:
    with running(ONE_THREAD) as pid:
        counters = RecordedCounters()
        assert counters.counts(pid) == {}
        assert counters._gil is None


@pytest.mark.skipif(sys.version_info < (3, 12), reason="CPython 3.11 does not count them")
def test_hand_overs_of_the_gil_are_read_from_a_process_with_threads() -> None:
    with running(TWO_THREADS) as pid:
        assert RecordedCounters().counts(pid)[GIL_SWITCHES] >= 0
