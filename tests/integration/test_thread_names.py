"""Threads that are renamed after their first event have their last name in the trace."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.recorded import check_trace, record

PROGRAM = """
import ctypes, threading, time
from concurrent.futures import ThreadPoolExecutor

def burn():
    end = time.perf_counter() + 0.02
    while time.perf_counter() < end:
        pass

def name_in_python(name):
    burn()
    threading.current_thread().name = name
    burn()

def name_in_kernel(name):
    burn()
    ctypes.CDLL(None).prctl(15, name, 0, 0, 0)
    burn()

def waits(named, end):
    name_in_python("waits")
    named.set()
    end.wait()

for target, name in ((name_in_python, "ended"), (name_in_kernel, b"db-writer")):
    thread = threading.Thread(target=target, args=(name,))
    thread.start()
    thread.join()
with ThreadPoolExecutor(1, initializer=name_in_python, initargs=("pool worker",)) as pool:
    pool.submit(burn).result()
named = threading.Event()
threading.Thread(target=waits, args=(named, threading.Event()), daemon=True).start()
named.wait()
"""


auto = pytest.param(
    "--auto",
    marks=pytest.mark.skipif(
        sys.version_info < (3, 12),
        reason="samples name a thread on CPython 3.11: one that has ended keeps its first name",
    ),
)


@pytest.mark.parametrize("option", [auto, "--full", "--ring"])
def test_last_names_of_threads_are_in_the_trace(option: str, tmp_path: Path, oracle: Any) -> None:
    script = tmp_path / "job.py"
    script.write_text(PROGRAM)
    run = record(tmp_path / "trace", option, "--no-counters", str(script))
    assert run.status == 0, run.stderr
    names = (
        "select t.name from thread t join process p using (upid) "
        "where tid != pid and t.name glob '?*'"
    )
    loaded = check_trace(oracle, run.trace, complete=False)
    found = {name for (name,) in loaded.query(names)}
    assert found == {"ended", "db-writer", "pool worker", "waits"}
