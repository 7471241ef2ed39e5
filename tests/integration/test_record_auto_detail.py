"""`stretto record --auto`: the whole run is recorded; short calls are only counted."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.recorded import Run, check_trace, record
from tests.support.timed_program import Trace, recorded

needs_events = pytest.mark.skipif(
    sys.version_info < (3, 12), reason="CPython 3.11 reports no calls: times are not exact"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("auto")


@needs_events
def test_threshold_of_call_durations_rises_with_the_size_of_the_trace(folder: Path) -> None:
    program = {
        "warm": [],
        "count": 0,
        "steps": [("f0", 0, 0.03, [("g1", 1, 0.002, [], "sleep")] * 10, "sleep")] * 30,
        # Each thread fills several chunks: the recorder knows only the size of complete chunks.
        "threads": [[("h0", 0, 0.0002, [], "sleep")] * 6000] * 4,
    }
    trace = recorded(folder, program, "--size", "2mb")
    assert "less detail: from" in trace.run.stderr
    assert any(name.startswith("from here on, calls shorter") for name in trace.names())
    trace.check_long_calls(1_100_000_000)


def test_trace_never_exceeds_its_size(folder: Path, oracle: Any) -> None:
    script = folder / "floods.py"
    script.write_text(
        "import stretto, time\n"
        "for i in range(300_000):\n    stretto.instant('own', number=i)\n"
        "print('end')\n"
    )
    run = record(folder / "floods.pftrace", "--auto", "--size", "1mb", str(script))
    assert (run.status, run.stdout) == (0, "end\n")
    assert len(run.trace) <= 1 << 20
    assert oracle(run.trace).query("select count(*) from slice where name = 'own'") != [(0,)]


@needs_events
@pytest.mark.thorough
def test_summary_says_if_a_program_makes_too_many_functions(folder: Path) -> None:
    script = folder / "evaluates.py"
    script.write_text("for k in range(66_000):\n    eval('k + 1')\n")
    run = record(folder / "evaluates.pftrace", "--auto", str(script))
    assert "functions after the first 65,536 are missing" in run.stderr


def test_summary_names_the_functions_that_took_the_time(folder: Path) -> None:
    program = {
        "warm": ["f0", "body"],
        "count": 10_000,
        "steps": [("f1", 0, 0.3, [], "sleep"), ("f1", 0, 0.2, [], "burn")],
        "threads": [],
    }
    run = recorded(folder, program).run
    lines = dict(line.strip().partition(": ")[::2] for line in run.stderr.splitlines())
    assert "body (program.py:" in lines["waiting in"]
    assert "(program.py:" in lines["with what they call"]
    assert lines["running in"]
    assert ("calls not counted" in run.stderr) == (run.status == 0)


COLLECTS = """
import gc
class Node:
    def __init__(self):
        self.me = self
def keep():
    return [Node() for _ in range(50_000)]
def work(kept):
    for _ in range(20):
        gc.collect()
work(keep())
"""


def test_summary_names_the_garbage_collector_that_took_the_time(folder: Path) -> None:
    script = folder / "collects.py"
    script.write_text(COLLECTS)
    run = record(folder / "collects.pftrace", "--auto", str(script))
    assert re.search(r"  garbage collector: [\d.]+ m?s in \d\d+ runs, part of", run.stderr)
    script.write_text("sum(range(10**7))")
    run = record(folder / "idle.pftrace", "--auto", str(script))
    assert "garbage collector" not in run.stderr


DEEP = """
import sys, time
sys.setrecursionlimit(9000)
def deep(calls):
    if calls:
        deep(calls - 1)
    while time.process_time() < 0.8:
        pass
deep(1200)
"""


def test_summary_says_how_long_threads_ran_in_stacks_that_are_too_deep(tmp_path: Path) -> None:
    run = record(tmp_path / "t.pftrace", "-c", DEEP)
    told = re.search(r"stacks deeper than 1,024 calls: ([\d.]+) ms running", run.stderr)
    assert told is not None
    assert float(told[1]) > 300


WORKS = """
import concurrent.futures, multiprocessing, os, signal, sys
hooks = sys.modules["stretto._pyhooks"]

