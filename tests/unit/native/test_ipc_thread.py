from __future__ import annotations

import gc
import socket
import subprocess
import sys
import threading
import warnings
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from stretto import _native


class Connection:
    """A client's connection: it owns a socket and the socket's IPC thread."""

    def __init__(self) -> None:
        self.ours, self.theirs = socket.socketpair()
        self.ours.setblocking(False)
        self.queue = _native.SendQueue(self.ours.fileno())
        self.thread = _native.IpcThread(self.ours.fileno(), self.queue, self.on_readable)
        self.received = b""
        self.thread_ids: set[int] = set()
        self.changed = threading.Condition()

    def on_readable(self) -> Any:
        data = self.ours.recv(1000)
        with self.changed:
            self.received += data
            self.thread_ids.add(threading.get_ident())
            self.changed.notify_all()
        return self.on_data(data)

    def on_data(self, data: bytes) -> Any:
        return bool(data)

    def wait_for(self, data: bytes) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: data in self.received, timeout=30)

    def is_running(self) -> bool:
        return self.thread.running

    def close(self) -> None:
        self.thread.stop()
        self.ours.close()
        self.theirs.close()


@pytest.fixture
def connection() -> Iterator[Connection]:
    connection = Connection()
    yield connection
    connection.close()


class TestStartAndStopOfTheThread:
    def test_thread_can_be_started_and_stopped_repeatedly(self, connection: Connection) -> None:
        assert not connection.is_running()
        for word in (b"one", b"two"):
            connection.thread.start()
            connection.thread.start()
            assert connection.is_running()
            connection.theirs.send(word)
            connection.wait_for(word)
            connection.thread.stop()
            connection.thread.stop()
            assert not connection.is_running()
        assert threading.get_ident() not in connection.thread_ids

    def test_stop_from_the_callback_is_an_error(self, connection: Connection) -> None:
        errors: list[str] = []

        def stop(data: bytes) -> None:
            try:
                connection.thread.stop()
            except RuntimeError as error:
                errors.append(str(error))
                connection.theirs.send(b"caught")

        connection.on_data = stop  # type: ignore[method-assign]
        connection.thread.start()
        connection.theirs.send(b"x")
        connection.wait_for(b"caught")
        connection.thread.stop()
        assert "return False there" in errors[0]

    def test_thread_is_stopped_when_its_owner_is_collected(self) -> None:
        connection = Connection()
        connection.thread.start()
        sockets = connection.ours, connection.theirs
        gone = weakref.ref(connection)
        del connection
        gc.collect()
        assert gone() is None
        for one in sockets:
            one.close()

    def test_callback_can_delete_the_last_reference_to_the_thread(self) -> None:
        connection = Connection()
        done = threading.Event()

        def drop(data: bytes) -> bool:
            del connection.thread
            done.set()
            return True

        connection.on_data = drop  # type: ignore[method-assign]
        connection.thread.start()
        connection.theirs.send(b"x")
        assert done.wait(30)
        connection.ours.close()
        connection.theirs.close()

    def test_interpreter_exits_while_the_thread_runs(self) -> None:
        program = """
import os, socket
from stretto import _native
ours, theirs = (end.detach() for end in socket.socketpair())
thread = _native.IpcThread(ours, _native.SendQueue(ours), lambda: None)
thread.start()
os.write(theirs, b"x")  # The callback runs repeatedly, because it never reads this byte.
"""
        for _ in range(5):
            result = subprocess.run(
                [sys.executable, "-W", "error", "-c", program],
                capture_output=True,
                timeout=60,
                check=False,
            )
            assert (result.returncode, result.stderr) == (0, b"")

    def test_fork_after_stop_emits_no_warning(self, connection: Connection) -> None:
        program = """
import os, socket
from stretto import _native
ours, theirs = (end.detach() for end in socket.socketpair())
thread = _native.IpcThread(ours, _native.SendQueue(ours), lambda: None)
thread.start()
thread.stop()
if os.fork() == 0:
    assert not thread.running
    os._exit(0)
assert os.wait()[1] == 0
thread.start()
thread.stop()
"""
        result = subprocess.run(
            [sys.executable, "-W", "error", "-c", program],
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert (result.returncode, result.stderr) == (0, b"")

    def test_child_forked_while_the_thread_runs_has_no_thread(self, connection: Connection) -> None:
        import os

        connection.thread.start()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            good = not connection.is_running()
            connection.thread.stop()
            del connection.thread
            os._exit(0 if good else 1)
        assert os.waitpid(pid, 0)[1] == 0
        connection.theirs.send(b"here")
        connection.wait_for(b"here")


class TestReadCallback:
    def test_callback_that_returns_false_stops_reading(self, connection: Connection) -> None:
        connection.on_data = lambda data: False  # type: ignore[method-assign]
        connection.thread.start()
        connection.theirs.send(b"one")
        connection.wait_for(b"one")
        connection.theirs.send(b"two")
        connection.thread.stop()
        assert connection.received == b"one"

    @pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
    def test_exception_in_the_callback_stops_reading(
        self, connection: Connection, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seen = threading.Event()
        errors: list[str] = []

        def hook(unraisable: sys.UnraisableHookArgs) -> None:
            errors.append(str(unraisable.exc_value))
            seen.set()

        def fail(data: bytes) -> None:
            raise ValueError("no good")

        monkeypatch.setattr(sys, "unraisablehook", hook)
        connection.on_data = fail  # type: ignore[method-assign]
        connection.thread.start()
        connection.theirs.send(b"one")
        assert seen.wait(30)
        connection.theirs.send(b"two")
        connection.thread.stop()
        assert errors == ["no good"]
        assert connection.received == b"one"

    def test_read_callback_runs_when_the_peer_closes(self, connection: Connection) -> None:
        connection.thread.start()
        connection.theirs.close()
        with connection.changed:
            assert connection.changed.wait_for(lambda: connection.thread_ids, timeout=30)
        connection.thread.stop()
        assert connection.received == b""


class TestSendingByTheThread:
    def test_queue_is_sent_while_python_code_is_blocked(self, connection: Connection) -> None:
        connection.thread.start()
        size = 0
        while connection.queue.push(bytes(60000)):
            size += 60000
        assert size > 1 << 20
        connection.theirs.settimeout(30)
        while size:
            # `recv` times out if the IPC thread doesn't send.
            size -= len(connection.theirs.recv(1 << 16))
        assert connection.queue.pending == 0


class TestArgumentsOfIpcThread:
    def test_invalid_arguments_are_refused(self, connection: Connection) -> None:
        with pytest.raises(TypeError, match="on_readable must be callable"):
            _native.IpcThread(0, connection.queue, 3)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="expected a SendQueue"):
            _native.IpcThread(0, 3, print)  # type: ignore[arg-type]
