"""An output file of a command gets its name only when it is complete."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from stretto.base.errors import CommandError
from stretto.cli.output_file import open_output


@pytest.fixture
def out(tmp_path: Path) -> Path:
    path = tmp_path / "out"
    path.write_bytes(b"old")
    return path


def write(path: Path | str, data: bytes = b"new") -> None:
    with open_output("verb", str(path), binary=True) as file:
        file.write(data)


def test_output_replaces_the_old_file_only_when_complete(out: Path) -> None:
    with open_output("verb", str(out), binary=True) as file:
        file.write(b"new")
        file.flush()
        assert out.read_bytes() == b"old"
        (part,) = set(out.parent.iterdir()) - {out}
        assert stat.S_IMODE(part.stat().st_mode) == 0o600
        assert part.read_bytes() == b"new"
    assert out.read_bytes() == b"new"
    assert list(out.parent.iterdir()) == [out]
    assert stat.S_IMODE(out.stat().st_mode) == 0o600


def test_failed_output_keeps_the_old_file(out: Path) -> None:
    def fail(error: type[BaseException]) -> None:
        with open_output("verb", str(out), binary=True) as file:
            file.write(b"new")
            raise error

    for error in (ValueError, KeyboardInterrupt):
        with pytest.raises(error):
            fail(error)
    assert out.read_bytes() == b"old"
    assert list(out.parent.iterdir()) == [out]


def test_part_files_of_other_programs_are_not_changed(out: Path) -> None:
    part = out.with_name("out.part")  # Another recording may be writing this file.
    part.write_bytes(b"recording")
    write(out)
    assert part.read_bytes() == b"recording"
    part.unlink()
    part.mkdir()
    write(out, b"newer")
    assert out.read_bytes() == b"newer"
    assert part.is_dir()


def test_two_concurrent_writers_of_one_output_do_not_mix_their_data(out: Path) -> None:
    with open_output("verb", str(out), binary=True) as first:
        first.write(b"a" * 100_000)
        write(out, b"b" * 100_000)
        assert out.read_bytes() == b"b" * 100_000
        first.write(b"a")
    assert out.read_bytes() == b"a" * 100_001
    assert list(out.parent.iterdir()) == [out]


@pytest.mark.parametrize("there", [True, False])
def test_symbolic_link_to_the_output_is_followed(there: bool, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder/target", tmp_path / "link"
    if there:
        target.write_bytes(b"old")
    link.symlink_to("folder/target")
    write(link)
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert list(target.parent.iterdir()) == [target]


def test_output_onto_the_input_trace_is_refused(out: Path) -> None:
    with (
        pytest.raises(CommandError, match="is the input"),
        open_output("verb", str(out), binary=True, source=out.stat()),
    ):
        raise AssertionError
    assert out.read_bytes() == b"old"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("", "No such file"),
        ("none/out", "No such file"),
        ("new/", "No such file"),
        ("folder", "Is a directory"),
        ("loop", "Too many levels"),
        ("out/under", "Not a directory"),
        ("a\0b", "null"),
    ],
)
def test_output_path_that_cannot_be_created_is_an_error(
    path: str, reason: str, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(out.parent)
    Path("folder").mkdir()
    Path("loop").symlink_to("loop")
    before = sorted(Path().iterdir())
    with pytest.raises(CommandError, match=f"verb: can't write .*{reason}") as caught:
        write(path)
    assert caught.value.exit_code == 2
    assert sorted(Path().iterdir()) == before
    assert out.read_bytes() == b"old"


def test_devices_are_written_directly() -> None:
    write("/dev/null")
    with pytest.raises(CommandError, match="verb: can't write '/dev/full': No space left") as error:
        write("/dev/full")
    assert error.value.exit_code == 1


_ENDED = """
import os, signal, sys
from stretto.cli.output_file import open_output

signal.signal(signal.SIGHUP, signal.SIG_DFL)
with open_output("verb", sys.argv[1], binary=True) as file:
    file.write(b"new")
    os.kill(os.getpid(), int(sys.argv[2]))
    print("alive")
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signal_removes_the_partial_output_and_ends_the_process(
    number: signal.Signals, out: Path
) -> None:
    command = [sys.executable, "-c", _ENDED, str(out), str(int(number))]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == -number
    assert not done.stdout
    assert not done.stderr
    assert out.read_bytes() == b"old"
    assert list(out.parent.iterdir()) == [out]


def test_ignored_signals_stay_ignored(out: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with open_output("verb", str(out), binary=True) as file:
            os.kill(os.getpid(), signal.SIGHUP)
            file.write(b"new")
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
    assert out.read_bytes() == b"new"
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
