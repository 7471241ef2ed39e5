"""`stretto record --system`: the machine's service records the program and other programs."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.polling import wait_until
from tests.support.recorded import check_trace, names, pids, record, record_command
from tests.support.traced import Daemon, Process, closing_all, daemon_environment

FAMILY = """
import os, subprocess, sys

def in_the_parent(): pass
def in_the_fork(): pass

in_the_parent()
if (pid := os.fork()) == 0:
    in_the_fork()
    sys.exit()
os.waitpid(pid, 0)
subprocess.run([sys.executable, "-c", "def in_the_child(): pass\\nin_the_child()"], check=True)
print("done", flush=True)
sys.exit(3)
"""
WAITS = """
import sys

def before(): pass
def after(): pass

before()
print("waits", flush=True)
sys.stdin.readline()
after()
"""
CUSTOM = """
data_sources { config { name: "test.custom" target_buffer: 1 } }
data_sources { config { name: "track_event" track_event_config { disabled_categories: "*" } } }
buffers { size_kb: 256 }
buffers { size_kb: 512 }
"""


@pytest.fixture
def opened():
    with closing_all() as things:
        yield things


@pytest.fixture
def daemon(tmp_path, opened) -> Daemon:
    (tmp_path / "sockets").mkdir()
    daemon = Daemon(tmp_path / "sockets")
    opened.append(daemon)
    return daemon


def recorded(daemon, path: Path, *arguments: str):
    return record(path, "--system", *arguments, **daemon.environment)


def waiting(daemon, opened, path: Path, *options: str) -> Process:
    """Start a recorder. Its program then waits for a line on standard input."""
    command = record_command(path, "--system", *options, "-c", WAITS)
    recorder = Process(*command, env=daemon.environment, stderr=subprocess.PIPE)
    opened.append(recorder)
    assert recorder.line() == "waits\n"
    return recorder


def finished(recorder: Process) -> tuple[int, str]:
    """Let the program end; return the recorder's exit status and standard error."""
    recorder.write_line("")
    _, said = recorder.popen.communicate(timeout=60)
    return recorder.popen.returncode, said.decode()


class TestRecordedPrograms:
    def test_children_and_another_program_are_recorded(self, daemon, opened, tmp_path, oracle):
        other = daemon.producer("other")
        opened.append(other)
        (tmp_path / "app.py").write_text(FAMILY + "# ")
        recorder = Process(
            *record_command(tmp_path / "out", "--system", str(tmp_path / "app.py")),
            env=daemon.environment,
            stderr=subprocess.PIPE,
        )
        opened.append(recorder)
        assert recorder.line() == "done\n"
        _, said = recorder.popen.communicate(timeout=60)
        assert recorder.popen.returncode == 3
        assert "not followed" not in said.decode()
        assert "3 processes" in said.decode() or "4 processes" in said.decode()
        loaded = check_trace(oracle, (tmp_path / "out").read_bytes())
        assert {"in_the_parent", "in_the_fork", "in_the_child"} <= names(loaded)
        assert len(pids(loaded)) == 3

    def test_other_programs_are_recorded_without_their_function_calls(
        self, daemon, opened, tmp_path, oracle
    ):
        other = daemon.producer("other")
        opened.append(other)
        recorder = waiting(daemon, opened, tmp_path / "out")
        other.write_line("100")
        assert other.line() == "wrote 100\n"
        assert finished(recorder)[0] == 0
        loaded = check_trace(oracle, (tmp_path / "out").read_bytes())
        assert loaded.query("select count(*) from slice where name = 'other'") == [(100,)]
        of_other = (
            "select distinct category from slice join thread_track on track_id = thread_track.id"
            f" join thread using (utid) join process using (upid) where pid = {other.pid}"
        )
        assert loaded.query(of_other) == [("test",)]
        assert {"before", "after"} <= names(loaded)

    def test_only_the_recorded_program_has_memory_counters(self, daemon, tmp_path, oracle):
        # sleep: the recorder reads counters in this time
        run = recorded(daemon, tmp_path / "out", "-c", "import time; time.sleep(1.5)")
        assert run.status == 0
        loaded = check_trace(oracle, run.trace)
        assert loaded.query(
            "select count(distinct upid) from counter join process_counter_track t"
            " on track_id = t.id where t.name = 'mem.rss'"
        ) == [(1,)]

    def test_program_with_always_on_tracing_is_recorded_once(self, daemon, tmp_path, oracle):
        program = (
            "import stretto, os, sys\n"
            "connection = stretto.connect()\n"
            "assert connection.connected, connection.problem\n"
            "for _ in range(10): stretto.instant('here')\n"
            "pid = os.fork()\n"
            "if pid: os.waitpid(pid, 0)\n"
            "stretto.instant('there')\n"
            "stretto.connect().disconnect()\n"
            "stretto.instant('still')\n"
        )
        run = recorded(daemon, tmp_path / "out", "--no-functions", "--no-gc", "-c", program)
        assert run.status == 0, run.stderr
        counts = dict(
            check_trace(oracle, run.trace).query("select name, count(*) from slice group by name")
        )
        assert counts == {"here": 10, "there": 2, "still": 2}


