"""Shared memory, commits and scraping of producers, with the real native buffers."""

from __future__ import annotations

import gc
import os
import threading

import pytest

from stretto import _native
from stretto.base import memory
from stretto.protos.config import TraceConfig
from stretto.service.limits import MAX_DATA_SOURCES_PER_PRODUCER
from stretto.testing.chunk_builder import ChunkBuilder, chunk_to_move, flush_done
from tests.support.descriptors import expect_new_descriptors, open_descriptors
from tests.support.service_setup import Setup, event, make_config, texts

KB = 1024


def remote(setup, *sources, **arguments):
    return setup.producer(*sources, in_process=False, **arguments)


def put(producer, page, chunk):
    size = producer.page_size
    producer.memory[page * size : (page + 1) * size] = chunk.page(size)


class TestSharedMemory:
    @pytest.mark.parametrize("in_process", [True, False])
    @pytest.mark.parametrize(
        ("hints", "config", "size_kb"),
        [((0, 0), {}, 256), ((16, 64), {}, 64), ((16, 64), {"shm_size_kb": 128}, 128)],
    )
    def test_trace_config_overrides_shared_memory_and_page_size_hints(
        self, setup, in_process, hints, config, size_kb
    ):
        page, size = hints
        producer = setup.producer(
            "ds",
            name="p",
            in_process=in_process,
            page_size_hint=page * KB,
            shm_size_hint=size * KB,
        )
        wishes = TraceConfig.ProducerConfig(producer_name="p", **config)
        setup.enable(make_config("ds", producers=[wishes]))
        assert producer.calls[1] == ("tracing setup", size_kb * KB)
        if not in_process:
            assert producer.page_size == (page or 4) * KB

    def test_shared_memory_is_created_once_per_producer(self, setup):
        producer = setup.producer("a", "b")
        setup.run()
        assert producer.calls == [("connect", "")]
        for _ in range(2):
            setup.enable(make_config("a", "b"))
        assert [call for call, _ in producer.calls].count("tracing setup") == 1

    def test_disconnect_before_memory_is_sent_leaks_no_descriptor(self, setup):
        gc.collect()  # Garbage collection closes descriptors of earlier tests.
        before = open_descriptors()
        producer = remote(setup, "ds")
        setup.consumer().enable(make_config("ds"))
        producer.disconnect()  # The producer disconnects before the service sends it the memory.
        setup.run()
        assert producer.memory is None
        expect_new_descriptors(before, 0)

    def test_producer_whose_memory_cannot_be_created_is_skipped(self, setup, monkeypatch):
        def fail(size):
            raise OSError

        monkeypatch.setattr(memory, "create_sealed_memfd", fail)
        failed, working = remote(setup, "ds"), setup.producer("ds")
        consumer = setup.enable(make_config("ds"))
        assert not failed.configs
        assert working.configs
        consumer.flush()
        setup.run()
        assert consumer.flushes == [True]


