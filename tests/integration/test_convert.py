"""`stretto convert` as a process: exit status and files after signals and errors."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import stretto
from stretto.analysis.trace_format import SNIFFED_BYTES
from stretto.cli.convert.command import DESCRIPTION
from stretto.cli.main import BROKEN_PIPE_EXIT_CODE
from tests.support.polling import wait_until


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_terminated_conversion_leaves_no_file(folder: Path) -> None:
    os.mkfifo("fifo")
    (folder / "out.json").write_bytes(b"old")
    before = sorted(folder.iterdir())
    command = [sys.executable, "-m", "stretto", "convert", "fifo", "out.json", "--from", "pftrace"]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        try:
            with open("fifo", "wb", buffering=0) as fifo:
                fifo.write(b"\n" + bytes(SNIFFED_BYTES - 1))
                wait_until(lambda: list(folder.glob(".stretto-*")), "the unfinished file")
                process.terminate()
                assert process.wait(20) == -signal.SIGTERM
        finally:
            process.kill()
        assert process.stderr is not None
        assert not process.stderr.read()
    assert sorted(folder.iterdir()) == before
    assert (folder / "out.json").read_bytes() == b"old"


def test_closed_output_pipe_ends_the_conversion_as_sigpipe_does(folder: Path) -> None:
    (folder / "in.pftrace").write_bytes(b"\x0a\x02\x08\x05")
    read_end, write_end = os.pipe()
    os.close(read_end)
    command = [sys.executable, "-m", "stretto", "convert", "in.pftrace", "-", "--to", "json"]
    try:
        done = subprocess.run(command, stdout=write_end, stderr=subprocess.PIPE, check=False)
    finally:
        os.close(write_end)
    assert done.returncode == BROKEN_PIPE_EXIT_CODE
    assert not done.stderr


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
@pytest.mark.skipif(not stretto.available(), reason="nothing is recorded here")
def test_jq_example_prints_the_names_of_events(folder: Path) -> None:
    with stretto.recording("in.pftrace"):
        stretto.instant("one")
        with stretto.slice("two"):
            pass
    command = [sys.executable, "-m", "stretto", "convert", "in.pftrace", "-", "--to", "json"]
    converted = subprocess.run(command, capture_output=True, check=True).stdout
    example = re.search(r"\| jq '(.*)'", DESCRIPTION)
    assert example is not None
    shown = subprocess.run(["jq", example[1]], input=converted, capture_output=True, check=True)
    assert shown.stdout.split() == [b'"one"', b'"two"']
