"""Lines to a recorder, and what is dialled over them."""

from __future__ import annotations

import os

import pytest

from stretto.base.errors import TransportError
from stretto.base.selector_task_runner import SelectorTaskRunner
from stretto.base.unix_socket import UnixSocket
from stretto.recorder.fork_socket import Lifeline
from stretto.recorder.host.fork_sockets import Lifelines

DEADLINE_MS = 10_000


class Recorder:
    """The other end."""

    def __init__(self, folder):
        self.address = str(folder / "line")
        self.runner = SelectorTaskRunner()
        self.dialled: list[UnixSocket] = []
        self.lines = Lifelines(self.address, self.runner, self.dialled.append)

    def wait(self, predicate):
        assert self.runner.run_until(predicate, DEADLINE_MS)

    def line(self):
        line = Lifeline(self.address, DEADLINE_MS)
        before = self.lines.count
        self.wait(lambda: self.lines.count > before)
        return line

    def close(self):
        for end in self.dialled:
            end.close()
        self.lines.close()
        self.runner.close()


@pytest.fixture
def recorder(tmp_path):
    recorder = Recorder(tmp_path)
    yield recorder
    recorder.close()


def test_each_dial_is_a_connection_of_the_caller(recorder):
    line = recorder.line()
    ours = [line.dial(), line.dial()]
    recorder.wait(lambda: len(recorder.dialled) == 2)
    for near, far in zip(ours, recorder.dialled, strict=True):
        assert far.peer_credentials().pid == os.getpid()
        near.send(b"hello")
        buffer = memoryview(bytearray(8))
        assert far.recv_into(buffer) == (5, -1)
        near.close()
    line.close()
    recorder.wait(lambda: recorder.lines.count == 0)


def test_a_child_holds_the_line(recorder):
    line = recorder.line()
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(write_end)
        os.read(read_end, 1)
        line.dial()
        os._exit(0)
    os.close(read_end)
    line.close()
    recorder.runner.run_until(lambda: recorder.lines.count == 0, 50)
    assert recorder.lines.count == 1
    os.close(write_end)
    recorder.wait(lambda: recorder.lines.count == 0)
    assert [end.peer_credentials().pid for end in recorder.dialled] == [pid]
    os.waitpid(pid, 0)


@pytest.mark.parametrize("use_again", [False, True])
def test_a_line_that_the_program_closed(recorder, use_again):
    line = recorder.line()
    number = line._end.fileno()
    os.close(number)
    if use_again:
        read_end, write_end = os.pipe()
        os.dup2(write_end, number)
    assert not line.is_open
    with pytest.raises(TransportError, match="closed"):
        line.dial()
    line.close()
    if use_again:
        os.write(number, b"the program's")
        assert os.read(read_end, 100) == b"the program's"
        for fd in (read_end, write_end, number):
            os.close(fd)
    line._end._socket.detach()


def test_what_is_no_connection_is_refused(recorder):
    line = recorder.line()
    read_end, write_end = os.pipe()
    line._end.send(b"\0", read_end)
    line._end.send(b"no descriptor")
    line.dial().close()
    recorder.wait(lambda: len(recorder.dialled) == 1)
    os.close(read_end)
    with pytest.raises(BrokenPipeError):
        os.write(write_end, b"x")
    os.close(write_end)
    line.close()


def test_without_a_recorder(tmp_path):
    recorder = Recorder(tmp_path)
    line = recorder.line()
    recorder.close()
    with pytest.raises(TransportError):
        line.dial()
    line.close()
    with pytest.raises(TransportError):
        Lifeline(recorder.address, 0)
