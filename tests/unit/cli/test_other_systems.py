"""What `stretto` does on macOS and Windows: it reads traces, and says which verbs need Linux.

The processes run on Linux and imitate another system (`tests/support/other_system.py`).
"""

from __future__ import annotations

import errno
import gzip
import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

import stretto
from stretto.base import portable
from stretto.cli import main as command
from stretto.cli import verbs
from stretto.viewer import peer_user
from tests.support import other_system

pytestmark = pytest.mark.few_versions

LINUX_ONLY = sorted(verbs.VERBS.keys() - verbs.ANYWHERE)
FORMATS = ("txt", "json", "fxt", "chrome.json", "jsonl", "collapsed", "speedscope.json", "pstats")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a trace."""
    path = tmp_path_factory.mktemp("other")
    category = stretto.Category("other")
    with stretto.recording(str(path / "trace.pftrace")), category.slice("größer"):
        category.instant("now")
    return path


def run(folder: Path, *arguments: str) -> str:
    """Run a verb; return its standard output."""
    ended = other_system.run("--", *arguments, cwd=folder)
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stderr
    return ended.stdout


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (verbs, command):
        monkeypatch.setattr(module, "RECORDS", False)


@pytest.mark.usefixtures("elsewhere")
class TestVerbsThatNeedLinux:
    @pytest.mark.parametrize("arguments", [[], ["--help"], ["x", "--no-such-option"]])
    @pytest.mark.parametrize("verb", LINUX_ONLY)
    def test_verb_is_refused_in_one_sentence(
        self, verb: str, arguments: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert command.main([verb, *arguments]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err == (
            f"stretto: {verb} needs Linux; on this system: flows, summary, diff, plot, query, "
            "convert, view, doctor, completion.\n"
        )

    def test_help_lists_what_works_and_names_what_needs_linux(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert command.main(["--help"]) == 0
        out = capsys.readouterr().out
        listed = {verb for verb in verbs.VERBS if f"  stretto {verb} " in out}
        assert listed == verbs.ANYWHERE
        assert (
            f"Recording needs Linux, as do the other verbs: {', '.join(verbs.elsewhere())}." in out
        )

    def test_completion_has_only_the_verbs_that_work(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert command.main(["completion", "bash"]) == 0
        out = capsys.readouterr().out
        assert "query) words=" in out
        assert "record) words=" not in out


def test_verb_that_needs_linux_is_refused_by_the_command(folder: Path) -> None:
    ended = other_system.run("--", "record", "app.py", cwd=folder)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("stretto: record needs Linux; on this system: flows, ")


@pytest.mark.parametrize("verb", sorted(verbs.ANYWHERE - {"doctor"}))
def test_verb_that_reads_traces_has_its_help(verb: str, folder: Path) -> None:
    assert f"usage: stretto {verb}" in run(folder, verb, "--help")


def test_doctor_says_that_recording_needs_linux(folder: Path) -> None:
    ended = other_system.run("--", "doctor", cwd=folder)
    assert (ended.returncode, ended.stderr) == (1, "")
    assert ended.stdout.split()[:3] == ["missing", "native", "part"]


@pytest.mark.parametrize("suffix", FORMATS)
def test_trace_is_converted(suffix: str, folder: Path) -> None:
    run(folder, "convert", "-q", "trace.pftrace", f"converted.{suffix}")
    data = (folder / f"converted.{suffix}").read_bytes()
    assert any(name in data for name in ("größer".encode(), b"gr\\u00f6", b"gr\\303\\266"))


def test_conversion_to_text_and_back_keeps_every_packet(folder: Path) -> None:
    run(folder, "convert", "-q", "trace.pftrace", "text.txt")
    run(folder, "convert", "-q", "text.txt", "back.pftrace")
    text = run(folder, "convert", "-q", "back.pftrace", "-", "--to", "text")
    assert text == (folder / "text.txt").read_text(encoding="utf-8")


def test_questions_to_a_trace_are_answered(folder: Path) -> None:
    (folder / "trace.gz").write_bytes(gzip.compress((folder / "trace.pftrace").read_bytes()))
    sql = "select name from slice where dur > 0"
    rows = run(folder, "query", "--engine", "sqlite", "--format", "json", "trace.gz", sql)
    assert json.loads(rows) == [{"name": "größer"}]
    assert "größer" in run(folder, "summary", "trace.pftrace")
    assert "No call" in run(folder, "flows", "trace.pftrace")
    run(folder, "diff", "trace.pftrace", "trace.pftrace")


@pytest.fixture
def serving(folder: Path) -> Iterator[str]:
    """Run `stretto view`; give the address of the trace."""
    command = [sys.executable, "-P", other_system.__file__, "--"]
    options = ["--no-browser", "--keep", "--port", "0"]
    with subprocess.Popen(
        [*command, "view", *options, "trace.pftrace"], cwd=folder, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        yield process.stdout.readline().partition("url=")[2].partition("&")[0].strip()
        process.terminate()


def test_trace_is_served_to_the_ui(serving: str, folder: Path) -> None:
    with urllib.request.urlopen(serving, timeout=60) as answer:
        assert answer.read() == (folder / "trace.pftrace").read_bytes()


def test_user_of_a_page_is_not_checked_where_the_system_does_not_tell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(peer_user, "TELLS_USERS", False)
    assert peer_user.ANYONE in peer_user.allowed_users()
    with pytest.raises(peer_user.ConfigError, match="users need Linux"):
        peer_user.allowed_users(("root",))


PROGRAM = """
import importlib, pkgutil, sys
import stretto, stretto.flows

category = stretto.Category("library", description="a library")
with stretto.recording("never.pftrace"), category.slice("slice", number=1):
    category.instant("instant")
    category.counter("counter", 1)
stretto.connect()
stretto.activate_triggers(["trigger"])
stretto.flows.install()
stretto.disconnect()

@stretto.traced
def traced():
    return 1

assert traced() == 1 and not stretto.available()

def modules(name):
    package = importlib.import_module(name)
    for found in pkgutil.iter_modules(package.__path__, f"{name}."):
        yield from modules(found.name) if found.ispkg else [found.name]

for name in ("stretto.analysis", "stretto.protos"):
    for module in modules(name):
        importlib.import_module(module)
assert "stretto._native" not in sys.modules
"""


def test_instrumented_program_runs_and_modules_that_read_traces_are_imported(
    folder: Path,
) -> None:
    (folder / "program.py").write_text(PROGRAM)
    ended = other_system.run("program.py", cwd=folder)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert not (folder / "never.pftrace").exists()


def test_reader_of_a_pipe_that_has_gone_is_known_on_windows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    invalid = OSError(errno.EINVAL, "Invalid argument")
    assert not portable.is_broken_pipe(invalid)
    monkeypatch.setattr(portable.os, "name", "nt")
    assert portable.is_broken_pipe(invalid)
    assert not portable.is_broken_pipe(OSError(errno.EINVAL, "Invalid argument", "a file"))