def own_ns():
    return {each[0]: each[5] for each in hooks.totals()["functions"]}.get("work")

def work(_=0):
    while not own_ns():  # until a stack sample has found this call
        sum(range(1000))

def fork(end):
    if not os.fork():
        work()
        end()
    os.wait()

def pool(method):
    with multiprocessing.get_context(method).Pool(1) as pool:  # ends its worker by SIGTERM
        pool.map(work, [1])

def executor():
    with concurrent.futures.ProcessPoolExecutor(1) as pool:  # its worker ends by itself
        pool.submit(work).result()

if __name__ == "__main__":
    eval(sys.argv[1])
"""


@pytest.mark.parametrize(
    "call",
    [
        "fork(lambda: os._exit(0))",
        "fork(lambda: os.kill(os.getpid(), signal.SIGKILL))",
        "fork(lambda: os.execv('/bin/true', ['true']))",
        "pool('fork')",
        "pool('spawn')",
        "pool('forkserver')",
        "executor()",
    ],
)
def test_summary_has_the_functions_of_children_however_they_end(folder: Path, call: str) -> None:
    script = folder / "works.py"
    script.write_text(WORKS)
    run = record(folder / "works.pftrace", "--auto", str(script), call)
    assert run.status == 0, run.stderr
    lines = dict(line.strip().partition(": ")[::2] for line in run.stderr.splitlines())
    assert "work (works.py:" in lines["with what they call"]


BRIEF_RUNS = """
import sys, time
hooks = sys.modules["stretto._pyhooks"]

def inner():
    for i in range(20_000): pass

def task():
    time.sleep(0.002)  # sleep: the wait of this test
    inner()

def inner_ran_most():
    own = {each[0]: each[5] for each in hooks.totals()["functions"]}
    return own.get("inner", 0) > 2 * own.get("task", 0)

for _ in range(300):
    task()
for _ in range(3000):
    if inner_ran_most():
        break
    task()
"""


def test_cpu_time_before_a_wait_is_not_that_of_the_function_that_waits(folder: Path) -> None:
    script = folder / "brief_runs.py"
    script.write_text(BRIEF_RUNS)
    run = record(folder / "brief_runs.pftrace", "--auto", str(script))
    lines = dict(line.strip().partition(": ")[::2] for line in run.stderr.splitlines())
    assert lines["running in"].startswith("inner (brief_runs.py:"), run.stderr
    assert lines["waiting in"].startswith("task (brief_runs.py:"), run.stderr


SHORT_JOBS = """
import hashlib, json, queue, sys, threading, time
hooks = sys.modules["stretto._pyhooks"]
jobs = queue.Queue()

def price():
    digest = b""
    for _ in range(10_000): digest = hashlib.sha256(digest).digest()

def quote():
    price()

def work():
    while job := jobs.get():
        job()

thread = threading.Thread(target=work)
thread.start()
for _ in range(100):
    jobs.put(quote)
    time.sleep(0.01)  # sleep: the thread waits for the next job
