"""Sessions whose trace the service writes into a file."""

from __future__ import annotations

import errno
import os

import pytest

from stretto.protos.config import TraceConfig
from stretto.service import limits
from stretto.service.output.file_drain import flush_period_ms, flushes_before_write, write_period_ms
from stretto.testing.decoded_packets import decode_packets
from tests.support.descriptors import expect_new_descriptors, open_descriptors
from tests.support.file_threads import HeldFileThreads
from tests.support.service_setup import Setup, event, events, make_config, texts

DISABLED, ENABLED = 2, 3


@pytest.fixture
def out(tmp_path):
    fd = os.open(tmp_path / "trace", os.O_RDWR | os.O_CREAT, 0o600)
    yield File(tmp_path / "trace", fd)
    os.close(fd)


class File:
    def __init__(self, path, fd):
        self.path, self.fd = path, fd

    def packets(self):
        return decode_packets(self.path.read_bytes())

    def texts(self):
        return texts(self.packets())


def start(setup, out, **fields):
    producer = setup.producer("ds")
    fields.setdefault("file_write_period_ms", 100)
    config = make_config("ds", write_into_file=True, **fields)
    return producer, setup.enable(config, fd=out.fd)


def write(producer, *found):
    writer = producer.writer("ds")
    for text in found:
        assert writer.write(event(text))
    writer.flush()


def test_trace_is_written_periodically_and_at_the_end(setup, out):
    producer, consumer = start(setup, out)
    write(producer, "one")
    assert out.packets() == []
    setup.advance(100)
    assert out.texts() == ["one"]
    write(producer, "two")
    consumer.endpoint.disable_tracing()
    setup.run()
    assert out.texts() == ["one", "two"]
    packets = out.packets()
    assert packets[-1].has("trace_stats")
    assert "tracing_disabled" in events(packets)
    assert consumer.disabled == [""]


def test_descriptor_of_the_caller_stays_open(setup, out):
    _, consumer = start(setup, out)
    consumer.endpoint.free_buffers()
    setup.run()
    os.fstat(out.fd)


def test_file_at_the_output_path_is_accessible_only_by_its_owner(setup, tmp_path):
    producer = setup.producer("ds")
    path = tmp_path / "trace"
    config = make_config("ds", write_into_file=True, output_path=str(path))
    consumer = setup.enable(config)
    write(producer, "here")
    consumer.endpoint.disable_tracing()
    setup.run()
    assert texts(decode_packets(path.read_bytes())) == ["here"]
    assert path.stat().st_mode & 0o777 == 0o600
    assert "exists already" in setup.enable(config).disabled[0]


def test_output_path_of_another_user_is_refused(setup, tmp_path):
    config = make_config(write_into_file=True, output_path=str(tmp_path / "t"))
    consumer = setup.enable(config, setup.consumer(uid=1))
    assert "pass a file descriptor" in consumer.disabled[0]
    assert not (tmp_path / "t").exists()


def test_refused_session_leaves_no_descriptor_open(setup, out, monkeypatch):
    def fail(*_):
        raise MemoryError

    class NoTable:
        create = fail

    before = open_descriptors()
    setup.service.buffers.table = NoTable()
    consumer = setup.enable(make_config(write_into_file=True), fd=out.fd)
    assert consumer.disabled[0]
    expect_new_descriptors(before, 0)


def test_closed_descriptor_is_refused(setup, tmp_path):
    fd = os.open(tmp_path / "x", os.O_RDWR | os.O_CREAT)
    os.close(fd)
    consumer = setup.enable(make_config(write_into_file=True), fd=fd)
    assert "pass an open file" in consumer.disabled[0]


def test_reading_a_session_that_writes_a_file_returns_nothing(setup, out):
    producer, consumer = start(setup, out)
    write(producer, "one")
    assert setup.read(consumer) == []
    consumer.endpoint.disable_tracing()
    assert out.texts() == ["one"]


