"""`stretto record` doesn't change how a program behaves; the trace has the program's events."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.support.recorded import Run, alone, check_trace, names, pids, record

SEES_ITSELF = """
import os, sys
print(sys.argv, sys.path, __name__, "sitecustomize" in sys.modules, sys.flags.isolated)
print(__file__, sys.orig_argv[1:], sys.warnoptions, os.open(os.devnull, 0))
print("on standard error", file=sys.stderr)
"""
PACKAGE = {"pkg/__init__.py": "", "pkg/__main__.py": "import sys\nprint(__package__, sys.argv[1:])"}
COLLECTS = """
import gc, time
print(gc.collect())
time.sleep(0.5)  # sleep: threads of the recorder work meanwhile
cycle = []
cycle.append(cycle)
del cycle
print(gc.collect(), gc.get_threshold(), gc.isenabled())
"""

HELD = """
class Held:
    def __del__(self):
        print("finalized", flush=True)

class Cycle:
    pass

held = Held()
cycle = Cycle()
cycle.itself, cycle.held = cycle, Held()
"""

FAILS = "def inner(): raise ValueError('why')\ndef outer(): inner()\nouter()\n"


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__DOT__", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return tmp_path / "out" / "trace.pftrace"


@pytest.fixture(autouse=True)
def out(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()


def code(text: str) -> tuple[str, ...]:
    return ("-c", text)


def record_code(trace: Path, text: str, *options: str) -> Run:
    return record(trace, *options, *code(text))


class TestUnchangedBehaviour:
    def same(self, trace: Path, *program: str, cwd: Path) -> Run:
        """Check that the recorder doesn't change the output and the exit status of a program."""
        expected = alone(sys.executable, *program, cwd=cwd)
        run = record(trace, "--quiet", *program, cwd=cwd)
        assert (run.status, run.stdout, run.stderr) == (
            expected.status,
            expected.stdout,
            expected.stderr,
        )
        return run

    def test_script_behaves_as_without_a_recorder(self, tmp_path, trace):
        (tmp_path / "app.py").write_text(SEES_ITSELF)
        self.same(trace, "app.py", "--buffer", "-m", "x", cwd=tmp_path)

    def test_folder_with_main_behaves_as_without_a_recorder(self, tmp_path, trace):
        write(tmp_path, **PACKAGE)
        self.same(trace, "pkg", "1", cwd=tmp_path)

    def test_module_behaves_as_without_a_recorder(self, tmp_path, trace):
        write(tmp_path, **PACKAGE)
        self.same(trace, "-m", "pkg", "-q", cwd=tmp_path)

    def test_code_option_behaves_as_without_a_recorder(self, tmp_path, trace):
        self.same(trace, "-c", "import sys; print(sys.argv, sys.path)", "-o", "y", cwd=tmp_path)

    @pytest.mark.parametrize("change", ["del sys.argv", "sys.argv = None", "sys.argv = [None]"])
    def test_program_may_change_its_command_line(self, tmp_path, trace, change):
        code = f"import sys, os; {change}; os.fork() or os._exit(0); os.wait()"
        assert self.same(trace, "-c", code, cwd=tmp_path).stderr == ""

    def test_objects_that_live_until_the_exit_are_finalized_as_without_a_recorder(
        self, tmp_path, trace
    ):
        (tmp_path / "held.py").write_text(HELD)
        assert self.same(trace, "held.py", cwd=tmp_path).stdout == "finalized\n" * 2

    def test_collector_finds_and_does_the_same_as_without_a_recorder(self, tmp_path, trace):
        (tmp_path / "collects.py").write_text(COLLECTS)
        assert self.same(trace, "collects.py", cwd=tmp_path).stdout.startswith("0\n")

    @pytest.mark.parametrize("status", [0, 1, 3, 255])
    def test_exit_status_is_the_same_as_without_a_recorder(self, tmp_path, trace, status):
        assert self.same(trace, "-c", f"raise SystemExit({status})", cwd=tmp_path).status == status

    def test_traceback_is_the_same_as_without_a_recorder(self, tmp_path, trace):
        (tmp_path / "fails.py").write_text(FAILS)
        run = self.same(trace, "fails.py", cwd=tmp_path)
        assert "ValueError: why" in run.stderr

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
    def test_program_killed_by_a_signal_ends_as_without_a_recorder(self, tmp_path, trace, number):
        text = f"import os, signal; signal.signal({number:d}, signal.SIG_DFL) if {number:d} != 9 "
        text += f"else None; os.kill(os.getpid(), {number:d})"
        assert self.same(trace, "-c", text, cwd=tmp_path).status == -number

    def test_uncaught_keyboard_interrupt_ends_the_program_as_without_a_recorder(
        self, tmp_path, trace
    ):
        run = self.same(trace, "-c", "raise KeyboardInterrupt", cwd=tmp_path)
        assert run.status == -signal.SIGINT

    def test_program_reads_the_standard_input_of_the_recorder(self, tmp_path, trace):
        run = record(
            trace, "-q", "--", "sh", "-c", f"echo hello | {sys.executable} -c 'print(input())'"
        )
        assert run.stdout == "hello\n"

    def test_program_inherits_open_descriptors(self, tmp_path, trace):
        reads = "import os; print(os.read(7, 9).decode())"
        shell = f"{' '.join(command(trace, 'sh', '-c'))} \"{sys.executable} -c '{reads}'\" 7< data"
        (tmp_path / "data").write_text("inherited")
        run = alone("sh", "-c", shell, cwd=tmp_path)
        assert run.stdout == "inherited\n"

    def test_sitecustomize_of_the_user_runs_under_the_recorder(self, tmp_path, trace):
        (tmp_path / "site").mkdir()
        (tmp_path / "site" / "sitecustomize.py").write_text("import builtins; builtins.mine = 1\n")
        text = "import sys, sitecustomize; print(mine, sitecustomize.__file__, sys.path)"
        path = {"PYTHONPATH": os.pathsep.join([str(tmp_path / "site"), *python_path()])}
        expected = alone(sys.executable, "-c", text, **path)
        assert record(trace, "-q", "-c", text, **path).stdout == expected.stdout

    def test_failing_sitecustomize_prints_the_same_error_as_without_a_recorder(
        self, tmp_path, trace
    ):
        (tmp_path / "sitecustomize.py").write_text("raise OSError('mine')\n")
        path = {"PYTHONPATH": os.pathsep.join([str(tmp_path), *python_path()])}
        expected = alone(sys.executable, "-c", "pass", **path)
        assert "mine" in expected.stderr
        # The recorder, a Python process with the same PYTHONPATH, also prints the error.
        assert expected.stderr in record(trace, "-q", "-c", "pass", **path).stderr

    def test_recorder_causes_no_python_warnings(self, tmp_path, trace):
        text = "import os, time\nif os.fork() == 0: os._exit(0)\nos.wait()"
        run = record(trace, "-q", "--", sys.executable, "-W", "error", "-X", "dev", "-c", text)
        assert (run.status, run.stderr) == (0, "")


