"""Fork sockets pass connections of a process and its forked children to the recorder."""

from __future__ import annotations

import os
import socket

import pytest

from stretto.base.errors import TransportError
from stretto.base.selector_task_runner import SelectorTaskRunner
from stretto.base.unix_socket import UnixListener, UnixSocket
from stretto.recorder.fork_socket import ForkSocket
from stretto.recorder.host.fork_sockets import ForkSockets

DEADLINE_MS = 10_000


class Recorder:
    """A recorder that accepts fork sockets and keeps the connections passed over them."""

    def __init__(self, folder):
        self.address = str(folder / "fork.sock")
        self.runner = SelectorTaskRunner()
        self.passed: list[UnixSocket] = []
        self.memories: list[int] = []
        self.ends = ForkSockets(
            UnixListener(self.address), self.runner, self.passed.append, self.memories.append
        )

    def wait(self, predicate):
        assert self.runner.run_until(predicate, DEADLINE_MS)

    def fork_socket(self):
        made = ForkSocket(self.address, DEADLINE_MS)
        before = self.ends.count
        self.wait(lambda: self.ends.count > before)
        return made

    def close(self):
        for connection in self.passed:
            connection.close()
        self.ends.close()
        self.runner.close()


@pytest.fixture
def recorder(tmp_path):
    recorder = Recorder(tmp_path)
    yield recorder
    recorder.close()


def test_each_passed_connection_has_the_credentials_of_its_process(recorder):
    end = recorder.fork_socket()
    ours = [end.connect(), end.connect()]
    recorder.wait(lambda: len(recorder.passed) == 2)
    for near, far in zip(ours, recorder.passed, strict=True):
        assert far.peer_credentials().pid == os.getpid()
        near.send(b"hello")
        buffer = memoryview(bytearray(8))
        assert far.recv_into(buffer) == (5, -1)
        near.close()
    end.close()
    recorder.wait(lambda: recorder.ends.count == 0)


def test_fork_socket_stays_open_while_a_child_holds_it(recorder):
    end = recorder.fork_socket()
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(write_end)
        os.read(read_end, 1)
        end.connect()
        os._exit(0)
    os.close(read_end)
    end.close()
    recorder.runner.run_until(lambda: recorder.ends.count == 0, 50)
    assert recorder.ends.count == 1
    os.close(write_end)
    recorder.wait(lambda: recorder.ends.count == 0)
    assert [passed.peer_credentials().pid for passed in recorder.passed] == [pid]
    os.waitpid(pid, 0)


@pytest.mark.parametrize("use_again", [False, True])
def test_fork_socket_closed_by_the_program_is_not_used(recorder, use_again):
    end = recorder.fork_socket()
    number = end._end.fileno()
    os.close(number)
    if use_again:
        read_end, write_end = os.pipe()
        os.dup2(write_end, number)
    assert not end.is_open
    with pytest.raises(TransportError, match="closed"):
        end.connect()
    end.close()
    if use_again:
        os.write(number, b"the program's")
        assert os.read(read_end, 100) == b"the program's"
        for fd in (read_end, write_end, number):
            os.close(fd)
    end._end._socket.detach()


def test_descriptor_that_is_no_socket_is_memory(recorder):
    end = recorder.fork_socket()
    memory = os.memfd_create("totals")
    end.report(0, memory)
    recorder.wait(lambda: recorder.memories)
    assert os.path.sameopenfile(recorder.memories[0], memory)
    for fd in (memory, *recorder.memories):
        os.close(fd)
    end.close()


def test_descriptor_of_another_kind_of_socket_is_closed(recorder):
    end = recorder.fork_socket()
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    end.report(0, far.fileno())
    end.connect().close()
    recorder.wait(lambda: len(recorder.passed) == 1)
    far.close()
    with pytest.raises(ConnectionRefusedError):
        near.send(b"x")
    near.close()
    end.close()


def test_reported_numbers_arrive_though_the_process_has_ended(recorder):
    end = recorder.fork_socket()
    for number in (1, 255, 1):
        end.report(number)
    end.close()
    recorder.wait(lambda: recorder.ends.count == 0)
    assert recorder.ends.matched == {0, 254}
    end.report(2)


def test_connect_fails_when_the_recorder_has_ended(tmp_path):
    recorder = Recorder(tmp_path)
    end = recorder.fork_socket()
    recorder.close()
    with pytest.raises(TransportError):
        end.connect()
    end.close()
    with pytest.raises(TransportError):
        ForkSocket(recorder.address, 0)