def test_session_ends_when_the_file_has_its_maximum_size(setup, out):
    producer, consumer = start(setup, out, max_file_size_bytes=4096)
    write(producer, *(f"small {number}" for number in range(9)))
    setup.advance(100)
    assert len(out.texts()) == 9
    assert len([p for p in out.packets() if not p.has("for_testing")]) >= 9
    write(producer, "x" * 4000, "after")
    setup.advance(100)
    assert len(out.texts()) == 9
    assert out.path.stat().st_size < 4096
    assert consumer.disabled == [""]
    assert producer.calls[-1] == ("stop", "ds")


def test_file_ends_with_the_final_flush_outcome(setup, out):
    _, consumer = start(setup, out, duration_ms=50)
    setup.advance(50)
    assert consumer.disabled == [""]
    stats = [p.trace_stats for p in out.packets() if p.has("trace_stats")]
    assert stats[-1].final_flush_outcome == 1


def test_producers_are_flushed_before_a_write(setup, out):
    producer, _ = start(setup, out, file_write_period_ms=10_000)
    writer = producer.writer("ds")
    writer.write(event("in hand"))
    setup.advance(10_000)
    assert out.texts() == ["in hand"]
    assert [flags for _, _, flags in producer.flushes] == [0x11]


def test_producers_are_scraped_before_a_write_if_the_config_disables_flushes(setup, out):
    producer, _ = start(setup, out, write_flush_mode=DISABLED)
    writer = producer.writer("ds")
    writer.write(event("one"))
    setup.advance(100)
    assert out.texts() == ["one"]
    writer.write(event("two"))
    setup.advance(100)
    assert out.texts() == ["one", "two"]
    assert not producer.flushes
    assert "all_data_sources_flushed" not in events(out.packets())


def flushes_in(setup, out, milliseconds, **fields):
    producer, consumer = start(setup, out, **fields)
    setup.advance(milliseconds)
    consumer.endpoint.free_buffers()
    assert {flags for _, _, flags in producer.flushes} <= {0x11}
    return len(producer.flushes)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"write_flush_mode": ENABLED}, 100),
        ({}, 2),
        ({"file_write_period_ms": 1000}, 2),
        ({"file_write_period_ms": 10_000}, 1),
        ({"flush_period_ms": 100}, 2),
        ({"flush_period_ms": 100, "write_flush_mode": DISABLED}, 100),
    ],
)
def test_number_of_flushes_follows_flush_mode_and_periods(setup, out, fields, expected):
    assert flushes_in(setup, out, 10_000, **fields) == expected


def test_writes_and_flushes_have_default_and_minimum_periods():
    def config(**fields):
        return TraceConfig(write_into_file=True, **fields)

    assert write_period_ms(config()) == 5000
    assert write_period_ms(config(file_write_period_ms=1)) == 100
    assert not flushes_before_write(config(file_write_period_ms=5000))
    assert flushes_before_write(config(file_write_period_ms=5001))
    assert flush_period_ms(config(flush_period_ms=7, write_flush_mode=DISABLED)) == 7
    assert flush_period_ms(config(flush_period_ms=7, write_flush_mode=ENABLED)) == 0


def test_full_disk_ends_the_session_with_a_message(setup, out, monkeypatch):
    producer, consumer = start(setup, out)
    write(producer, "kept")
    setup.advance(100)
    real = os.write

    def write_until_full(fd, data):
        if len(data) > 100:
            return real(fd, data[:-50])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", write_until_full)
    write(producer, "fits", "is lost " + "x" * 100)
    setup.advance(100)
    assert "No space left on device" in consumer.disabled[0]
    assert "lost" in consumer.disabled[0]
    assert len(consumer.disabled) == 1
    assert out.texts() == ["kept", "fits"]
    assert producer.calls[-1] == ("stop", "ds")
    consumer.endpoint.free_buffers()
    setup.run()
    assert not setup.runner.delayed_count


