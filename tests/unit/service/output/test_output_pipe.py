"""Writes into pipes and sockets may block, and blocked writes can be interrupted."""

from __future__ import annotations

import os
import socket
import threading

import pytest

from stretto.service.output.output_pipe import OutputPipe
from tests.support.descriptors import expect_new_descriptors, open_descriptors

TIMEOUT_S = 30


@pytest.fixture(params=["pipe", "FIFO", "socket", "another's pipe"])
def ends(request, tmp_path, monkeypatch):
    """Two descriptors: one to read from, one to write to."""
    if request.param == "socket":
        pair = [end.detach() for end in socket.socketpair()]
    elif request.param == "FIFO":
        os.mkfifo(tmp_path / "fifo")
        reader = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
        os.set_blocking(reader, True)
        pair = [reader, os.open(tmp_path / "fifo", os.O_WRONLY)]
    else:
        pair = list(os.pipe())
    if request.param == "another's pipe":

        def refuse(path, flags):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(os, "open", refuse)
    yield pair
    for end in pair:
        os.close(end)


def fill(pipe):
    """Write until `interrupt` ends a blocked write; return the number of bytes written."""
    written = 0
    while done := pipe.write(memoryview(bytes(1 << 20))):
        written += done
    return written


def test_interrupt_ends_a_blocked_write(ends):
    reader, writer = ends
    pipe = OutputPipe(writer)
    written = []
    thread = threading.Thread(target=lambda: written.append(fill(pipe)))
    thread.start()
    os.read(reader, 1)
    pipe.interrupt()
    thread.join(TIMEOUT_S)
    assert written
    assert written[0] > 0
    pipe.close()


def test_all_written_data_reaches_the_reader(ends):
    reader, writer = ends
    pipe = OutputPipe(writer)
    data = os.urandom(1_000_000)
    got = []

    def read():
        while sum(map(len, got)) < len(data):
            got.append(os.read(reader, 10_000))

    thread = threading.Thread(target=read)
    thread.start()
    at = 0
    while at < len(data):
        at += pipe.write(memoryview(data)[at:])
    thread.join(TIMEOUT_S)
    assert b"".join(got) == data
    pipe.close()


def test_output_pipe_leaves_its_descriptor_blocking(ends):
    _, writer = ends
    pipe = OutputPipe(writer)
    assert os.get_blocking(writer)
    pipe.close()


def test_write_without_reader_raises_broken_pipe(tmp_path):
    reader, writer = os.pipe()
    pipe = OutputPipe(writer)
    os.close(reader)
    with pytest.raises(BrokenPipeError):
        pipe.write(memoryview(b"x"))
    pipe.close()
    os.close(writer)


def test_close_leaves_no_descriptor_open(ends):
    before = open_descriptors()
    OutputPipe(ends[1]).close()
    expect_new_descriptors(before, 0)
