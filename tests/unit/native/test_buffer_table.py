from __future__ import annotations

import os
import select
import tempfile

import pytest

from stretto import _native
from tests.unit.native.pipeline import (
    BUFFER,
    make_arbiter,
    make_table,
    numbers_of,
    packet,
    packets_of,
    read_all,
)

STATS = """
    bytes_written chunks_written bytes_overwritten chunks_overwritten chunks_discarded
    chunks_rewritten chunks_relocated chunks_committed_out_of_order write_wrap_count
    patches_succeeded patches_failed readaheads_succeeded readaheads_failed bytes_read chunks_read
    padding_bytes_written padding_bytes_cleared abi_violations trace_writer_packet_loss
    sequence_packet_loss buffer_size unread
""".split()


def write(table: _native.BufferTable, count: int) -> None:
    writer = _native.TraceWriter(make_arbiter(table), BUFFER)
    for number in range(1, count + 1):
        assert writer.write(packet(number))
    writer.close()


class TestCreateBuffer:
    def test_buffer_id_can_be_reused_only_after_removal(self) -> None:
        table = make_table()
        with pytest.raises(ValueError, match="exists already"):
            table.create(BUFFER, 4096, _native.RING)
        table.remove(BUFFER)
        table.create(BUFFER, 4096, _native.RING)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ((0, 4096, 1), "buffer_id must be from 1 to 65535"),
            ((65536, 4096, 1), "buffer_id must be from 1 to 65535"),
            ((1, 0, 1), "size must be from 1"),
            ((1, -1, 1), "size must be from 1"),
            ((1, 4096, 3), "policy must be from 1 to 2"),
            ((1, 4096, 1, -2), "fd must be from -1"),
            ((1, 1 << 70, 1), "size must be from 1"),
        ],
    )
    def test_arguments_out_of_range_are_refused(
        self, arguments: tuple[int, ...], message: str
    ) -> None:
        with pytest.raises(ValueError, match=message):
            _native.BufferTable().create(*arguments)

    def test_file_that_cannot_be_mapped_is_an_error(self) -> None:
        read, write = os.pipe()
        with pytest.raises(OSError, match=r"\[Errno"):
            _native.BufferTable().create(BUFFER, 4096, _native.RING, fd=write)
        os.close(read)
        os.close(write)

    def test_buffer_larger_than_the_available_memory_is_an_error(self) -> None:
        with pytest.raises(MemoryError):
            _native.BufferTable().create(BUFFER, 1 << 60, _native.RING)


class TestBufferStats:
    def test_buffer_stats_have_the_documented_names(self) -> None:
        assert sorted(make_table().stats(BUFFER)) == sorted(STATS)

    def test_stats_count_written_and_read_chunks(self) -> None:
        table = make_table(8192)
        write(table, 10)
        stats = table.stats(BUFFER)
        assert stats["buffer_size"] == 8192
        assert stats["chunks_written"] == 1
        assert stats["unread"] == stats["bytes_written"] > 0
        read_all(table)
        assert table.stats(BUFFER)["unread"] == 0
        assert table.stats(BUFFER)["chunks_read"] == 1

    def test_stats_of_an_unknown_buffer_raise(self) -> None:
        with pytest.raises(ValueError, match="no trace buffer 9"):
            make_table().stats(9)
        with pytest.raises(ValueError, match="no trace buffer 9"):
            make_table().visit_writers(9, print)

    def test_each_writer_is_visited_with_its_histogram(self) -> None:
        table = make_table()
        write(table, 10)
        visited: list[tuple[object, ...]] = []
        table.visit_writers(BUFFER, lambda *writer: visited.append(writer))
        [(_, _, counts, sums)] = visited
        assert sum(counts) == 1
        assert len(counts) == len(sums) == 11

    def test_exception_of_a_visit_is_raised(self) -> None:
        table = make_table()
        write(table, 10)
        with pytest.raises(ZeroDivisionError):
            table.visit_writers(BUFFER, lambda *_: 1 // 0)


class TestProducerIdentity:
    def test_packets_contain_trusted_uid_pid_and_sequence_id(self) -> None:
        table = make_table()
        write(table, 1)
        (only,) = packets_of(read_all(table))
        assert only[3] == 1000
        assert only[79] == 4321
        assert only[10] == 2

    def test_set_producer_of_an_unknown_buffer_raises(self) -> None:
        with pytest.raises(ValueError, match="no trace buffer 9"):
            make_table().set_producer(9, 1, 0, 0)


class TestCloneBuffer:
    def test_clone_contains_the_unread_packets_of_its_source(self) -> None:
        table = make_table()
        write(table, 5)
        table.clone(BUFFER, 2)
        assert numbers_of(read_all(table, 2)) == [1, 2, 3, 4, 5]
        assert numbers_of(read_all(table)) == [1, 2, 3, 4, 5]

    def test_clone_needs_a_known_source_and_a_new_id(self) -> None:
        table = make_table()
        with pytest.raises(ValueError, match="no trace buffer 5"):
            table.clone(5, 6)
        with pytest.raises(ValueError, match="exists already"):
            table.clone(BUFFER, BUFFER)


class TestRecoverBuffer:
    def test_buffer_in_a_file_is_recovered(self) -> None:
        with tempfile.TemporaryFile() as file:
            table = _native.BufferTable()
            table.create(BUFFER, 1 << 16, _native.RING, fd=file.fileno())
            write(table, 50)
            del table
            other = _native.BufferTable()
            other.recover(3, file.fileno())
            assert numbers_of(read_all(other, 3)) == list(range(1, 51))

    def test_recovery_from_another_kind_of_file_is_an_error(self) -> None:
        with tempfile.TemporaryFile() as file:
            file.write(b"no ring" * 10000)
            file.flush()
            with pytest.raises(ValueError, match="not a trace buffer's file"):
                _native.BufferTable().recover(1, file.fileno())


class TestBufferWatermark:
    def test_eventfd_is_signalled_above_the_watermark(self) -> None:
        table = make_table()
        event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        table.set_watermark(BUFFER, event, 1000)
        writer = _native.TraceWriter(make_arbiter(table), BUFFER)
        writer.write(packet(1))
        writer.flush()
        assert not select.select([event], [], [], 0)[0]
        writer.write(packet(2, 2000))
        writer.flush()
        assert select.select([event], [], [], 0)[0]
        table.set_watermark(BUFFER, -1, 0)
        os.close(event)


class TestRemoveBuffer:
    def test_writers_of_a_removed_buffer_drop_no_packets(self) -> None:
        table = make_table()
        writer = _native.TraceWriter(make_arbiter(table), BUFFER)
        assert writer.write(packet(1))
        table.remove(BUFFER)
        for number in range(20000):
            writer.write(packet(number))
        assert writer.packets_dropped == 0

    def test_removing_a_buffer_twice_does_nothing(self) -> None:
        table = make_table()
        table.remove(BUFFER)
        table.remove(BUFFER)


def test_buffer_table_has_no_constructor_arguments_or_subclasses() -> None:
    with pytest.raises(TypeError, match="at most 0"):
        _native.BufferTable(1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="not an acceptable base type"):
        type("Sub", (_native.BufferTable,), {})