jobs.put(None)
thread.join()
print(json.dumps({each[0]: each[5:7] for each in hooks.totals()["functions"]}))
"""


def test_cpu_time_of_short_jobs_is_that_of_the_job_and_of_its_callers(folder: Path) -> None:
    script = folder / "short_jobs.py"
    script.write_text(SHORT_JOBS)
    run = record(folder / "short_jobs.pftrace", "--auto", str(script))
    times = json.loads(run.stdout)
    own, total = times["price"]
    assert times["quote"][1] > 0.98 * total
    assert times.get("threading.Condition.wait", [0])[0] < 0.3 * own


def test_summary_has_the_functions_of_a_program_that_still_runs(folder: Path) -> None:
    script = folder / "still_works.py"
    trace = str(folder / "still_works.pftrace")  # The file has this name after the recording.
    script.write_text(
        WORKS.replace("__main__", "") + "work()\nimport stretto\n"
        f"while not os.path.exists({trace!r}): stretto.Category('shop').instant('x' * 1000)"
    )
    run = record(Path(trace), "--auto", "--size", "1mb", str(script))
    assert "the trace reached its --size" in run.stderr
    assert "work (still_works.py:" in run.stderr


def test_calls_that_wait_for_seconds_without_an_event_are_shown(folder: Path) -> None:
    script = folder / "waits.py"
    script.write_text(
        "import time\ndef outer():\n    inner()\n"
        "def inner():\n    time.sleep(2.5)\n"  # sleep: the recorder writes in this time
        "outer()\n"
    )
    trace = Trace(record(folder / "waits.pftrace", "--auto", str(script)))
    inner = next(s for s in trace.slices if s.name == "inner")
    assert trace.names_above(inner) == ["outer", "waits.py"]


@pytest.mark.parametrize("depth", [700, 20_000])  # Readers know 512 nested slices.
def test_calls_after_a_deep_recursion_are_in_their_callers(folder: Path, depth: int) -> None:
    script = folder / "deep.py"
    script.write_text(
        "import sys, time\n"
        f"sys.setrecursionlimit({depth + 100})\n"
        "def deep(n):\n    return time.sleep(0.02) if n == 0 else deep(n - 1)\n"  # sleep: long
        "def after():\n    time.sleep(0.1)\n"  # sleep: the call takes this time
        f"def main():\n    deep({depth})\n    after()\n"
        "main()\n"
    )
    run = record(folder / "deep.pftrace", "--auto", str(script))
    trace = Trace(run)
    after = next(s for s in trace.slices if s.name == "after")
    assert trace.names_above(after) == ["main", "deep.py"]
    if sys.version_info >= (3, 12):
        assert sum(s.name == "deep" for s in trace.slices) == 398
        assert f"{depth + 1 - 398:,} calls deeper than 400 frames" in run.stderr


def test_time_without_stack_samples_is_in_the_trace(folder: Path) -> None:
    script = folder / "stops.py"
    script.write_text(
        "import os, signal, subprocess, time\n"
        "def wake():\n"
        "    command = f'sleep 0.3; kill -CONT {os.getppid()} {os.getpid()}'  # the recorder, too\n"
        "    return subprocess.Popen(['sh', '-c', command])\n"
        "waker = wake()\n"
        "os.kill(os.getpid(), signal.SIGSTOP)\n"
        "waker.wait()\n"
        "time.sleep(0.005)\n"  # sleep: time for samples after the stop
    )
    trace = Trace(record(folder / "stops.pftrace", "--auto", str(script)))
    gaps = [end - begin for gaps in trace.gaps.values() for begin, end in gaps]
    assert max(gaps) > 100_000_000


def test_garbage_collection_is_inside_the_calls_that_contain_it(folder: Path, oracle: Any) -> None:
    script = folder / "collects.py"
    script.write_text(
        "import gc\n"
        "gc.disable()\n"
        "kept = [[number] for number in range(500_000)]\n"
        "def step(collects):\n    if collects:\n        gc.collect()\n"
        "for number in range(8000):\n    step(number % 1000 == 999)\n"
    )
    trace = oracle(record(folder / "collects.pftrace", "--auto", str(script)).trace)
    inner = trace.query(
        "select slice.name from slice join slice parent on slice.parent_id = parent.id"
        " where parent.name = 'garbage collection' and slice.name = 'step'"
    )
    assert inner == []
    assert trace.query("select count(*) from slice where name = 'garbage collection'") != [(0,)]


@pytest.mark.parametrize(
    "options", [("--auto",), ("--auto", "--no-functions"), ("--sample", "1000hz")]
)
def test_only_long_steps_of_tasks_are_shown(
    folder: Path, oracle: Any, options: tuple[str, ...]
) -> None:
    script = folder / "tasks.py"
    script.write_text(
        "import asyncio, time\n"
        "async def short():\n    await asyncio.sleep(0)\n"
        "def wait():\n    time.sleep(0.03)\n"  # sleep: the recorded duration of the call
        "async def long():\n    await short(); wait(); await short(); wait()\n"
        "async def main():\n"
        "    await asyncio.gather(*(short() for _ in range(2000)))\n    await long_task()\n"
        "async def long_task():\n    await asyncio.create_task(long())\n"
        "asyncio.run(main())\n"
    )
    run = record(folder / "tasks.pftrace", *options, str(script))
    trace = check_trace(oracle, run.trace)
    steps = trace.query(
        "select slice.name, dur from slice join thread_track on track_id = thread_track.id"
        " where category = 'python.asyncio' order by ts"
    )
    assert all(duration >= 50_000 for _, duration in steps)
    assert [name for name, duration in steps if duration >= 30_000_000].count("long") == 2
    assert trace.query("select count(*) from flow") != [(0,)]


def test_forked_children_are_recorded_with_auto_detail(folder: Path) -> None:
    script = folder / "forks.py"
    script.write_text(
        "import os, time\n"
        "def in_child():\n    time.sleep(0.5)\n"  # sleep: the call takes this time
        "def exits():\n    in_child()\n    os._exit(0)\n"
        "def in_parent():\n    time.sleep(0.05)\n"  # sleep: the call takes this time
        "for _ in range(3):\n"
        "    pid = os.fork()\n"
        "    if not pid and _ == 1:\n        exits()\n"
        "    if not pid:\n        in_child(); break\n"
        "    os.waitpid(pid, 0)\n"
        "else:\n    in_parent()\n"
    )
    run = record(folder / "forks.pftrace", "--auto", "-W", "always", str(script))
    if run.status == 2:  # `record` accepts Python's options only after the name of an interpreter
        run = record(
            folder / "forks.pftrace", "--auto", "--", sys.executable, "-W", "always", str(script)
        )
    trace = Trace(Run(run.status, "", run.stderr, run.path))
    assert sum(s.name == "in_child" for s in trace.slices) == 3
    assert sum(s.name == "in_parent" for s in trace.slices) == 1


def test_last_call_before_the_end_of_a_recording_is_shown(folder: Path) -> None:
    script = folder / "last_calls.py"
    script.write_text(
        "import sys, time\n"
        "from stretto import _native\n"
        "hooks = sys.modules['stretto._pyhooks']\n"
        "def waits():\n    time.sleep(0.02)\n"  # sleep: the call takes this time
        "for _ in range(30):\n"
        "    waits()\n"
        "    _native.call_untraced(hooks.suspend)\n"  # as the end of a recording does
        "    hooks.resume()\n"
    )
    trace = Trace(record(folder / "last_calls.pftrace", "--auto", str(script)))
    waits = [s for s in trace.slices if s.name == "time.sleep"]
    assert waits
    assert [trace.names_above(s)[:1] for s in waits] == [["waits"]] * len(waits)


@needs_events
def test_c_function_that_a_thread_starts_with_is_shown_if_it_blocks(
    folder: Path, oracle: Any
) -> None:
    script = folder / "starts.py"
    script.write_text(
        "import multiprocessing, threading, time\n"
        "def start(kind, name, target, *args, **options):\n"
        "    started = kind(target=target, name=name, args=args, **options)\n"
        "    started.start()\n"
        "    return started\n"
        "def python(): pass\n"
        "if __name__ == '__main__':\n"
        "    thread, process = threading.Thread, multiprocessing.get_context('fork').Process\n"
        "    start(thread, 'first', time.sleep, 0.05).join()\n"  # sleep: the slice has this length
        "    for target in (python, python, sorted, sorted, sorted):\n"
        "        start(thread, 'short', target, *[''][:target is sorted]).join()\n"
        "    lock = threading.Lock()\n"
        "    lock.acquire()\n"
        "    start(thread, 'held', lock.acquire, daemon=True)\n"
        "    start(thread, 'last', time.sleep, 0.05).join()\n"  # sleep: see above
        "    start(process, 'child', time.sleep, 0.05).join()\n"  # sleep: see above
    )
    run = record(folder / "starts.pftrace", "--auto", str(script))
    found = oracle(run.trace).query(
        "select process.name, thread.name, slice.name, dur >= 50000000 from slice"
        " join thread_track on track_id = thread_track.id join thread using (utid)"
        " join process using (upid) where depth = 0 and slice.name glob '*.*'"
    )
    assert sorted(row for row in found if row[2] in ("time.sleep", "_thread.lock.acquire")) == [
        ("starts.py", "first", "time.sleep", 1),
        ("starts.py", "held", "_thread.lock.acquire", 1),
        ("starts.py", "last", "time.sleep", 1),
        ("starts.py child", "MainThread", "time.sleep", 1),
    ]


@needs_events
def test_slices_end_where_exec_replaces_the_program(folder: Path) -> None:
    script = folder / "replaces.py"
    script.write_text(
        "import os, sys, time\n"
        "def work():\n"
        "    until = time.perf_counter() + 0.01\n"
        "    while time.perf_counter() < until: pass\n"
        "def fails():\n"
        "    try: os.execv('/does/not/exist', ['x'])\n"
        "    except FileNotFoundError: work()\n"
        "def replace():\n"
        "    work()\n"
        "    os.execvp(sys.executable, [sys.executable, sys.argv[0], 'again'])\n"
        "if sys.argv[1:]: work()\n"
        "else: fails(); replace()\n"
    )
    run = record(folder / "replaces.pftrace", "--auto", str(script))
    trace = Trace(Run(run.status, "", run.stderr, run.path))
    above = [trace.names_above(s)[:1] for s in trace.slices if s.name == "work"]
    assert above == [[], ["replace"], ["replaces.py"]]


@needs_events
def test_failed_exec_keeps_the_counts_of_calls(folder: Path) -> None:
    script = folder / "counts.py"
    script.write_text(
        "import os, sys\n"
        "hooks = sys.modules['stretto._pyhooks']\n"
        "def counted(): len('')\n"
        "def calls(): return {f[0]: f[3] for f in hooks.totals()['functions']}['counted']\n"
        "def fails():\n"
        "    try: os.execv('/does/not/exist', ['x'])\n"
        "    except FileNotFoundError: pass\n"
        "for _ in range(5): counted()\n"
        "fails()\n"
        "counted()\n"
        "print(calls())\n"
    )
    run = record(folder / "counts.pftrace", "--auto", str(script))
    assert (run.status, run.stdout) == (0, "6\n")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--auto", "--ring"), "--auto and --ring: choose one"),
        (("--auto", "--system"), "--auto doesn't go with --system"),
    ],
)
def test_options_that_contradict_auto_are_refused(
    folder: Path, options: tuple[str, ...], why: str
) -> None:
    run = record(folder / "none.pftrace", *options, "-c", "pass")
    assert run.status == 2
    assert why in run.stderr


def test_native_threads_have_names(folder: Path) -> None:
    script = folder / "threads.py"
    script.write_text(
        "from glob import glob\n"
        "def names(): return {open(p).read().strip() for p in glob('/proc/self/task/*/comm')}\n"
        "while {'stretto-io', 'stretto-stacks'} - names(): pass\n"
    )
    assert record(folder / "threads.pftrace", "--auto", str(script)).status == 0


def test_waiting_thread_has_its_name_though_it_records_no_event(folder: Path, oracle: Any) -> None:
    script = folder / "waits.py"
    script.write_text(
        "import threading, time\n"
        "lock = threading.Lock()\n"
        "lock.acquire()\n"
        "waits = threading.Event()\n"
        "wait = lambda: waits.set() or lock.acquire()\n"
        "threading.Thread(target=wait, daemon=True, name='waiter').start()\n"
        "waits.wait()\n"
        "time.sleep(0.1)  # sleep: a wait to be seen\n"
    )
    run = record(folder / "waits.pftrace", "--auto", str(script))
    sql = "select distinct thread.name from slice join thread_track t on track_id = t.id"
    sql += " join thread using (utid) where slice.name like '%<lambda>'"
    assert oracle(run.trace).query(sql) == [("waiter",)]
