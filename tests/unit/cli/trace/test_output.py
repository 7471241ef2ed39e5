"""The output of `stretto trace`: files, FIFOs, and write errors."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from stretto.base.errors import CommandError
from stretto.cli.trace.output import TraceOutput

PACKET = b"\x0a\x02\x08\x01"
MORE_THAN_A_PIPE_HOLDS = PACKET * 100_000


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return path


def opened_with_reader(path: Path) -> tuple[TraceOutput, int]:
    """Open the FIFO for output and for reading; return the output and the reader's descriptor."""
    readers: list[int] = []
    thread = threading.Thread(target=lambda: readers.append(os.open(path, os.O_RDONLY)))
    thread.start()
    output = TraceOutput(str(path))
    thread.join()
    return output, readers[0]


def test_write_to_fifo_whose_reader_has_ended_fails_instead_of_waiting(fifo: Path) -> None:
    output, reader = opened_with_reader(fifo)
    os.close(reader)
    output.write(MORE_THAN_A_PIPE_HOLDS)
    assert "Broken pipe" in output.error
    output.close()


def test_reader_of_fifo_gets_the_trace_and_end_of_file(fifo: Path) -> None:
    output, reader = opened_with_reader(fifo)
    output.write(PACKET)
    output.close()
    assert os.read(reader, 100) == PACKET
    assert os.read(reader, 100) == b""
    os.close(reader)


def test_existing_fifo_is_refused_with_the_option_no_clobber(fifo: Path) -> None:
    with pytest.raises(CommandError, match="leave --no-clobber out"):
        TraceOutput(str(fifo), no_clobber=True)


def test_existing_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"older, and longer")
    output = TraceOutput(str(path))
    output.write(PACKET)
    output.close()
    assert path.read_bytes() == PACKET


def test_refusal_of_a_json_name_contains_the_command_that_makes_json(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"`stretto convert \S+/x.pftrace \S+/x.json` makes"):
        TraceOutput(str(tmp_path / "x.json"))
    assert list(tmp_path.iterdir()) == []
