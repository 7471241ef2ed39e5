"""Forked children of recorded programs connect at their first event, or after a time-out.

Most programs set a time-out that never passes, so only an event can connect the child.
"""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from tests.support.recorded import Run, check_trace, names, record

HEAD = """
import os, sys, stretto
from stretto.client import postponed
postponed.LONGEST_MS = 1 << 30
category = stretto.Category("shop")

def called():
    pass

@category.traced
def decorated():
    pass

def end(pid):
    assert os.waitpid(pid, 0)[1] == 0, "the child failed"
"""
EVENTS = {
    "instant": "category.instant('event')",
    "slice": "with category.slice('event'): pass",
    "slice of a new category": "with stretto.Category('new').slice('event'): pass",
    "begin and end": "category.begin('event'); category.end()",
    "traced function": "decorated()",
    "event on a track": "category.instant('event', track=stretto.Track('job'))",
}


def run_program(folder: Path, text: str, *options: str) -> Run:
    """Record a program that forks."""
    script = folder / "program.py"
    script.write_text(HEAD + text)
    run = record(folder / "trace.pftrace", "-q", *options, str(script))
    assert (run.status, run.stderr) == (0, "")
    return run


def processes(loaded: Any) -> int:
    """Return the number of processes with a name in a trace."""
    ((count,),) = loaded.query("select count(distinct pid) from process where name is not null")
    return int(count)


@pytest.mark.parametrize("calls", [False, True])
def test_fork_handlers_of_a_child_do_not_connect_it(
    tmp_path: Path, oracle: Any, *, calls: bool
) -> None:
    """Each child has Python functions as handlers: those of `random` and `threading`."""
    run = run_program(
        tmp_path,
        f"""
import random, threading
os.register_at_fork(after_in_child=lambda: called())
pid = os.fork()
if not pid:
    if {calls}:
        called()
    os._exit(0)
end(pid)
""",
    )
    # CPython 3.11 reports no calls: a child without events connects after a time-out only.
    connects = calls and sys.version_info >= (3, 12)
    assert processes(check_trace(oracle, run.trace, complete=False)) == 1 + connects


@pytest.mark.parametrize("event", EVENTS)
def test_first_event_of_a_child_is_recorded(tmp_path: Path, oracle: Any, event: str) -> None:
    """The child ends at once, without exit handlers."""
    text = f"""
if (pid := os.fork()) == 0:
    {EVENTS[event]}
    os._exit(0)
end(pid)
category.instant("of the parent")
"""
    loaded = check_trace(oracle, run_program(tmp_path, text, "--no-functions").trace)
    assert processes(loaded) == 2
    assert "of the parent" in names(loaded)
    sql = "select count(*) from slice where category in ('shop', 'new') and name != 'of the parent'"
    assert loaded.query(sql) == [(1,)]


@pytest.mark.parametrize("detail", ["--full", "--ring"])
def test_first_call_of_a_child_is_recorded(tmp_path: Path, oracle: Any, detail: str) -> None:
    text = """
if (pid := os.fork()) == 0:
    called()
    os._exit(0)
end(pid)
"""
    loaded = check_trace(
        oracle, run_program(tmp_path, text, detail).trace, complete=detail != "--ring"
    )
    assert "called" in names(loaded)
    assert processes(loaded) == 2


def test_child_without_events_is_not_in_the_trace(tmp_path: Path, oracle: Any) -> None:
    text = """
for exit in (sys.exit, os._exit):
    if (pid := os.fork()) == 0:
        exit(0)
    end(pid)
category.instant("of the parent")
"""
    loaded = check_trace(oracle, run_program(tmp_path, text).trace)
    assert processes(loaded) == 1
    assert "of the parent" in names(loaded)


def test_child_without_events_is_in_the_trace_after_the_timeout(
    tmp_path: Path, oracle: Any
) -> None:
    text = """
postponed.LONGEST_MS = 1
if (pid := os.fork()) == 0:
    while postponed.is_waiting():
        pass
    os._exit(0)
end(pid)
"""
    loaded = check_trace(oracle, run_program(tmp_path, text, "--no-functions").trace)
    assert processes(loaded) == 2


