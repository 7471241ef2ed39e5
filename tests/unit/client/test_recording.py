"""recording() writes its file safely, even if the block or the session fails."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

import stretto
from stretto.base.errors import ConfigError, SessionError, TransportError
from stretto.client.recording import parse_size
from stretto.service.limits import MAX_SESSIONS_PER_UID
from tests.support.descriptors import expect_new_descriptors, open_descriptors
from tests.support.polling import wait_until
from tests.support.recorded_events import events_of
from tests.support.tasks import expect_new_tasks, tasks

CATEGORY = stretto.Category("test.recording")


def names(path):
    return [event.name for event in events_of(path.read_bytes())]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "trace.pftrace"


@pytest.mark.parametrize("stream", [False, True])
def test_only_events_of_the_block_are_recorded(path, stream):
    CATEGORY.instant("before")
    with stretto.recording(path, stream=stream) as session:
        assert isinstance(session, stretto.TracingSession)
        CATEGORY.instant("inside")
    CATEGORY.instant("after")
    assert names(path) == ["inside"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt, SystemExit])
def test_file_is_written_after_an_exception_in_the_block(path, stream, error):
    def fails():
        with stretto.recording(str(path), stream=stream):
            CATEGORY.instant("inside")
            raise error

    with pytest.raises(error):
        fails()
    assert names(path) == ["inside"]


def test_new_file_is_readable_by_its_owner_only(path):
    before = os.umask(0)
    try:
        with stretto.recording(path):
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_existing_file_is_truncated(path):
    path.write_bytes(b"x" * 10_000_000)
    with stretto.recording(path):
        CATEGORY.instant("inside")
    assert names(path) == ["inside"]


@pytest.mark.parametrize("stream", [False, True])
def test_refused_session_does_not_change_the_file(path, tmp_path, stream):
    path.write_bytes(b"precious")
    with ExitStack() as others:
        for number in range(MAX_SESSIONS_PER_UID):
            others.enter_context(stretto.recording(tmp_path / f"other {number}"))
        with pytest.raises(SessionError):
            stretto.recording(path, stream=stream).__enter__()
        assert path.read_bytes() == b"precious"


@pytest.mark.parametrize("before", [b"", b"x" * 10_000_000])
def test_data_streamed_before_the_file_is_truncated_is_kept(path, before, monkeypatch):
    """The service writes its first packets before `recording` truncates the file."""
    path.write_bytes(before)
    start = stretto.TracingSession.start

    def start_slowly(session):
        start(session)
        CATEGORY.instant("early", text="x" * 4000)
        wait_until(lambda: b"early" in path.read_bytes(), "the first write")

    monkeypatch.setattr(stretto.TracingSession, "start", start_slowly)
    with stretto.recording(path, stream=True):
        assert path.stat().st_size < 1_000_000
        CATEGORY.instant("late")
    assert names(path) == ["early", "late"]


@pytest.mark.parametrize("stream", [False, True])
def test_pipe_is_not_truncated(tmp_path, stream):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with stretto.recording(pipe, stream=stream):
            CATEGORY.instant("inside")
        os.set_blocking(reader, True)
        assert [event.name for event in events_of(os.read(reader, 1 << 16))] == ["inside"]
    finally:
        os.close(reader)


def test_symbolic_link_as_output_path_is_refused(path, tmp_path):
    target = tmp_path / "precious"
    target.write_text("keep")
    path.symlink_to(target)
    with pytest.raises(TransportError, match=r"Cannot write the trace to .*Choose another path"):
        stretto.recording(path).__enter__()
    assert target.read_text() == "keep"
    assert not CATEGORY.enabled


@pytest.mark.parametrize("bad", ["missing/folder/x", ".", "\0"])
def test_unwritable_path_is_an_error(tmp_path, bad):
    with pytest.raises((TransportError, ValueError)):
        stretto.recording(tmp_path / bad).__enter__()
    assert not CATEGORY.enabled


@pytest.mark.parametrize("size", ["", "64", "x", "1tb", "-5mb", "1.5gb", "5g", 0, -1, 2**40])
def test_invalid_buffer_sizes_are_refused(path, size):
    with pytest.raises(ConfigError, match="give a size"):
        stretto.recording(path, buffer=size)
    assert not path.exists()


def test_json_file_is_refused_with_the_command_that_makes_json(tmp_path):
    path = tmp_path / "shop.json"
    with pytest.raises(ConfigError, match=r"`stretto convert .*shop\.pftrace .*shop\.json`"):
        stretto.recording(path)
    assert not path.exists()


def test_buffer_sizes_are_parsed():
    sizes = [parse_size(text) for text in ("64mb", " 4K ", "1g", "8192", 5000)]
    assert sizes == [64 << 20, 4096, 1 << 30, 8192, 5000]


def test_nested_recordings_both_record(path, tmp_path):
    inner = tmp_path / "inner"
    with stretto.recording(path):
        CATEGORY.instant("a")
        with stretto.recording(inner), CATEGORY.slice("b"):
            pass
        CATEGORY.instant("c")
    assert names(path) == ["a", "b", "", "c"]
    assert names(inner) == ["b", ""]


def test_recording_object_can_be_used_repeatedly(path):
    again = stretto.recording(path)
    for number in range(3):
        with again:
            CATEGORY.instant(f"run {number}")
        assert names(path) == [f"run {number}"]


def test_refused_session_leaves_no_descriptor_open(path, monkeypatch):
    before = open_descriptors()
    with stretto.recording(path):
        pass
    settled = open_descriptors()
    monkeypatch.setattr(
        stretto.TracingSession, "start", lambda self: (_ for _ in ()).throw(KeyError)
    )
    for _ in range(5):
        with pytest.raises(KeyError):
            stretto.recording(path).__enter__()
    monkeypatch.undo()
    expect_new_descriptors(settled, 0)
    assert len(settled - before) <= 4
    for _ in range(3):
        with stretto.recording(path):
            CATEGORY.instant("x")
    assert names(path) == ["x"]


def test_repeated_recordings_leak_no_descriptors_or_threads(path):
    with stretto.recording(path):
        pass
    descriptors, before = open_descriptors(), tasks()
    for _ in range(30):
        with stretto.recording(path):
            CATEGORY.instant("x")
    expect_new_descriptors(descriptors, 0)
    expect_new_tasks(before, 0)


MODULES = """
import sys
before = set(sys.modules)
import stretto
loaded = set(sys.modules) - before
print(sorted(name for name in loaded if not name.startswith("stretto")))
print(sorted(name for name in loaded if name.startswith("stretto.")))
with stretto.recording(sys.argv[1]):
    with stretto.slice("x", n=[1]):
        pass