CLOSES_EVERYTHING = """
import os, sys, time
def f(): pass
f()
os.closerange(3, 4096)
files = [os.open(f"{sys.argv[1]}/{n}", os.O_RDWR | os.O_CREAT) for n in range(300)]
for _ in range(100_000): f()
if os.fork() == 0: os._exit(0)
os.wait()
before = time.process_time(); time.sleep(0.5)  # sleep: Stretto must not use CPU time
spent = time.process_time() - before
print(files[0] < 8, sum(os.fstat(fd).st_size for fd in files), spent < 0.2)
"""


def test_program_is_recorded_until_it_closes_all_descriptors(oracle, tmp_path, trace):
    """A daemon may close all descriptors, also those of Stretto.

    Stretto must not write into files that get the numbers of its closed descriptors, and must not
    use CPU time. One of its threads may have a file open for a moment, so the first file's number
    may be above 3.
    """
    (tmp_path / "files").mkdir()
    run = record(trace, "--ring", "-c", CLOSES_EVERYTHING, str(tmp_path / "files"))
    assert (run.status, run.stdout) == (0, "True 0 True\n")
    assert "closed all its descriptors" in run.stderr
    assert "f" in names(check_trace(oracle, run.trace, complete=False))


TAKES_OUR_NUMBERS = """
import os, resource, socket, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (2048, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
def f(): pass
f()
os.closerange(3, 2048)
ends = []
for n in range(600):  # every number up to 1200, ours among them
    ends.extend(socket.socketpair())
    ends[-2].setblocking(False)
for end in ends: end.send(b"x")
for _ in range(100_000): f()
if os.fork() == 0: os._exit(0)
os.wait()
before = time.process_time(); time.sleep(0.5)  # sleep: Stretto must not use CPU time
spent = time.process_time() - before
print(len(ends), all(end.recv(100) == b"x" for end in ends), spent < 0.2)
"""


