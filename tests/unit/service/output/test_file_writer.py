"""FileWriter: its queue, errors, blocked writes, and how its thread pauses for a fork."""

from __future__ import annotations

import errno
import os
import threading

import pytest

from stretto.base.errors import SessionError
from stretto.service.limits import FILE_QUEUE_BYTES
from stretto.service.output import file_threads
from stretto.service.output.file_threads import FileThreads
from stretto.service.output.file_writer import FileWriter
from stretto.service.output.output_file import OutputFile
from stretto.service.output.packet_encoder import framed
from tests.support.descriptors import expect_new_descriptors, open_descriptors
from tests.support.file_threads import HeldFileThreads, InlineFileThreads
from tests.support.polling import wait_until

PACKET = framed(b"x" * 100)
TIMEOUT_S = 30


@pytest.fixture
def path(tmp_path):
    return tmp_path / "trace"


def open_file(path):
    return OutputFile(os.open(path, os.O_RDWR | os.O_CREAT), interruptible=True)


class Progress:
    """A progress callback that counts its calls."""

    def __init__(self):
        self.call_count = 0

    def __call__(self):
        self.call_count += 1


class TestWriterQueue:
    def test_write_and_close_only_add_work_to_the_queue_of_the_thread(self, path):
        threads = HeldFileThreads()
        writer = FileWriter(open_file(path), threads, Progress())
        writer.write(PACKET)
        writer.sync()
        writer.close()
        assert path.read_bytes() == b""
        assert writer.busy
        assert not writer.closed
        threads.release()
        assert path.read_bytes() == PACKET
        assert writer.closed
        assert not writer.busy

    def test_writer_has_room_until_its_queue_is_full(self, path):
        threads = HeldFileThreads()
        progress = Progress()
        writer = FileWriter(open_file(path), threads, progress)
        while writer.has_room:
            writer.write(PACKET * 10_000)
        assert writer.pending_bytes >= FILE_QUEUE_BYTES
        assert writer.accepted_bytes == writer.pending_bytes
        threads.release()
        assert writer.has_room
        assert writer.pending_bytes == 0
        assert writer.progress == writer.accepted_bytes
        assert progress.call_count

    def test_writer_of_a_broken_file_is_not_closed_before_it_has_the_error(self, path, monkeypatch):
        seen = []

        def close(file):
            original(file)
            seen.append((writer.closed, writer.error is not None))

        original = OutputFile.close
        monkeypatch.setattr(OutputFile, "close", close)
        file = OutputFile(os.open("/dev/full", os.O_RDWR))
        writer = FileWriter(file, InlineFileThreads(), Progress())
        writer.write(PACKET)
        assert seen[0] == (False, False)
        assert writer.closed
        assert "No space left" in str(writer.error)

    def test_several_queued_writes_start_one_thread(self, path):
        threads = HeldFileThreads()
        writer = FileWriter(open_file(path), threads, Progress())
        for _ in range(3):
            writer.write(PACKET)
        assert len(threads.held) == 1

    def test_data_after_an_error_is_dropped_and_counted(self):
        threads = HeldFileThreads()
        progress = Progress()
        file = OutputFile(os.open("/dev/full", os.O_WRONLY))
        writer = FileWriter(file, threads, progress)
        writer.write(PACKET)
        writer.write(PACKET)
        threads.release()
        assert f"{2 * len(PACKET)} that waited to be written are lost" in str(writer.error)
        assert "No space left" in str(writer.error)
        assert writer.closed
        assert progress.call_count
        writer.write(PACKET)
        assert not threads.held

    def test_failure_to_start_a_thread_is_reported_as_an_error_of_the_writer(self, path):
        class None_(InlineFileThreads):
            def run(self, work, interrupt):
                raise RuntimeError("can't start new thread")

        progress = Progress()
        writer = FileWriter(open_file(path), None_(), progress)
        writer.write(PACKET)
        assert "can't start new thread" in str(writer.error)
        assert progress.call_count

    def test_exception_while_the_first_packets_are_made_is_reported(self, path):
        def pieces():
            yield PACKET
            raise OSError(errno.EIO, "Input/output error")

        writer = FileWriter(open_file(path), InlineFileThreads(), Progress())
        writer.write_all(pieces())
        assert "Input/output error" in str(writer.error)
        assert path.read_bytes() == PACKET

    def test_copy_contains_queued_data(self, path, tmp_path):
        threads = HeldFileThreads()
        writer = FileWriter(open_file(path), threads, Progress())
        writer.write(PACKET)
        threads.release()
        second = framed(b"second")
        writer.write(second)
        copy = FileWriter(open_file(tmp_path / "copy"), InlineFileThreads(), Progress())
        copy.write_all(writer.copy())
        copy.write(framed(b"third"))
        assert (tmp_path / "copy").read_bytes() == PACKET + second + framed(b"third")


