from __future__ import annotations

import threading

import pytest

from stretto import _native
from tests.unit.native.pipeline import (
    BUFFER,
    PRODUCER,
    field,
    make_arbiter,
    make_table,
    numbers_of,
    packet,
    packets_of,
    read_all,
)


def write(table: _native.BufferTable, *packets: bytes) -> None:
    writer = _native.TraceWriter(make_arbiter(table), BUFFER)
    for data in packets:
        assert writer.write(data)
    writer.close()


class TestReadingOfABuffer:
    def test_read_stops_at_the_limit_and_the_next_read_continues(self) -> None:
        table = make_table()
        write(table, *(packet(n, 100) for n in range(1, 101)))
        readback = _native.Readback(table)
        readback.begin(BUFFER)
        numbers: list[int | bytes] = []
        pieces = 0
        more = True
        while more:
            data, more = readback.read(BUFFER, 1000)
            assert len(data) < 1400
            numbers += numbers_of(data)
            pieces += 1
        assert numbers == list(range(1, 101))
        assert pieces > 8
        assert readback.packets == 100

    def test_each_packet_is_read_only_once(self) -> None:
        table = make_table()
        write(table, packet(1))
        assert read_all(table)
        assert read_all(table) == b""

    def test_empty_buffer_is_read_as_no_bytes(self) -> None:
        assert read_all(make_table()) == b""

    def test_packet_larger_than_the_read_limit_is_read_completely(self) -> None:
        table = make_table(16 << 20)
        write(table, packet(1, 6 << 20), packet(2))
        assert numbers_of(read_all(table)) == [1, 2]

    def test_packets_with_trusted_fields_are_dropped_and_counted(self) -> None:
        table = make_table()
        write(table, packet(1), packet(2) + field(3, 0), packet(3) + b"\xff", packet(4))
        readback = _native.Readback(table)
        assert numbers_of(read_all(table, readback=readback)) == [1, 4]
        assert readback.invalid_packets == 2

    def test_packets_contain_the_machine_id_of_the_readback(self) -> None:
        table = make_table()
        write(table, packet(1))
        trace = read_all(table, readback=_native.Readback(table, machine_id=0xFFFFFFFF))
        assert packets_of(trace)[0][98] == 0xFFFFFFFF

    def test_invalid_arguments_of_read_raise(self) -> None:
        table = make_table()
        with pytest.raises(TypeError, match="expected a BufferTable"):
            _native.Readback(object())  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="machine_id"):
            _native.Readback(table, -1)
        readback = _native.Readback(table)
        with pytest.raises(ValueError, match="no trace buffer 9"):
            readback.begin(9)
        with pytest.raises(ValueError, match="no trace buffer 9"):
            readback.read(9, 100)
        with pytest.raises(ValueError, match="limit must be from 1"):
            readback.read(BUFFER, 0)


class TestSequenceIds:
    def test_sequence_ids_are_assigned_on_first_use_and_kept(self) -> None:
        readback = _native.Readback(make_table())
        assert readback.sequence_id(PRODUCER, 5) == 2
        assert readback.sequence_id(PRODUCER, 6) == 3
        assert readback.sequence_id(PRODUCER, 5) == 2
        assert readback.sequence_id(PRODUCER + 1, 5) == 4


class TestConcurrentReading:
    def test_concurrent_readers_read_each_packet_once(self) -> None:
        table = make_table(8 << 20)
        count = 20000
        write(table, *(packet(n) for n in range(count)))
        numbers: list[int | bytes] = []

        def read() -> None:
            readback = _native.Readback(table)
            for _ in range(200):
                data, _more = readback.read(BUFFER, 4096)
                numbers.extend(numbers_of(data))

        _native.Readback(table).begin(BUFFER)
        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(map(int, numbers)) == list(range(count))

    def test_no_packet_is_lost_while_threads_write_and_stats_are_read(self) -> None:
        table = make_table(1 << 20)
        arbiter = make_arbiter(table)
        done = threading.Event()

        def write_many() -> None:
            writer = _native.TraceWriter(arbiter, BUFFER)
            for number in range(20000):
                writer.write(packet(number))
            writer.close()

        threads = [threading.Thread(target=write_many) for _ in range(3)]
        for thread in threads:
            thread.start()

        def wait() -> None:
            for thread in threads:
                thread.join()
            done.set()

        waiter = threading.Thread(target=wait)
        waiter.start()
        readback = _native.Readback(table)
        while not done.is_set():
            read_all(table, readback=readback)
            table.stats(BUFFER)
        waiter.join()
        read_all(table, readback=readback)
        assert readback.packets == 60000
        assert readback.invalid_packets == 0