def test_stretto_does_not_touch_descriptor_numbers_that_the_program_reuses(oracle, trace):
    run = record(trace, "--ring", "-c", TAKES_OUR_NUMBERS)
    assert (run.status, run.stdout) == (0, "1200 True True\n")
    assert "closed all its descriptors" in run.stderr
    assert "f" in names(check_trace(oracle, run.trace, complete=False))


def python_path() -> list[str]:
    return [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]


def command(trace: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "stretto", "record", "-q", "-o", str(trace), "--", *arguments]


WROTE = "import os, signal, sys, ctypes\ndef wrote(): pass\nwrote()\n"
ENDINGS = {
    "SIGTERM": "os.kill(os.getpid(), signal.SIGTERM)",
    "SIGKILL": "os.kill(os.getpid(), signal.SIGKILL)",
    "_exit": "os._exit(7)",
    "exec": "os.execv(sys.executable, [sys.executable, '-c', 'def after(): pass\\nafter()'])",
    "segfault": "ctypes.string_at(0)",
}
STATUS = {"SIGTERM": -15, "SIGKILL": -9, "_exit": 7, "exec": 0, "segfault": -11}


class TestProgramExit:
    @pytest.mark.parametrize("how", ENDINGS)
    def test_events_just_before_the_exit_of_the_program_are_kept(self, oracle, trace, how):
        run = record(trace, "--ring", "-c", WROTE + ENDINGS[how])
        assert run.status == STATUS[how]
        found = names(check_trace(oracle, run.trace, complete=False))
        assert "wrote" in found
        assert ("after" in found) == (how == "exec")

    @pytest.mark.parametrize("how", ENDINGS)
    def test_events_just_before_the_exit_of_a_child_are_kept(self, oracle, trace, how):
        child = WROTE + ENDINGS[how]
        text = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {child!r}])"
        run = record(trace, "--ring", "-c", text)
        assert run.status == 0
        assert "wrote" in names(check_trace(oracle, run.trace, complete=False))

    def test_uncaught_exception_leaves_no_slice_open(self, oracle, trace):
        run = record(trace, "--ring", "-c", FAILS)
        loaded = check_trace(oracle, run.trace)
        assert {"inner", "outer", "ValueError: why"} <= names(loaded)

    def test_functions_called_while_the_process_disconnects_are_not_recorded(self, oracle, trace):
        """The recorder reads the shared memory for the last time when the process disconnects."""
        run = record_code(trace, HANGS_UP_SLOWLY)
        assert "slow_close" not in names(check_trace(oracle, run.trace))


HANGS_UP_SLOWLY = """
import atexit, os, signal, time
from stretto.base.stream_socket import StreamSocket
close, recorder = StreamSocket.close, os.getppid()
def slow_close(end):
    os.kill(recorder, signal.SIGCONT)
    time.sleep(0.3)  # sleep: the recorder reads meanwhile
    close(end)
StreamSocket.close = slow_close
atexit.register(os.kill, recorder, signal.SIGSTOP)
"""
FORKS = """
import os
def in_child(): pass
def in_parent(): pass
for _ in range(3):
    if os.fork() == 0:
        in_child()
        os._exit(0)
in_parent()
for _ in range(3): os.wait()
"""
DOUBLE_FORK = """
import os, time
def orphan(): time.sleep(0.1)  # sleep: it outlives its parent
if os.fork() == 0:
    if os.fork() == 0:
        orphan()
    os._exit(0)
os.wait()
"""
SUBPROCESS = """
import subprocess, sys
subprocess.run([sys.executable, "-c", "def child(): pass\\nchild()"])
subprocess.run(["sh", "-c", sys.executable + " -c 'def below_a_shell(): pass\\nbelow_a_shell()'"])
"""
MULTIPROCESSING = """
import multiprocessing, sys, time
def work(x):
    time.sleep(0.3)  # sleep: every worker gets some work
    return x + 1
if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        print(pool.map(work, range(4), chunksize=1))
"""