def test_broken_pipe_ends_the_session_with_a_message(setup):
    reader, writer = os.pipe()
    setup.producer("ds")
    config = make_config("ds", write_into_file=True, file_write_period_ms=100)
    consumer = setup.enable(config, fd=writer)
    os.close(writer)
    setup.advance(100)
    assert consumer.disabled == []
    os.close(reader)
    setup.advance(10_000)
    assert "Broken pipe" in consumer.disabled[0]


def test_error_in_the_final_write_is_reported_to_the_consumer(setup, out, monkeypatch):
    _, consumer = start(setup, out)

    def fail(fd, data):
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    monkeypatch.setattr(os, "write", fail)
    consumer.endpoint.disable_tracing()
    setup.run()
    assert len(consumer.disabled) == 1
    assert "Disk quota exceeded" in consumer.disabled[0]


def test_file_is_synced_after_each_write_if_configured(setup, out, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fdatasync", synced.append)
    _, consumer = start(setup, out, fflush_post_write=2)
    setup.advance(300)
    assert len(synced) == 3
    consumer.endpoint.free_buffers()
    assert len(synced) == 4


def test_data_is_written_at_the_watermark_before_the_write_period_ends(setup, out):
    producer, _ = start(setup, out, file_write_period_ms=1_000_000, size_kb=64)
    drain = setup.session().drain
    setup.run()
    assert out.packets() == []
    write(producer, "one")
    # At the watermark, the native buffer writes to this eventfd.
    os.eventfd_write(drain._eventfd, 8)
    setup.run()
    assert out.texts() == ["one"]


def test_commit_writes_to_the_file_before_a_buffer_overflows(setup, out):
    producer, _ = start(setup, out, file_write_period_ms=1_000_000, size_kb=64)
    endpoint = producer.endpoint
    (buffer,) = setup.session().buffers
    for number in range(400):
        write(producer, f"{number} " + "x" * 1000)
        endpoint.on_commit(0)
    assert setup.service.buffers.table.stats(buffer)["chunks_overwritten"] == 0
    assert len(out.texts()) > 300
    setup.session().disable()
    setup.run()
    assert [text.split()[0] for text in out.texts()] == [str(n) for n in range(400)]


def test_watermark_descriptor_is_closed_at_the_end(setup, out):
    before = open_descriptors()
    _, consumer = start(setup, out)
    assert setup.runner.watched
    consumer.endpoint.disable_tracing()
    setup.run()
    assert not setup.runner.watched
    expect_new_descriptors(before, 0)


def test_full_file_unsets_the_watermarks_of_its_buffers(setup, out, monkeypatch):
    """A buffer must not keep a closed eventfd: the program may reuse the descriptor's number."""
    calls = []

    class Table:
        def __getattr__(self, name):
            return getattr(real, name)

        def set_watermark(self, buffer_id, eventfd, unread):
            calls.append((buffer_id, eventfd))
            real.set_watermark(buffer_id, eventfd, unread)

    producer, _ = start(setup, out, max_file_size_bytes=10)
    real = setup.service.buffers.table
    monkeypatch.setattr(setup.service.buffers, "table", Table())
    write(producer, "one")
    setup.advance(100)
    assert calls == [(buffer, -1) for buffer in setup.session().buffers]


def test_long_writes_let_other_tasks_run(setup, out, monkeypatch):
    setup.service.context.file_step_bytes = 100
    monkeypatch.setattr(limits, "FILE_STEPS_PER_TASK", 2)
    producer, _ = start(setup, out)
    write(producer, *(f"{number} " + "x" * 90 for number in range(20)))
    seen = []
    drain = type(setup.session().drain)._drain
    monkeypatch.setattr(
        type(setup.session().drain),
        "_drain",
        lambda self: (seen.append(len(out.texts())), drain(self)),
    )
    setup.advance(100)
    assert len(out.texts()) == 20
    assert len(seen) >= 5


def test_chunks_committed_after_the_final_write_are_discarded(setup, out):
    producer, consumer = start(setup, out)
    writer = producer.writer("ds")
    consumer.endpoint.disable_tracing()
    setup.run()
    writer.write(event("too late"))
    writer.flush()
    stats = producer.endpoint.core.stats()
    assert stats["chunks_discarded"] == 1


def test_session_end_during_a_write_pass_writes_packets_that_arrived_during_the_pass(setup, out):
    """A write pass omits later packets, so the session's end starts another pass."""
    producer, consumer = start(setup, out, size_kb=16_384)
    long = "x" * 8000
    # One task can't write all these packets.
    early = [f"{number} {long}" for number in range(600)]
    write(producer, *early)
    # `_drain` writes some of the packets, and posts a task that writes the others.
    setup.session().drain._drain()
    assert 0 < len(out.texts()) < len(early)
    write(producer, "late")
    consumer.endpoint.free_buffers()
    setup.run()
    assert out.texts() == [*early, "late"]


class TestSlowFiles:
    """Files whose writes block until `threads.release`; the service must not wait for them."""

    @pytest.fixture
    def threads(self):
        return HeldFileThreads()

    @pytest.fixture
    def setup(self, threads):
        return Setup(file_threads=threads, pipe_patience_ms=2000)

    def test_other_consumers_are_answered_while_a_file_blocks(self, setup, out, threads):
        producer, _ = start(setup, out)
        write(producer, "x" * 1000)
        setup.advance(1000)
        other = setup.enable(make_config("ds"))
        setup.write(producer, "two")
        other.endpoint.disable_tracing()
        assert texts(setup.read(other)) == ["two"]
        assert out.packets() == []

    def test_data_stays_in_the_buffer_while_the_file_queue_is_full(
        self, setup, out, threads, monkeypatch
    ):
        monkeypatch.setattr(limits, "FILE_QUEUE_BYTES", 1)
        producer, _ = start(setup, out)
        for number in range(5):
            write(producer, str(number))
            setup.advance(100)
        threads.release()
        setup.run()
        setup.advance(100)
        threads.release()
        setup.run()
        assert out.texts() == list("01234")

    def test_data_overwritten_while_the_file_blocks_is_counted(
        self, setup, out, threads, monkeypatch
    ):
        monkeypatch.setattr(limits, "FILE_QUEUE_BYTES", 1)
        producer, consumer = start(setup, out, size_kb=64)
        for number in range(200):
            write(producer, f"{number} " + "x" * 1000)
            producer.endpoint.on_commit(0)
            setup.run()
        consumer.endpoint.disable_tracing()
        self.finish(setup, threads)
        stats = [p.trace_stats for p in out.packets() if p.has("trace_stats")][-1]
        assert stats.buffer_stats[0].chunks_overwritten > 0
        assert out.texts()[-1].startswith("199 ")

    def finish(self, setup, threads):
        while threads.held:
            threads.release()
            setup.run()

    def test_consumer_is_notified_of_the_end_after_the_file_is_complete(self, setup, out, threads):
        producer, consumer = start(setup, out)
        write(producer, "one")
        consumer.endpoint.disable_tracing()
        setup.run()
        assert consumer.disabled == []
        self.finish(setup, threads)
        assert consumer.disabled == [""]
        assert out.texts() == ["one"]

    def test_disconnect_of_the_consumer_leaves_a_complete_file(self, setup, out, threads):
        producer, consumer = start(setup, out)
        write(producer, "one")
        (buffer,) = setup.session().buffers
        consumer.endpoint.disconnect()
        setup.run()
        assert not setup.service.sessions
        # `stats` raises if the buffer was freed.
        assert setup.service.buffers.table.stats(buffer)["unread"] >= 0
        self.finish(setup, threads)
        assert out.texts() == ["one"]
        assert not setup.service.registry.unfinished
        with pytest.raises((KeyError, ValueError)):
            setup.service.buffers.table.stats(buffer)
        assert not setup.runner.delayed_count

    def test_late_end_of_a_file_does_not_affect_the_next_session_of_the_consumer(
        self, setup, out, threads
    ):
        _, consumer = start(setup, out)
        consumer.endpoint.free_buffers()
        consumer.enable(make_config("ds"))
        setup.run()
        reported = list(consumer.disabled)
        self.finish(setup, threads)
        assert consumer.disabled == reported == [""]
        assert setup.session().started

    def test_attached_consumer_is_notified_of_the_end_after_the_file_is_complete(
        self, setup, out, threads
    ):
        _, consumer = start(setup, out)
        consumer.endpoint.disable_tracing()
        setup.run()
        consumer.endpoint.detach("key", lambda _: None)
        other = setup.consumer(uid=consumer.uid) if hasattr(consumer, "uid") else setup.consumer()
        other.endpoint.attach("key", lambda _: None)
        setup.run()
        assert other.disabled == []
        self.finish(setup, threads)
        assert other.disabled == [""]

    def test_disk_without_progress_ends_the_session(self, setup, out, threads):
        producer, consumer = start(setup, out)
        write(producer, "x" * 1000)
        setup.advance(100)
        setup.advance(limits.FILE_PATIENCE_MS)
        assert "the disk takes nothing" in consumer.disabled[0]
        assert "0 bytes are in it" in consumer.disabled[0]

    def test_slow_sync_does_not_end_the_session(self, setup, out, threads):
        _, consumer = start(setup, out)
        drain = setup.session().drain
        consumer.endpoint.disable_tracing()
        drain._writer._syncing = True
        setup.advance(10 * limits.FILE_PATIENCE_MS)
        assert consumer.disabled == []
        drain._writer._syncing = False
        self.finish(setup, threads)
        assert consumer.disabled == [""]

    def start_into_pipe(self, setup, **fields):
        reader, writer = os.pipe()
        producer = setup.producer("ds")
        config = make_config("ds", write_into_file=True, file_write_period_ms=100, **fields)
        consumer = setup.enable(config, fd=writer)
        os.close(writer)
        return producer, consumer, reader

    def test_stalled_pipe_reader_ends_the_session(self, setup, threads):
        _, consumer, reader = self.start_into_pipe(setup)
        setup.advance(2050)
        assert consumer.disabled == []
        setup.advance(100)
        assert "doesn't read" in consumer.disabled[0]
        os.close(reader)

    def test_slow_pipe_reader_does_not_end_the_session(self, setup, threads):
        producer, consumer, reader = self.start_into_pipe(setup)
        for _ in range(20):
            write(producer, "x" * 500)
            setup.advance(1500)
            self.finish(setup, threads)
            os.read(reader, 1 << 20)
        assert consumer.disabled == []
        os.close(reader)

    def test_file_error_after_the_consumer_disconnected_is_reported_to_the_service(self, threads):
        errors = []
        setup = Setup(file_threads=threads, pipe_patience_ms=2000, on_error=errors.append)
        producer, consumer, reader = self.start_into_pipe(setup)
        write(producer, "one")
        consumer.endpoint.disconnect()
        setup.advance(5000)
        assert "doesn't read" in str(errors[0])
        assert not setup.service.registry.unfinished
        os.close(reader)

    def test_oldest_of_too_many_unfinished_files_is_abandoned(self, setup, tmp_path, monkeypatch):
        monkeypatch.setattr("stretto.service.session.session_registry.MAX_UNFINISHED_FILES", 2)
        for number in range(3):
            path = str(tmp_path / str(number))
            consumer = setup.enable(make_config(write_into_file=True, output_path=path))
            consumer.endpoint.disconnect()
            setup.run()
        assert [session.session_id for session in setup.service.registry.unfinished] == [2, 3]
