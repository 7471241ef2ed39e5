"""`stretto trace` and `stretto trigger` with a real daemon and a producer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import stretto
from stretto.analysis.trace_tables import damage, import_trace
from stretto.protos.trace import Trace, TracingServiceState
from tests.support.live_program import LiveProgram
from tests.support.polling import wait_until
from tests.support.recorded import check_trace, names
from tests.support.traced import Daemon, Process, closing_all

pytestmark = pytest.mark.once

CONFIG = """
buffers { size_kb: 4096 }
data_sources { config { name: "track_event" } }
"""
STRETTO = [sys.executable, "-m", "stretto"]


def triggers(mode: str) -> str:
    return (
        f"trigger_config {{ trigger_mode: {mode} trigger_timeout_ms: 600000 "
        'triggers { name: "now" } }'
    )


class Place:
    """A folder in which tests run commands, with a daemon and a producer."""

    def __init__(self, folder: Path, opened: list[Any], oracle: Any) -> None:
        self._oracle = oracle
        self.folder = folder
        self.opened = opened
        self.daemon = Daemon(folder)
        opened.append(self.daemon)
        self.producer = self.daemon.producer("worker")
        opened.append(self.producer)

    def config(self, text: str) -> str:
        path = self.folder / "config.pbtxt"
        path.write_text(CONFIG + text)
        return str(path)

    def run(self, *arguments: str, code: int = 0, text: bool = True) -> Any:
        done = subprocess.run(
            [*STRETTO, *arguments],
            env=self.daemon.environment,
            cwd=self.folder,
            capture_output=True,
            text=text,
            timeout=60,
        )
        assert done.returncode == code, done.stderr
        return done

    def start(self, *arguments: str, **popen: Any) -> Process:
        process = Process(
            *STRETTO,
            "trace",
            *arguments,
            env=self.daemon.environment,
            cwd=self.folder,
            stderr=subprocess.PIPE,
            **popen,
        )
        self.opened.append(process)
        return process

    def write(self, slices: int) -> None:
        self.producer.write_line(str(slices))
        assert self.producer.line() == f"wrote {slices}\n"

    def state(self) -> TracingServiceState:
        return TracingServiceState.decode(self.run("trace", "--query-raw", text=False).stdout)

    def wait_for_session(self, count: int = 1) -> None:
        wait_until(lambda: self.state().num_sessions_started == count, "a session")

    def slices(self, trace: str | bytes) -> int:
        """Return the number of slices in a trace; fail if it is damaged."""
        data = trace if isinstance(trace, bytes) else (self.folder / trace).read_bytes()
        loaded = check_trace(self._oracle, data)
        assert damage(import_trace(data)) == []
        (row,) = loaded.query("select count(*) from slice where name = 'worker'")
        return int(row[0])


@pytest.fixture
def place(tmp_path, oracle):
    with closing_all() as opened:
        yield Place(tmp_path, opened, oracle)


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_the_session_and_saves_the_trace(place: Place, ending: int) -> None:
    read_end, write_end = os.pipe()
    arguments = ("-c", place.config(""), "--txt", "-o", "out", "--notify-fd", str(write_end))
    process = place.start(*arguments, pass_fds=[write_end])
    os.close(write_end)
    assert "Connected" in process.line("stderr")
    with open(read_end, "rb") as pipe:
        assert pipe.read() == b"\0"
    place.write(100)
    process.signal(ending)
    assert process.wait() == 0
    assert place.slices("out") == 100
    assert (place.folder / "out").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(("category", "count"), [("te*", 7), ("other", 0)])
def test_category_is_recorded_without_a_config(place: Place, category: str, count: int) -> None:
    read_end, write_end = os.pipe()
    arguments = ("--category", category, "-t", "10m", "--notify-fd", str(write_end))
    process = place.start(*arguments, pass_fds=[write_end])
    os.close(write_end)
    with open(read_end, "rb") as pipe:
        assert pipe.read() == b"\0"
    place.write(7)
    process.signal(signal.SIGINT)
    assert process.wait() == 0
    assert place.slices("trace.pftrace") == count


def test_unmatched_requests_and_an_empty_trace_are_reported(place: Place) -> None:
    wait_until(lambda: "test" in place.run("trace", "--query", "--long").stdout, "the category")
    done = place.run("trace", "--category", "tset", "-t", "50ms")
    assert "Note: no connected process has the category 'tset'; did you mean 'test'?" in done.stderr
    assert "Note: the trace has no events" in done.stderr
    assert "linux." not in done.stderr  # The light mode adds these data sources by itself.
    typo = 'data_sources { config { name: "track_evnt" } } duration_ms: 50'
    done = place.run("trace", "-c", place.config(typo), "--txt", "-o", "out")
    assert "data source 'track_evnt'; did you mean 'track_event'?" in done.stderr
    (place.folder / "only.pbtxt").write_text(f"buffers {{ size_kb: 64 }} {typo}")
    done = place.run("trace", "-c", "only.pbtxt", "--txt", "-o", "out")
    assert "Note: the trace has no events: no data source has written any\n" in done.stderr


def test_trigger_without_any_session_is_reported(place: Place) -> None:
    assert "no session is running" in place.run("trigger", "now").stderr


def test_config_from_standard_input_and_trace_to_standard_output(place: Place) -> None:
    process = place.start("-c", "-", "--txt", "-o", "-")
    process.write_line(CONFIG + "duration_ms: 600000")
    assert process.popen.stdin is not None
    process.popen.stdin.close()
    place.wait_for_session()
    place.write(7)
    process.signal(signal.SIGINT)
    assert process.popen.stdout is not None
    assert place.slices(process.popen.stdout.read()) == 7
    assert process.wait() == 0
    assert process.popen.stderr is not None
    assert process.popen.stderr.read().endswith(b" bytes into stdout\n")
    process.popen.stdin = None


def test_session_ends_after_its_duration(place: Place) -> None:
    done = place.run("trace", "-c", place.config("duration_ms: 50"), "--txt", "-o", "out")
    size = (place.folder / "out").stat().st_size
    assert done.stderr.splitlines() == [
        "Connected to the tracing service, TTL: 1s",
        f"Wrote {size} bytes into out",
        "Note: the trace has no events, only names of processes and such",
    ]


def test_service_writes_the_output_path_of_the_config(place: Place) -> None:
    text = (
        "duration_ms: 300 write_into_file: true flush_period_ms: 600000 file_write_period_ms: 100"
    )
    done = place.run("trace", "-c", place.config(text), "--txt", "-o", "out")
    assert done.stderr.endswith("Trace written into the output file\n")
    assert place.slices("out") == 0


def test_background_process_writes_the_trace(place: Place) -> None:
    arguments = ("-c", place.config("duration_ms: 600000"), "--txt", "-o", "out")
    pid = int(place.run("trace", "--background-wait", *arguments).stdout)
    assert place.state().num_sessions_started == 1
    place.write(3)
    os.kill(pid, signal.SIGINT)
    wait_until(lambda: (place.folder / "out").stat().st_size, "a trace")
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), "the end")
    assert place.slices("out") == 3


def test_background_command_fails_if_the_session_cannot_start(place: Place) -> None:
    place.daemon.signal(signal.SIGKILL)
    place.daemon.wait()
    done = place.run("trace", "-D", "-c", place.config(""), "--txt", "-o", "out", code=1)
    assert done.stdout == ""


def test_detached_session_can_be_attached_and_stopped(place: Place) -> None:
    config = place.config(
        "write_into_file: true flush_period_ms: 600000 file_write_period_ms: 600000"
    )
    place.run("trace", "--is_detached", "key", code=2)
    place.run("trace", "--detach", "key", "-c", config, "--txt", "-o", "out")
    place.run("trace", "--is_detached", "key")
    place.wait_for_session()
    place.write(9)
    place.run("trace", "--attach", "key", "--stop")
    assert place.slices("out") == 9
    place.run("trace", "--attach", "key", code=2)


def test_session_is_cloned_by_id_name_and_bugreport_score(place: Place) -> None:
    config = place.config('unique_session_name: "mine" bugreport_score: 5')
    process = place.start("-c", config, "--txt", "-o", "out")
    place.wait_for_session()
    place.write(4)
    number = str(place.state().tracing_sessions[0].id)
    place.run("trace", "--clone", number, "-o", "by_number")
    place.run("trace", "--clone-by-name", "mine", "-o", "by_name")
    place.run("trace", "--clone", "-1", "-o", "bugreport")
    assert [place.slices(name) for name in ("by_number", "by_name", "bugreport")] == [4, 4, 4]
    refused = place.run("trace", "--clone", "999", "-o", "none")
    assert "Service error: Failed to clone tracing session 999" in refused.stderr
    assert not (place.folder / "none").exists()
    refused = place.run("trace", "--clone-by-name", "another", "-o", "none")
    assert 'Failed to clone tracing session "another"' in refused.stderr
    place.write(1)
    process.signal(signal.SIGINT)
    assert process.wait() == 0
    assert place.slices("out") == 5


def test_save_all_for_bugreport_saves_each_session(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.daemon.environment["TMPDIR"] = str(place.folder)
    done = place.run("trace", "--save-all-for-bugreport")
    assert done.stderr == "No tracing sessions eligible for bugreport were found.\n"
    done = place.run("trace", "--save-for-bugreport")
    assert "No tracing sessions eligible for bugreport found" in done.stderr
    assert not (place.folder / "systrace.pftrace").exists()
    configs = ["bugreport_score: 5", 'bugreport_score: 7 bugreport_filename: "best.pftrace"']
    for number, text in enumerate(configs, 1):
        place.start("-c", place.config(text), "--txt", "-o", f"out{number}")
        place.wait_for_session(number)
    place.write(2)
    place.run("trace", "--save-all-for-bugreport")
    assert place.slices("best.pftrace") == place.slices("systrace.pftrace") == 2


def test_startup_tracing_before_the_session_is_in_the_trace(place: Place, oracle: Any) -> None:
    config = place.config('data_sources { config { name: "linux.process_stats" } }')
    program = LiveProgram(
        "import stretto; stretto.connect(); app = stretto.Category('app')\n"
        "with app.slice('first lines'): app.instant('within')\n",
        environment={**place.daemon.environment, "STRETTO_STARTUP_CONFIG": config},
    )
    with program:
        process = place.start("-c", config, "--txt", "-o", "out")
        place.wait_for_session()
        program.run("with app.slice('later'): pass")
        process.signal(signal.SIGINT)
        assert process.wait() == 0
        loaded = check_trace(oracle, (place.folder / "out").read_bytes())
        assert {"first lines", "within", "later"} <= names(loaded)


def test_trigger_command_stops_a_session(place: Place) -> None:
    process = place.start("-c", place.config(triggers("STOP_TRACING")), "--txt", "-o", "out")
    place.wait_for_session()
    assert "TTL: 600s" in process.line("stderr")
    place.write(6)
    assert place.run("trigger", "other").stderr == ""
    place.run("trigger", "now")
    assert process.wait() == 0
    assert place.slices("out") == 6


def test_config_that_activates_triggers_records_nothing(place: Place) -> None:
    process = place.start("-c", place.config(triggers("STOP_TRACING")), "--txt", "-o", "out")
    place.wait_for_session()
    place.run("trace", "-c", place.config('activate_triggers: "now"'), "--txt")
    assert process.wait() == 0


def test_clone_trigger_writes_numbered_copies(place: Place) -> None:
    process = place.start("-c", place.config(triggers("CLONE_SNAPSHOT")), "--txt", "-o", "out")
    place.wait_for_session()
    assert "Connected" in process.line("stderr")
    for number in range(2):
        place.write(5)
        place.run("trigger", "now")
        assert f"out.{number} (now)" in process.line("stderr")
    process.signal(signal.SIGINT)
    assert process.wait() == 0
    assert [place.slices(f"out.{number}") for number in range(2)] == [5, 10]


PUMP = """
import stretto
from stretto.base.notes_tracks import notes_track
from stretto.protos.trace import TracePacket, TrackDescriptor, TrackEvent
class Pump(stretto.DataSource):
    name = "com.example.pump"
    def on_start(self):
        uuid = notes_track(self.name)
        self.write(TracePacket(track_descriptor=TrackDescriptor(uuid=uuid, name=self.name)))
        self.write(TracePacket(track_event=TrackEvent(type=3, track_uuid=uuid, name="no water")))