class TestChildProcesses:
    def test_forked_children_are_recorded(self, oracle, trace):
        loaded = check_trace(oracle, record(trace, "--ring", "-c", FORKS).trace, complete=False)
        assert loaded.query("select count(*) from slice where name = 'in_child'") == [(3,)]
        assert loaded.query("select count(*) from slice where name = 'in_parent'") == [(1,)]
        assert len(pids(loaded)) == 4

    def test_orphan_of_a_double_fork_is_recorded(self, oracle, trace):
        """The orphan outlives the program; the recorder waits for it."""
        loaded = check_trace(oracle, record_code(trace, DOUBLE_FORK).trace, complete=False)
        assert "orphan" in names(loaded)

    def test_python_subprocesses_are_recorded(self, oracle, trace):
        loaded = check_trace(oracle, record(trace, "--ring", "-c", SUBPROCESS).trace)
        assert {"child", "below_a_shell"} <= names(loaded)
        assert len(pids(loaded)) == 3

    @pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
    def test_multiprocessing_workers_are_recorded(self, oracle, tmp_path, trace, method):
        (tmp_path / "pool.py").write_text(MULTIPROCESSING)
        run = record(trace, str(tmp_path / "pool.py"), method)
        assert (run.status, run.stdout) == (0, "[1, 2, 3, 4]\n")
        loaded = check_trace(oracle, run.trace, complete=False)
        assert loaded.query("select count(*) from slice where name = 'work'") == [(4,)]
        assert len(pids(loaded)) >= 2, "one worker may do all the work"

    def test_recorder_ends_after_the_program_despite_running_children(self, oracle, trace):
        # This test reads until all writers have closed standard output, so the child closes it.
        # sleep: the child runs longer than the recorder
        text = "import os, time\nif os.fork() == 0: os.closerange(0, 3); time.sleep(30)"
        run = alone("timeout", "20", *command(trace, sys.executable, "-c", text))
        assert run.status == 0
        check_trace(oracle, trace.read_bytes(), complete=False)

    def test_recorder_reports_an_unrecorded_python_process_that_ends_at_once(self, trace):
        text = (
            "import os, subprocess, sys\n"
            "subprocess.run([sys.executable, '-I', '-c', ''])\n"
            "subprocess.run([sys.executable, '-c', ''], env={})\n"
            "subprocess.run([sys.executable, '--version'])\n"
            "subprocess.run([sys.executable, '-c', ''], close_fds=False,\n"
            "    env={**os.environ, 'PYTHONPATH': ''})\n"
            "subprocess.run([sys.executable, '-c', ''])\n"
        )
        said = record_code(trace, text).stderr
        assert said.count("not followed") == 3
        assert "-I, which keeps recorders out" in said
        assert "an environment of its own" in said
        assert "a PYTHONPATH of its own" in said

    def test_recorder_reports_an_unrecorded_python_process_that_a_shell_started(self, trace):
        text = (
            "import os, subprocess, sys\n"
            # sleep: longer than the recorder's pause between two scans for processes
            "subprocess.run([f'{sys.executable} -Ec \"import time; time.sleep(0.7)\"'], shell=True)"
        )
        assert "-E, which keeps recorders out" in record_code(trace, text).stderr


SUB_INTERPRETER = """
try: import _interpreters as interpreters
except ImportError: import _xxsubinterpreters as interpreters
interpreters.run_string(interpreters.create(), "import sys; print('sitecustomize' in sys.modules)")
def f(): pass
f()
"""


def test_start_of_stretto_in_the_program_is_not_recorded(oracle, trace):
    run = record_code(trace, "def f(): pass\nf()", "--full")
    rows = check_trace(oracle, run.trace).query("select name from slice")
    found = {name for (name,) in rows}
    assert "f" in found
    assert not [name for name in found if name.startswith(("sitecustomize.", "stretto."))]


def test_sub_interpreters_are_not_recorded(oracle, trace):
    run = record(trace, "--ring", "-c", SUB_INTERPRETER)
    # The system's sitecustomize may print text, so compare with a run without the recorder.
    plain = alone(sys.executable, "-c", SUB_INTERPRETER)
    assert (run.status, run.stdout) == (0, plain.stdout)
    assert "not followed" not in run.stderr
    assert "f" in names(check_trace(oracle, run.trace))