class TestAbandonedWriter:
    def test_error_of_an_abandoned_writer_contains_the_number_of_lost_bytes(self):
        reader, end = os.pipe()
        progress = Progress()
        writer = FileWriter(OutputFile(end, interruptible=True), HeldFileThreads(), progress)
        writer.write(PACKET)
        writer.abandon("its reader doesn't read", 5)
        assert f"0 bytes are in it, {len(PACKET) + 5} that" in str(writer.error)
        assert writer.closed
        os.close(reader)

    def test_abandoning_ends_a_thread_that_waits_for_a_pipe_reader(self):
        reader, end = os.pipe()
        threads = FileThreads()
        writer = FileWriter(OutputFile(end, interruptible=True), threads, Progress())
        writer.write(framed(bytes(1 << 20)))
        wait_until(lambda: writer.progress)
        writer.abandon("its reader doesn't read")
        wait_until(lambda: not threads.count)
        while os.read(reader, 1 << 20):  # The data ends when the writer closes the pipe.
            pass
        os.close(reader)

    def test_thread_of_an_abandoned_writer_ends_when_its_blocked_write_returns(
        self, path, monkeypatch
    ):
        hangs = threading.Event()
        entered = threading.Event()
        real = os.write

        def write(fd, data):
            entered.set()
            assert hangs.wait(TIMEOUT_S)
            return real(fd, data)

        monkeypatch.setattr(os, "write", write)
        threads = FileThreads()
        progress = Progress()
        before = open_descriptors()
        writer = FileWriter(open_file(path), threads, progress)
        writer.write(PACKET)
        assert entered.wait(TIMEOUT_S)
        writer.abandon("the disk takes nothing")
        assert writer.closed
        hangs.set()
        wait_until(lambda: not threads.count)
        assert not progress.call_count  # An abandoned writer reports no progress.
        expect_new_descriptors(before, 0)

    def test_new_files_are_refused_while_too_many_threads_are_blocked(self, path, monkeypatch):
        monkeypatch.setattr(file_threads, "MAX_THREADS", 1)
        reader, end = os.pipe()
        threads = FileThreads()
        threads.check()
        writer = FileWriter(OutputFile(end, interruptible=True), threads, Progress())
        writer.write(framed(bytes(1 << 20)))
        with pytest.raises(SessionError, match="take nothing"):
            threads.check()
        writer.abandon("its reader doesn't read")
        wait_until(lambda: not threads.count)
        threads.check()
        os.close(reader)


class TestWriterThreads:
    def test_thread_ends_when_its_queue_is_empty(self, path):
        threads = FileThreads()
        writer = FileWriter(open_file(path), threads, Progress())
        for number in range(1, 4):
            writer.write(PACKET)
            wait_until(lambda: not threads.count)
            assert path.read_bytes() == PACKET * number
        writer.close()
        wait_until(lambda: writer.closed)

    def test_wait_for_room_returns_true_when_queued_data_is_written(self, path, monkeypatch):
        monkeypatch.setattr("stretto.service.limits.FILE_QUEUE_BYTES", 1)
        writer = FileWriter(open_file(path), FileThreads(), Progress())
        for _ in range(100):
            writer.write(PACKET)
            assert writer.wait_for_room(1000 * TIMEOUT_S)
        assert path.read_bytes() == PACKET * 100

    def test_wait_for_room_returns_false_after_its_timeout(self, monkeypatch):
        monkeypatch.setattr("stretto.service.limits.FILE_QUEUE_BYTES", 1)
        reader, end = os.pipe()
        writer = FileWriter(OutputFile(end, interruptible=True), FileThreads(), Progress())
        writer.write(framed(bytes(1 << 20)))
        wait_until(lambda: writer.progress)
        assert not writer.wait_for_room(1)
        writer.abandon("its reader doesn't read")
        os.close(reader)

    def test_threads_stop_during_a_fork_without_losing_data(self):
        reader, end = os.pipe()
        threads = FileThreads()
        writer = FileWriter(OutputFile(end, interruptible=True), threads, Progress())
        data = framed(os.urandom(1 << 20))
        writer.write(data)
        writer.close()
        wait_until(lambda: writer.progress)
        threads.pause()
        assert threads.count == 0
        assert not writer.closed
        got = [os.read(reader, 1000)]
        threads.resume()
        while piece := os.read(reader, 1 << 20):
            got.append(piece)
        assert b"".join(got) == data
        os.close(reader)

    def test_data_queued_during_a_fork_is_written_after_the_fork(self, path):
        threads = FileThreads()
        writer = FileWriter(open_file(path), threads, Progress())
        threads.pause()
        writer.write(PACKET)
        assert threads.count == 0
        threads.resume()
        wait_until(lambda: not writer.busy)
        assert path.read_bytes() == PACKET

    def test_fork_does_not_wait_for_a_blocked_disk(self, path, monkeypatch):
        monkeypatch.setattr(file_threads, "PAUSE_TIMEOUT_S", 0.01)
        hangs, entered = threading.Event(), threading.Event()
        real = os.write

        def write(fd, data):
            entered.set()
            assert hangs.wait(TIMEOUT_S)
            return real(fd, data)

        monkeypatch.setattr(os, "write", write)
        threads = FileThreads()
        writer = FileWriter(open_file(path), threads, Progress())
        writer.write(PACKET)
        assert entered.wait(TIMEOUT_S)
        threads.pause()
        hangs.set()
        threads.resume()
        wait_until(lambda: not writer.busy)
        assert path.read_bytes() == PACKET