class TestCommitData:
    def test_committed_chunk_of_a_remote_producer_is_read_with_the_identity_of_the_producer(
        self, setup
    ):
        producer = remote(setup, "ds", uid=77, pid=88)
        consumer = setup.enable(make_config("ds"))
        buffer = producer.configs["ds"].target_buffer
        put(producer, 3, ChunkBuilder(1, 0).add(event("a")).add(event("b")))
        assert producer.endpoint.core.commit(chunk_to_move(3, buffer)) == 0
        packets = setup.read(consumer)
        assert texts(packets) == ["a", "b"]
        found = [p for p in packets if p.has("for_testing")]
        assert {(p.trusted_uid, p.trusted_pid) for p in found} == {(77, 88)}
        assert producer.memory[3 * 4096 : 3 * 4096 + 4] == b"\0\0\0\0"  # The chunk is free again.

    def test_commit_with_a_flush_id_completes_the_flush(self, setup):
        producer = remote(setup, "ds", answers_flushes=False)
        consumer = setup.enable(make_config("ds"))
        consumer.flush()
        setup.run()
        flush_id = producer.endpoint.core.commit(flush_done(producer.flushes[0][0]))
        producer.endpoint.on_commit(flush_id)
        setup.run()
        assert consumer.flushes == [True]

    def test_commit_to_forbidden_buffer_is_discarded(self, setup):
        producer, other = remote(setup, "mine"), setup.producer("others")
        config = make_config("mine", "others", buffers=2)
        config.data_sources[1].config.target_buffer = 1
        consumer = setup.enable(config)
        mine, forbidden = setup.session().buffers
        put(producer, 0, ChunkBuilder(1, 0).add(event("good")))
        put(producer, 1, ChunkBuilder(2, 0).add(event("evil")))
        put(producer, 2, ChunkBuilder(3, 0).add(event("lost")))
        commit = chunk_to_move(0, mine) + chunk_to_move(1, forbidden) + chunk_to_move(2, 9999)
        producer.endpoint.core.commit(commit)
        packets = setup.read(consumer)
        assert texts(packets) == ["good"]
        stats = next(p.trace_stats for p in packets if p.has("trace_stats"))
        assert stats.chunks_discarded == 2
        assert other.configs

    def test_writes_after_disconnect_are_discarded(self, setup):
        producer, local = remote(setup, "ds"), setup.producer("ds")
        consumer = setup.enable(make_config("ds"))
        buffer = producer.configs["ds"].target_buffer
        for each in (producer, local):
            each.disconnect()
        put(producer, 0, ChunkBuilder(1, 0).add(event("evil")))
        producer.endpoint.core.commit(chunk_to_move(0, buffer))
        assert not local.writer("ds").write(event("late"))
        assert texts(setup.read(consumer)) == []

    def test_discarded_chunks_of_disconnected_producers_are_still_counted(self, setup):
        producer = remote(setup, "ds")
        setup.enable(make_config("ds"))
        put(producer, 0, ChunkBuilder(1, 0).add(event("x")))
        producer.endpoint.core.commit(chunk_to_move(0, 9999))
        producer.disconnect()
        assert setup.service.registry.counts().chunks_discarded == 1

    def test_commit_to_a_freed_buffer_is_discarded_even_if_its_id_is_reused(self, setup):
        producer = remote(setup, "ds")
        first = setup.enable(make_config("ds"))
        (buffer,) = setup.session().buffers
        first.endpoint.free_buffers()
        setup.service.buffers.ids._last = 0  # The buffer of the next session gets the same id.
        second = setup.enable(make_config("other"))
        assert setup.session().buffers == [buffer]
        put(producer, 0, ChunkBuilder(1, 0).add(event("evil")))
        producer.endpoint.core.commit(chunk_to_move(0, buffer))
        assert texts(setup.read(second)) == []

    @pytest.mark.parametrize("field", [3, 10, 33, 35, 36, 79])
    def test_packets_with_fields_reserved_for_the_service_are_dropped(self, setup, field):
        producer = setup.producer("ds")
        consumer = setup.enable(make_config("ds"))
        writer = producer.writer("ds")
        writer.write(event("good"))
        from stretto.service.output.packet_encoder import number

        writer.write(event("evil") + number(field, 0))
        writer.flush()
        packets = setup.read(consumer)
        assert texts(packets) == ["good"]
        assert next(p.trace_stats for p in packets if p.has("trace_stats")).invalid_packets == 1