class TestAddedDataSources:
    def test_data_source_is_added_by_name(self, daemon, opened, tmp_path):
        recorder = waiting(daemon, opened, tmp_path / "out", "--data-source", "test.custom")
        other = daemon.producer("other")
        opened.append(other)
        consumer = daemon.consumer()
        opened.append(consumer)
        consumer.wait_for_producers("other")
        (session,) = consumer.state().tracing_sessions
        # The recorder adds data sources for events and counters, and the other program adds two.
        assert session.num_data_sources == 4
        assert finished(recorder)[0] == 0

    def test_data_source_that_no_process_offers_is_noted(self, daemon, opened, tmp_path):
        opened.append(daemon.producer("other"))
        recorder = waiting(daemon, opened, tmp_path / "out", "--data-source", "test.custm")
        status, said = finished(recorder)
        assert status == 0
        assert "note: no connected process has the data source 'test.custm'; did you" in said

    def test_data_source_is_added_by_a_config(self, daemon, opened, tmp_path, oracle):
        (tmp_path / "config").write_text(CUSTOM)
        recorder = waiting(daemon, opened, tmp_path / "out", "--config", str(tmp_path / "config"))
        other = daemon.producer("other")
        opened.append(other)
        other.write_line("10")
        assert other.line() == "wrote 10\n"
        assert finished(recorder)[0] == 0
        loaded = check_trace(oracle, (tmp_path / "out").read_bytes())
        assert "before" in names(loaded)
        assert "other" not in names(loaded)  # the config excludes events of the other program

    @pytest.mark.parametrize(
        ("text", "why"),
        [("data_sources {", "config:"), ("nonsense: 1", "nonsense"), (None, "No such file")],
    )
    def test_unreadable_config_is_refused(self, daemon, tmp_path, text, why):
        if text is not None:
            (tmp_path / "config").write_text(text)
        run = recorded(
            daemon, tmp_path / "out", "--config", str(tmp_path / "config"), "-c", "print('runs')"
        )
        assert run.status != 0
        assert why in run.stderr
        assert run.stdout == ""
        assert not (tmp_path / "out").exists()


class TestTraceOfSystemRecording:
    def test_streamed_system_recording_keeps_all_events(self, daemon, tmp_path, oracle):
        run = recorded(daemon, tmp_path / "out", "--stream", "-c", "def f(): pass\nf()")
        assert run.status == 0
        assert "f" in names(check_trace(oracle, run.trace))
        assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "sockets"]

    def test_snapshot_is_a_clone_of_the_session(self, daemon, opened, tmp_path, oracle):
        recorder = waiting(daemon, opened, tmp_path / "out.pftrace")
        recorder.signal(signal.SIGUSR2)
        snapshot = tmp_path / "out.snapshot-1.pftrace"
        wait_until(snapshot.exists, "a snapshot")
        loaded = check_trace(oracle, snapshot.read_bytes(), complete=False)
        assert "before" in names(loaded)
        assert "after" not in names(loaded)
        assert finished(recorder)[0] == 0
        assert "after" in names(check_trace(oracle, (tmp_path / "out.pftrace").read_bytes()))


class TestDaemonFailure:
    @pytest.mark.parametrize("options", [(), ("--stream",)])
    def test_missing_daemon_is_named_in_the_error(self, tmp_path, options):
        environment = daemon_environment(tmp_path)
        run = record(tmp_path / "out", "--system", *options, "-c", "print('runs')", **environment)
        assert run.status == 125
        assert "start one with `stretto traced --background`" in run.stderr
        assert run.stdout == ""
        assert list(tmp_path.iterdir()) == []

    def test_trace_is_lost_if_the_daemon_is_killed(self, daemon, opened, tmp_path):
        recorder = waiting(daemon, opened, tmp_path / "out")
        daemon.signal(signal.SIGKILL)
        daemon.wait()
        status, said = finished(recorder)
        assert status == 0  # `record` returns the exit status of the program
        assert "The trace is lost" in said
        assert not (tmp_path / "out").exists()
        assert not (tmp_path / "out.part").exists()

    def test_trace_up_to_the_end_of_the_daemon_is_kept(self, daemon, opened, tmp_path, oracle):
        recorder = waiting(daemon, opened, tmp_path / "out")
        daemon.signal(signal.SIGTERM)
        assert daemon.wait() == 0
        status, _ = finished(recorder)
        assert status == 0
        loaded = check_trace(oracle, (tmp_path / "out").read_bytes(), complete=False)
        assert "before" in names(loaded)
        assert "after" not in names(loaded)

    def test_options_of_system_recordings_are_refused_without_dash_dash_system(self, tmp_path):
        run = record(tmp_path / "out", "--data-source", "linux.ftrace", "-c", "print('runs')")
        assert run.status == 2
        assert "go with --system" in run.stderr

    def test_program_does_not_inherit_environment_variables_of_the_recorder(self, daemon, tmp_path):
        program = "import os; print(os.environ['PERFETTO_PRODUCER_SOCK_NAME'])"
        run = recorded(daemon, tmp_path / "out", "-c", program)
        assert run.stdout.strip() == os.path.join(tmp_path, "sockets", "producer")