class TestRecordedEvents:
    def test_events_of_every_kind_are_recorded(self, oracle, trace):
        text = (
            "import asyncio, gc, logging, threading, stretto\n"
            "async def task(): await asyncio.sleep(0)\n"
            "def in_thread(): stretto.counter('level', 3)\n"
            "def main():\n"
            "    thread = threading.Thread(target=in_thread, name='the thread')\n"
            "    thread.start(); thread.join()\n"
            "    asyncio.run(task()); gc.collect(); logging.warning('attention')\n"
            "main()"
        )
        loaded = check_trace(oracle, record_code(trace, text, "--ring").trace)
        assert {"main", "in_thread", "garbage collection", "attention"} <= names(loaded)
        assert ("the thread",) in loaded.query("select name from thread")
        counters = loaded.query("select distinct name from counter_track")
        assert {("level",), ("mem.rss",)} <= set(counters)

    def test_counters_of_a_process_end_when_the_process_ends(self, oracle, trace):
        text = (
            "import os, time\n"
            "pid = os.fork()\n"
            # sleep: the recorder reads the child's counters in this time
            "if not pid: time.sleep(0.2); os._exit(0)\n"
            # sleep: the recorder reads the parent's counters in this time
            "os.waitpid(pid, 0); time.sleep(1.5); print(pid)\n"
        )
        run = record_code(trace, text, "--no-functions")
        loaded = check_trace(oracle, run.trace)
        values = loaded.query(
            "select value, ts from counter join process_counter_track track on track.id = track_id"
            f" join process using (upid) where track.name = 'mem.rss' and pid = {run.stdout}"
            " order by ts"
        )
        ((last,),) = loaded.query("select end_ts from trace_bounds")
        assert values[0][0] > 0
        assert values[-1][0] == 0
        assert last - values[-1][1] > 10**9, "it ended long before the trace"

    def test_cpu_and_memory_counters_belong_to_the_recorded_process(self, oracle, trace):
        text = "import time\nend = time.time() + 1.5\nwhile time.time() < end: pass\n"
        run = record_code(trace, text, "--no-functions")
        loaded = check_trace(oracle, run.trace)
        rows = loaded.query(
            "select track.name, max(counter.value), count(distinct pid) from counter"
            " join process_counter_track track on track.id = track_id join process using (upid)"
            " where track.name in ('CPU', 'mem.rss') group by 1 order by 1"
        )
        (_, cpu, one), (_, rss, also_one) = rows
        assert (one, also_one) == (1, 1)
        assert 5 < cpu < 110
        assert 2 << 20 < rss < 1 << 30

    @pytest.mark.parametrize(
        ("option", "gone", "kept"),
        [
            ("--no-functions", "f", "own"),
            ("--no-gc", "garbage collection", "f"),
            ("--no-logs", "x", "f"),
            ("--no-exceptions", "ValueError", "f"),
            ("--exclude=__main__", "f", "own"),
            ("--min-duration=10s", "f", "own"),
            ("--max-depth=1", "f", "<module>"),
        ],
    )
    def test_option_that_limits_the_recording_removes_events(
        self, oracle, trace, option, gone, kept
    ):
        text = (
            "import gc, logging, stretto\ndef f():\n  stretto.instant('own'); gc.collect()\n"
            "f(); logging.warning('x'); raise ValueError\n"
        )
        everything = names(check_trace(oracle, record_code(trace, text, "--ring").trace))
        assert {gone, kept} <= everything
        found = names(check_trace(oracle, record_code(trace, text, "--ring", option).trace))
        assert gone not in found
        assert kept in found

    def test_c_functions_option_adds_c_functions(self, oracle, trace):
        text = "def f(): return sorted([2, 1])\nf()"
        assert "sorted" not in names(check_trace(oracle, record_code(trace, text, "--ring").trace))
        run = record_code(trace, text, "--c-functions")
        assert any("sorted" in name for name in names(check_trace(oracle, run.trace)))

    def test_include_option_limits_functions_to_a_module(self, oracle, trace):
        text = "import json\ndef f(): json.dumps([])\nf()"
        run = record_code(trace, text, "--ring", "--include", "json")
        found = names(check_trace(oracle, run.trace))
        assert "json.dumps" in found
        assert "f" not in found

    def test_summary_counts_events_processes_and_threads(self, oracle, trace):
        run = record(trace, "--ring", "-c", FORKS)
        loaded = check_trace(oracle, run.trace, complete=False)
        (slices,) = loaded.query("select 2 * count(*) from slice where dur >= 0")[0]
        events = slices + loaded.query("select count(*) from counter")[0][0]
        first = run.stderr.splitlines()[0]
        said = int(first.split()[1].replace(",", ""))
        assert abs(said - events) < 40, "slices without an end apart"
        assert "4 processes, 4 threads" in first
        assert str(trace) in run.stderr
        assert "ui.perfetto.dev" in run.stderr