Pump.register()
stretto.connect()
"""


PUMP_CONFIG = 'data_sources { config { name: "com.example.pump" } }'
PUMP_NOTE = "Note: com.example.pump: no water\n"


@pytest.mark.parametrize("writes", ["", "write_into_file: true file_write_period_ms: 100"])
def test_clone_tells_what_the_data_sources_of_the_session_tell(place: Place, writes: str) -> None:
    with LiveProgram(PUMP, environment=place.daemon.environment):
        place.start("-c", place.config(f"{PUMP_CONFIG} {writes}"), "--txt", "-o", "out")
        place.wait_for_session()
        number = str(place.state().tracing_sessions[0].id)
        assert PUMP_NOTE in place.run("trace", "--clone", number, "-o", "copy").stderr


def test_copy_of_a_trigger_tells_what_the_data_sources_tell(place: Place) -> None:
    config = place.config(f"{PUMP_CONFIG} {triggers('CLONE_SNAPSHOT')}")
    with LiveProgram(PUMP, environment=place.daemon.environment):
        process = place.start("-c", config, "--txt", "-o", "out")
        place.wait_for_session()
        assert "Connected" in process.line("stderr")
        place.run("trigger", "now")
        assert "out.0 (now)" in process.line("stderr")
        process.signal(signal.SIGINT)
        assert process.wait() == 0
        assert process.line("stderr") == PUMP_NOTE


def test_query_option_names_programs_and_their_sdk(place: Place) -> None:
    script = place.folder / "shop.py"
    script.write_text("import stretto\nstretto.connect()\ninput()\n")
    program = Process(sys.executable, str(script), env=place.daemon.environment)
    place.opened.append(program)
    wait_until(lambda: len(place.state().producers) == 2, "the program's connection")
    lines = place.run("trace", "--query").stdout.splitlines()
    (line,) = (words for words in map(str.split, lines) if str(program.pid) in words)
    assert line[-3:] == ["shop.py", "stretto", stretto.__version__]


def test_query_option_lists_sessions_producers_and_data_sources(place: Place) -> None:
    place.start("-c", place.config('unique_session_name: "mine"'), "--txt", "-o", "out")
    place.wait_for_session()
    text = place.run("trace", "--query").stdout
    assert "Tracing sessions: 1 (started: 1)" in text
    (producer,) = (line for line in text.splitlines() if str(place.producer.pid) in line)
    assert "worker" in producer
    (source,) = (line for line in text.splitlines() if line.startswith("track_event"))
    assert "python.functions[slow]" in source
    assert text.splitlines()[-1].split()[2] == "STARTED"


def test_background_clone_is_written_into_the_working_folder_of_the_command(place: Place) -> None:
    place.start("-c", place.config(""), "--txt", "-o", "out")
    place.wait_for_session()
    number = str(place.state().tracing_sessions[0].id)
    pid = int(place.run("trace", "-D", "--clone", number, "-o", "copy").stdout)
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), "the end")
    assert (place.folder / "copy").stat().st_size


def test_bugreport_replaces_a_symbolic_link_and_not_its_target(place: Place) -> None:
    place.daemon.environment["TMPDIR"] = str(place.folder)
    target, link = place.folder / "target", place.folder / "systrace.pftrace"
    target.write_text("precious")
    link.symlink_to(target)
    place.start("-c", place.config("bugreport_score: 5"), "--txt", "-o", "out")
    place.wait_for_session()
    place.run("trace", "--save-for-bugreport")
    assert target.read_text() == "precious"
    assert not link.is_symlink()


def test_refused_config_leaves_no_file(place: Place) -> None:
    done = place.run("trace", "-c", place.config("duration_ms: 4000000000"), "--txt", "-o", "out")
    assert "Service error:" in done.stderr
    assert not (place.folder / "out").exists()


def test_no_clobber_option_keeps_an_existing_file(place: Place) -> None:
    (place.folder / "out").write_text("precious")
    arguments = ("trace", "-c", place.config(""), "--txt", "--no-clobber", "-o", "out")
    assert "--no-clobber" in place.run(*arguments, code=1).stderr
    assert (place.folder / "out").read_text() == "precious"


def test_full_disk_is_reported(place: Place) -> None:
    process = place.start("-c", place.config(""), "--txt", "-o", "/dev/full")
    place.wait_for_session()
    process.signal(signal.SIGINT)
    assert process.wait() == 1
    assert process.popen.stderr is not None
    assert b"No space left" in process.popen.stderr.read()


def test_death_of_the_service_is_reported(place: Place) -> None:
    process = place.start("-c", place.config(""), "--txt", "-o", "out")
    place.wait_for_session()
    place.daemon.signal(signal.SIGKILL)
    assert process.wait() == 1
    assert process.popen.stderr is not None
    assert b"disconnected" in process.popen.stderr.read()
    assert not (place.folder / "out").exists()


def test_trace_and_trigger_commands_fail_without_a_service(tmp_path: Path) -> None:
    environment = {**os.environ, "PERFETTO_CONSUMER_SOCK_NAME": str(tmp_path / "none")}
    environment["PERFETTO_PRODUCER_SOCK_NAME"] = str(tmp_path / "none")
    for arguments in (["trace", "--query"], ["trigger", "x"], ["trace", "-t", "1s", "-o", "out"]):
        done = subprocess.run(
            [*STRETTO, *arguments], env=environment, cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 1
        assert "stretto traced" in done.stderr
    assert not (tmp_path / "out").exists()


def test_attributes_of_the_command_line_are_in_the_trace(place: Place) -> None:
    config = place.config("duration_ms: 50")
    place.run("trace", "-c", config, "--txt", "-o", "out", "--add-attribute", "build=7=x")
    trace = Trace.decode((place.folder / "out").read_bytes())
    (written,) = (packet.trace_config for packet in trace.packet if packet.trace_config)
    (attribute,) = written.trace_attributes.attribute
    assert (attribute.key, attribute.string_value) == ("build", "7=x")
    assert written.trace_uuid_msb