def test_worker_of_multiprocessing_without_events_is_in_the_trace(
    tmp_path: Path, oracle: Any
) -> None:
    text = """
import multiprocessing
context = multiprocessing.get_context("fork")
worker = context.Process(target=int)
worker.start()
worker.join()
"""
    loaded = check_trace(oracle, run_program(tmp_path, text, "--no-functions").trace)
    assert processes(loaded) == 2


def test_child_of_a_child_without_events_is_recorded(tmp_path: Path, oracle: Any) -> None:
    text = """
if (pid := os.fork()) == 0:
    if (pid := os.fork()) == 0:
        category.instant("of the grandchild")
        os._exit(0)
    end(pid)
    os._exit(0)
end(pid)
"""
    loaded = check_trace(oracle, run_program(tmp_path, text, "--no-functions").trace)
    assert "of the grandchild" in names(loaded)
    assert processes(loaded) == 2


def test_child_without_events_forks_without_a_second_thread(tmp_path: Path) -> None:
    """CPython 3.12 and later warn of a fork with a second thread."""
    text = """
import warnings
warnings.simplefilter("always")
for _ in range(3):
    if (pid := os.fork()) == 0:
        continue
    end(pid)
    break
"""
    run_program(tmp_path, text)


def test_session_of_a_child_is_recorded_beside_the_session_of_the_recorder(
    tmp_path: Path, oracle: Any
) -> None:
    text = f"""
if (pid := os.fork()) == 0:
    with stretto.recording({str(tmp_path / "child.pftrace")!r}):
        category.instant("in both traces")
    os._exit(0)
end(pid)
"""
    run = run_program(tmp_path, text, "--no-functions")
    for trace in (run.trace, (tmp_path / "child.pftrace").read_bytes()):
        assert "in both traces" in names(check_trace(oracle, trace))


def test_category_stays_enabled_in_a_child(tmp_path: Path) -> None:
    text = """
if (pid := os.fork()) == 0:
    assert category.enabled and postponed.is_waiting()
    os._exit(0)
end(pid)
"""
    run_program(tmp_path, text)


def test_ids_of_a_child_differ_from_those_of_its_parent(tmp_path: Path) -> None:
    text = """
ids = lambda: [stretto.process_track().uuid, stretto.Track("job").uuid, stretto.Flow().id]
read, write = os.pipe()
if (pid := os.fork()) == 0:
    os.write(write, repr(ids()).encode())
    os._exit(0)
end(pid)
assert not {*eval(os.read(read, 1000))} & {*ids()}
"""
    run_program(tmp_path, text, "--no-functions")


def test_events_while_a_child_is_finalized_are_ignored(tmp_path: Path) -> None:
    text = """
class Late:
    def __del__(self):
        category.instant("late")
        called()
late = Late()
late.itself = late
if (pid := os.fork()) == 0:
    sys.exit(0)
end(pid)
os._exit(0)
"""
    run_program(tmp_path, text)


def test_long_call_of_a_function_that_was_switched_off_in_the_parent_is_a_slice(
    tmp_path: Path, oracle: Any
) -> None:
    text = """
postponed.LONGEST_MS = 1
import time
def work(seconds):
    time.sleep(seconds)  # sleep: the duration of the call
for _ in range(100):
    work(0)
if (pid := os.fork()) == 0:
    work(1)
    os._exit(0)
end(pid)
print(pid)
"""
    # On CPython 3.11 samples find the call, after the child has connected.
    shortest = 10**9 if sys.version_info >= (3, 12) else 10**8
    run = run_program(tmp_path, text, "--auto")
    # A call of the parent may take as long on a busy machine.
    sql = "select count(*) from slice join thread_track on slice.track_id = thread_track.id"
    sql += " join thread using (utid) join process using (upid)"
    sql += f" where slice.name = 'work' and dur >= {shortest} and pid = {run.stdout}"
    assert check_trace(oracle, run.trace).query(sql) == [(1,)]


COMMAND_LINES = """
select cmdline, string_value from args join process using (arg_set_id)
where key = 'chrome.process_label[0]' and pid = {pid}
"""


