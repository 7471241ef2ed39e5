"""Function tracing doesn't change what a program does: forks, exits, recursion, new threads."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.thorough

PYTHON = [sys.executable, "-W", "error", "-X", "faulthandler", "-c"]

PRELUDE = """
import os, resource, sys, threading
import stretto
from stretto.protos.config import DataSourceConfig, TraceConfig, TrackEventConfig

def session():
    names = ["functions", "managers", "gc", "log", "asyncio", "exceptions"]
    names = [f"python.{name}" for name in names]
    events = TrackEventConfig(enabled_categories=names)
    source = DataSourceConfig(name="track_event", track_event_config=events)
    session = stretto.TracingSession(TraceConfig(
        buffers=[TraceConfig.BufferConfig(size_kb=4096)],
        data_sources=[TraceConfig.DataSource(config=source)],
    ))
    session.setup(None)
    session.start()
    return session

def finish(session):
    session.stop()
    data = session.read()
    session.close()
    return len(data)

def peak_kb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

def f(n):
    return f(n - 1) if n else 0

s = session()
"""

PROGRAMS = {
    "a fork's child starts clean, and may record": """
        pid = os.fork()
        if pid == 0:
            f(3)
            inner = session()
            f(5)
            thread = threading.Thread(target=f, args=(3,))
            thread.start()
            thread.join()
            os._exit(0 if finish(inner) > 100 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        f(3)
        assert finish(s) > 100
    """,
    "the program exits while a session runs": """
        class Late:
            def __del__(self):
                f(2)

        late = Late()
        sys.late = Late()
        f(3)
    """,
    "daemon threads run until the end": """
        go = threading.Semaphore(0)
        def loop():
            go.release()
            while True:
                f(10)
        for _ in range(4):
            threading.Thread(target=loop, daemon=True).start()
        for _ in range(4):
            go.acquire()
        finish(s)
    """,
    "signal handlers are called in between": """
        import signal
        calls = []
        def handler(*_):
            calls.append(f(3))
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        while len(calls) < 100:
            f(20)
        signal.setitimer(signal.ITIMER_REAL, 0)
        finish(s)
    """,
    "recursion is as deep as ever": """
        sys.setrecursionlimit(200_000)
        f(150_000)
        finish(s)
    """,
    "a sub-interpreter is left alone": """
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        other = interpreters.create()
        interpreters.run_string(other, "def g(n):\\n  return g(n - 1) if n else 0\\ng(5)")
        f(3)
        interpreters.destroy(other)
        finish(s)
    """,
    "code without end leaves memory flat": """
        for number in range(20_000):
            scope = {}
            exec(f"def g(): return {number}", scope)
            scope["g"]()
            if number == 5000:
                before = peak_kb()
        assert peak_kb() - before < 8000, peak_kb() - before
        finish(s)
    """,
    "more functions than any table holds, called in any order": """
        import random
        scope = {}
        exec("\\n".join(f"def g{n}(): pass" for n in range(50_000)), scope)
        functions = [scope[f"g{n}"] for n in range(50_000)]
        for seed in range(3):
            for g in functions:
                g()
            random.Random(seed).shuffle(functions)
        assert finish(s) > 100
    """,
    "threads without end leave memory flat": """
        def worker():
            f(3)
        for number in range(3000):
            thread = threading.Thread(target=worker)
            thread.start()
            thread.join()
            if number == 1000:
                before = peak_kb()
        assert peak_kb() - before < 4000, peak_kb() - before
        finish(s)
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_traced_program_behaves_as_without_tracing(name: str) -> None:
    result = subprocess.run(
        [
            sys.executable,
            "-W",
            "error",
            "-X",
            "faulthandler",
            "-c",
            PRELUDE + textwrap.dedent(PROGRAMS[name]),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (result.returncode, result.stderr, result.stdout) == (0, "", "")