heavy = "asyncio dataclasses inspect argparse sqlite3 google.protobuf perfetto duckdb logging"
print(sorted(set(heavy.split()) & set(sys.modules)))
loaded = set(sys.modules) - before
slow = "collections dataclasses enum functools importlib inspect re signal typing threading"
print(sorted(set(slow.split()) & loaded))
"""


def test_import_and_recording_load_no_modules_that_are_slow_to_import(path):
    out = subprocess.run(
        [sys.executable, "-c", MODULES, str(path)], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    ours = eval(out[1])
    assert "stretto._native" in ours
    for lazy in ("service", "protos", "backends", "profilers", "ipc", "ports", "cli"):
        assert not any(name.split(".")[1] == lazy for name in ours)
    assert out[2:] == ["[]", "[]"]


LIMITED = """
import resource, sys
import stretto

category = stretto.Category("test")
recording = stretto.recording(sys.argv[1], buffer="8mb", stream="stream" in sys.argv)
resource.setrlimit(resource.RLIMIT_FSIZE, (256 << 10, 256 << 10))
with recording:
    for number in range(100_000):
        category.instant("event", number=number)
print("the program goes on:", type(recording.error).__name__)
"""


class TestErrorsDuringRecording:
    """Errors of the recording are reported, and never raised into the program."""

    @pytest.mark.parametrize("mode", ["ring", "stream"])
    def test_file_size_limit_is_reported_and_written_packets_are_kept(self, path, mode):
        run = subprocess.run(
            [sys.executable, "-W", "error", "-c", LIMITED, str(path), mode],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (run.returncode, run.stdout.partition(":")[0]) == (0, "the program goes on")
        assert "NoneType" not in run.stdout
        assert run.stderr.count("File too large") >= 1
        assert "event" in names(path), "what had been written can be read"

    def test_exception_of_the_block_is_raised_instead_of_an_error_of_the_recording(
        self, path, monkeypatch
    ):
        reported = []
        monkeypatch.setattr(sys, "unraisablehook", reported.append)
        recording = stretto.recording(path)
        monkeypatch.setattr(stretto.TracingSession, "stop", cannot_stop)
        with pytest.raises(KeyError), recording:
            raise KeyError
        assert isinstance(recording.error, SessionError)
        assert [each.exc_value for each in reported] == [recording.error]

    def test_recording_without_failure_has_no_error(self, path):
        recording = stretto.recording(path)
        with recording:
            pass
        assert recording.error is None


def cannot_stop(_session):
    raise SessionError("on purpose")


def test_documented_example_prints_the_error_of_the_recording(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[3] / "docs" / "events.md").read_text("utf-8")
    (example,) = re.findall(r"```python\n(recording = .*?)```", page, re.DOTALL)
    reported: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", reported.append)
    exec(example.replace("trace.pftrace", "/dev/full"), {"stretto": stretto, "work": lambda: None})
    assert capsys.readouterr().out.startswith("the trace is incomplete: ")
    assert len(reported) == 1