def test_command_line_of_the_kernel_is_an_argument_of_the_process(
    oracle: Any, tmp_path: Path
) -> None:
    script = tmp_path / "job.py"
    script.write_text(
        "import multiprocessing, stretto\n"
        "load = lambda: stretto.Category('shop').instant('loaded')\n"
        "p = multiprocessing.get_context('fork').Process(target=load, name='loader')\n"
        "p.start(); p.join(); print(p.pid, end='')\n"
    )
    run = record(tmp_path / "job.pftrace", str(script), "a", "--b")
    [(cmdline, label)] = oracle(run.trace).query(COMMAND_LINES.format(pid=run.stdout))
    assert cmdline == "job.py loader a --b"
    assert label.endswith(f" {script} a --b")


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="the interpreter prints other lines")
def test_programs_begin_without_the_spare_tuples_of_our_imports(tmp_path: Path) -> None:
    script = tmp_path / "stats.py"
    script.write_text("import sys; sys._debugmallocstats()\n")
    run = record(tmp_path / "stats.pftrace", str(script))
    lines = [line.split() for line in run.stderr.splitlines() if "PyTupleObjects" in line]
    assert len(lines) > 10
    assert sum(int(line[0]) for line in lines) < 200  # 576 if they are left, 24 without Stretto


def test_classes_outlive_a_child_that_ends_unconnected(tmp_path: Path) -> None:
    script = tmp_path / "classes.py"
    script.write_text(
        HEAD + "from stretto.recorder.workspace import Workspace\n"
        "import atexit, gc, weakref\n"
        "pid = os.fork()\n"
        "if not pid:\n"
        "    gc.collect()\n"
        "    assert Workspace in object.__subclasses__()\n"
        "    sys.exit()\n"
        "end(pid)\n"
        "assert weakref.ref(Workspace)() is Workspace\n"
        "if sys.version_info >= (3, 12):\n"
        "    assert sys.getrefcount(weakref.ref(Workspace)) >= sys.getrefcount(None)\n"
    )
    run = record(tmp_path / "classes.pftrace", str(script))
    assert run.status == 0, run.stderr


@pytest.mark.skipif(sys.version_info < (3, 12), reason="no object is immortal")
@pytest.mark.skipif(
    bool(sysconfig.get_config_var("Py_GIL_DISABLED")), reason="immortal objects are counted"
)
def test_a_child_frees_no_listed_file_names_and_no_references_to_classes(tmp_path: Path) -> None:
    script = tmp_path / "kept.py"
    script.write_text(
        HEAD + "import itertools, weakref\n"
        "from stretto.base.errors import StrettoError\n"
        "class Own: pass\n"
        "finder = sys.path_importer_cache[os.path.dirname(os.__file__)]\n"
        "pid = os.fork()\n"
        "if not pid:\n"
        "    for thing in (finder, weakref.ref(itertools.chain), weakref.ref(StrettoError)):\n"
        "        assert sys.getrefcount(thing) >= sys.getrefcount(None), thing\n"
        "    assert sys.getrefcount(weakref.ref(Own)) < 10\n"
        "    sys.exit()\n"
        "end(pid)\n"
    )
    run = record(tmp_path / "kept.pftrace", "-q", str(script))
    assert (run.status, run.stderr) == (0, "")


@pytest.mark.skipif(sys.version_info < (3, 12), reason="no object is immortal")
@pytest.mark.skipif(
    bool(sysconfig.get_config_var("Py_GIL_DISABLED")), reason="functions are counted otherwise"
)
def test_a_child_counts_no_references_to_our_functions_and_names_of_modules(
    tmp_path: Path,
) -> None:
    script = tmp_path / "references.py"
    script.write_text(
        HEAD + "import this_program\n"
        "from stretto.client import fork\n"
        "pid = os.fork()\n"
        "if not pid:\n"
        "    name = next(name for name in sys.modules if name == 'this_program')\n"
        "    for thing in (fork.install, fork.install.__code__, fork, name):\n"
        "        assert sys.getrefcount(thing) >= sys.getrefcount(None), thing\n"
        "    sys.exit()\n"
        "end(pid)\n"
    )
    (tmp_path / "this_program.py").touch()
    run = record(tmp_path / "references.pftrace", "-q", str(script))
    assert (run.status, run.stderr) == (0, "")
