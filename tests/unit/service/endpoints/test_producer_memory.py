"""Shared memory that the producer provides, and producers without shared memory."""

from __future__ import annotations

import mmap
import os

import pytest

from stretto.base.memory import create_sealed_memfd
from stretto.service.output.packet_encoder import blob, number
from stretto.testing.chunk_builder import ChunkBuilder, chunk_to_move
from tests.support.service_setup import event, make_config, texts

KB = 1024


class TestProducerProvidedMemory:
    def connect(self, setup, size, page_size, fd=None):
        fd = create_sealed_memfd(size) if fd is None else fd
        producer = setup.producer("ds", in_process=False, shm_fd=fd, page_size_hint=page_size)
        memory = mmap.mmap(fd, size)
        os.close(fd)
        return producer, memory

    def test_service_reads_the_memory_that_the_producer_provides(self, setup):
        producer, memory = self.connect(setup, 1024 * KB, 16 * KB)
        assert producer.endpoint.producer_provided_shm
        consumer = setup.enable(make_config("ds"))
        assert producer.calls[1][0] == "tracing setup"
        assert producer.memory is None  # The producer provided this memory, so it is not sent back.
        memory[: 16 * KB] = ChunkBuilder(1, 0).add(event("data")).page(16 * KB)
        producer.endpoint.core.commit(chunk_to_move(0, producer.configs["ds"].target_buffer))
        assert texts(setup.read(consumer)) == ["data"]

    @pytest.mark.parametrize(
        ("size", "page_size"), [(1024 * KB, 20 * KB), (1024 * KB, 0), (64 * 1024 * KB, 4 * KB)]
    )
    def test_provided_memory_of_invalid_size_is_replaced_by_memory_of_the_service(
        self, setup, size, page_size
    ):
        producer, _ = self.connect(setup, size, page_size)
        assert not producer.endpoint.producer_provided_shm
        setup.enable(make_config("ds"))
        assert producer.memory is not None

    def test_provided_memory_that_is_not_sealed_is_refused(self, setup):
        fd = os.memfd_create("open", os.MFD_CLOEXEC)
        os.ftruncate(fd, 1024 * KB)
        producer, _ = self.connect(setup, 1024 * KB, 4 * KB, fd)
        assert not producer.endpoint.producer_provided_shm

    def test_provided_memory_with_an_invalid_descriptor_is_refused(self, setup):
        producer = setup.producer("ds", in_process=False, shm_fd=987654, page_size_hint=4096)
        assert not producer.endpoint.producer_provided_shm


class TestEmulatedMemory:
    def connect(self, setup, **arguments):
        return setup.producer("ds", in_process=False, **arguments)

    def commit(self, producer, *names):
        chunk = ChunkBuilder(1, 0)
        for name in names:
            chunk.add(event(name))
        move = number(3, producer.configs["ds"].target_buffer) + blob(4, chunk.chunk())
        producer.endpoint.core.commit(blob(1, move))

    def test_chunks_are_sent_in_commits_if_memory_is_emulated(self, setup):
        producer = self.connect(setup, shm_emulation=True)
        consumer = setup.enable(make_config("ds"))
        assert producer.memory is None
        assert producer.page_size == 4 * KB
        self.commit(producer, "a", "b")
        assert texts(setup.read(consumer)) == ["a", "b"]

    def test_producers_of_other_machines_are_remote(self, setup):
        assert self.connect(setup, machine_id=9).endpoint.identity.is_remote
        assert not self.connect(setup).endpoint.identity.is_remote

    @pytest.mark.parametrize("scrapes", [True, False])
    def test_data_source_with_no_flush_is_flushed_if_its_emulated_memory_is_scraped(
        self, setup, scrapes
    ):
        producer = setup.producer(in_process=False, shm_emulation=True, smb_scraping=scrapes)
        producer.register("ds", no_flush=True)
        consumer = setup.enable(make_config("ds"))
        consumer.flush()
        setup.run()
        assert consumer.flushes == [True]
        assert [ids for _, ids, _ in producer.flushes] == ([[]] if scrapes else [])