class TestScrapingOfChunks:
    def test_disconnect_scrapes_unfinished_chunks(self, setup):
        producer = setup.producer("ds")
        consumer = setup.enable(make_config("ds"))
        writer = producer.writer("ds")
        writer.write(event("in hand"))
        producer.disconnect()
        setup.run()
        assert texts(setup.read(consumer)) == ["in hand"]
        writer.write(event("too late"))
        writer.flush()
        assert texts(setup.read(consumer)) == []

    def test_disable_scrapes_unfinished_chunks(self, setup):
        producer = setup.producer("ds")
        consumer = setup.enable(make_config("ds"))
        producer.writer("ds").write(event("in hand"))
        consumer.endpoint.disable_tracing()
        setup.run()
        assert texts(setup.read(consumer)) == ["in hand"]

    def test_unregistered_data_source_is_scraped_only_when_the_session_ends(self, setup):
        producer = setup.producer("ds")
        consumer = setup.enable(make_config("ds"))
        producer.writer("ds").write(event("in hand"))
        producer.endpoint.unregister_data_source("ds")
        assert texts(setup.read(consumer)) == []
        consumer.endpoint.disable_tracing()
        assert texts(setup.read(consumer)) == ["in hand"]

    @pytest.mark.parametrize("scraping", [True, False])
    def test_registered_remote_writer_is_scraped_if_scraping_is_on(self, setup, scraping):
        producer = remote(setup, "ds", smb_scraping=scraping)
        consumer = setup.enable(make_config("ds"))
        buffer = producer.configs["ds"].target_buffer
        put(producer, 0, ChunkBuilder(1, 0).add(event("registered")))
        put(producer, 1, ChunkBuilder(2, 0).add(event("unknown writer")))
        producer.endpoint.register_trace_writer(1, buffer)
        # 70,000 is above the largest writer id.
        producer.endpoint.register_trace_writer(70_000, buffer)
        producer.disconnect()
        assert texts(setup.read(consumer)) == ["registered"] * scraping

    def test_unregistered_writers_are_not_scraped(self, setup):
        producer = remote(setup, "ds")
        consumer = setup.enable(make_config("ds"))
        put(producer, 0, ChunkBuilder(1, 0).add(event("x")))
        producer.endpoint.register_trace_writer(1, producer.configs["ds"].target_buffer)
        producer.endpoint.unregister_trace_writer(1)
        producer.disconnect()
        assert texts(setup.read(consumer)) == []

    def test_unregistered_writers_are_scraped_at_disconnect_if_the_service_adopts_them(self):
        """A killed process may not have sent the registrations of its writers."""
        setup = Setup(adopt_writers=True)
        producer = remote(setup, "ds")
        consumer = setup.enable(make_config("ds"))
        put(producer, 0, ChunkBuilder(1, 0).add(event("x")))
        setup.session().scrape()
        assert texts(setup.read(consumer)) == []
        producer.disconnect()
        assert texts(setup.read(consumer)) == ["x"]

    def test_unregistered_writers_are_not_adopted_if_several_buffers_are_possible(self):
        setup = Setup(adopt_writers=True)
        producer = remote(setup, "ds")
        consumers = [setup.enable(make_config("ds")) for _ in range(2)]
        put(producer, 0, ChunkBuilder(1, 0).add(event("x")))
        producer.disconnect()
        assert [texts(setup.read(consumer)) for consumer in consumers] == [[], []]

    def test_writer_registered_for_a_forbidden_buffer_is_not_scraped(self, setup):
        producer = remote(setup, "mine")
        setup.producer("others")
        config = make_config("mine", "others", buffers=2)
        config.data_sources[1].config.target_buffer = 1
        consumer = setup.enable(config)
        put(producer, 0, ChunkBuilder(1, 0).add(event("evil")))
        producer.endpoint.register_trace_writer(1, setup.session().buffers[1])
        setup.session().scrape()
        assert texts(setup.read(consumer)) == []

    def test_scraping_while_threads_write_neither_loses_nor_repeats_packets(self, setup):
        producer = setup.producer("ds", shm_size_hint=1024 * KB)
        consumer = setup.enable(make_config("ds", size_kb=4096))
        writers = [producer.writer("ds", _native.STALL) for _ in range(3)]

        def write(writer, name):
            for number in range(2000):
                writer.write(event(f"{name} {number}"))
            writer.flush()

        threads = [
            threading.Thread(target=write, args=(writer, name))
            for name, writer in enumerate(writers)
        ]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            setup.session().scrape()
            setup.read(consumer)
        for thread in threads:
            thread.join()
        setup.read(consumer)
        found = texts(consumer.packets())
        for name in range(3):
            own = [text for text in found if text.startswith(f"{name} ")]
            assert own == [f"{name} {number}" for number in range(2000)]


def test_full_buffer_is_written_to_the_file_before_packets_are_overwritten(setup, tmp_path):
    producer = setup.producer("ds", shm_size_hint=1024 * KB)
    fd = os.open(tmp_path / "trace", os.O_RDWR | os.O_CREAT)
    config = make_config("ds", size_kb=64, write_into_file=True, file_write_period_ms=1_000_000)
    setup.enable(config, fd=fd)
    os.close(fd)
    writer = producer.writer("ds")
    path = tmp_path / "trace"
    setup.run()
    for number in range(200):
        writer.write(event(f"{number} " + "x" * 1000))
        writer.flush()
        setup.run()
    assert path.stat().st_size > 140_000
    assert setup.service.buffers.table.stats(setup.session().buffers[0])["chunks_overwritten"] == 0


def test_buffer_in_a_file_can_be_recovered_by_another_table(setup, tmp_path):
    producer = setup.producer("ds")
    fd = os.open(tmp_path / "ring", os.O_RDWR | os.O_CREAT, 0o600)
    consumer = setup.consumer()
    consumer.endpoint.enable_tracing(make_config("ds").encode(), ring_fds={0: fd})
    setup.run()
    writer = producer.writer("ds")
    writer.write(event("survives"))
    writer.flush()
    table = _native.BufferTable()
    table.recover(1, fd)
    os.close(fd)
    readback = _native.Readback(table)
    readback.begin(1)
    data, _ = readback.read(1, 1 << 20)
    from stretto.testing.decoded_packets import decode_packets

    assert texts(decode_packets(data)) == ["survives"]


def test_data_sources_above_the_limit_are_refused_and_reported_once():
    errors = []
    setup = Setup(on_error=errors.append)
    producer = setup.producer(*(f"source {n}" for n in range(MAX_DATA_SOURCES_PER_PRODUCER + 3)))
    assert setup.service.data_sources.count_of(producer.endpoint) == MAX_DATA_SOURCES_PER_PRODUCER
    (error,) = errors
    assert f"more than {MAX_DATA_SOURCES_PER_PRODUCER} data sources: 'source 256'" in str(error)
