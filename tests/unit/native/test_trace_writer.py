from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from stretto import _native
from stretto.protozero.wire import bytes_field
from tests.unit.native.pipeline import (
    BUFFER,
    RemoteProducer,
    make_arbiter,
    make_table,
    numbers_of,
    packet,
    packets_of,
    read_all,
)


class TestWritePacket:
    def test_packets_arrive_in_order(self) -> None:
        table = make_table()
        writer = _native.TraceWriter(make_arbiter(table), BUFFER)
        for number in range(1000):
            assert writer.write(packet(number))
        assert writer.packets_written == 1000
        writer.flush()
        assert numbers_of(read_all(table)) == list(range(1000))

    @pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
    def test_packet_can_be_any_contiguous_buffer(self, kind: Callable[[bytes], bytes]) -> None:
        table = make_table()
        writer = _native.TraceWriter(make_arbiter(table), BUFFER)
        assert writer.write(kind(packet(3)))
        writer.close()
        assert numbers_of(read_all(table)) == [3]

    def test_packets_of_a_trace_arrive_in_order_up_to_the_first_damaged_one(self) -> None:
        table = make_table()
        writer = _native.TraceWriter(make_arbiter(table), BUFFER)
        trace = b"".join(bytes_field(1, packet(number, number)) for number in range(300))
        writer.write_all(trace)
        writer.write_all(trace[:-1])
        writer.write_all(b"")
        writer.close()
        writer.write_all(trace)
        assert numbers_of(read_all(table)) == [*range(300), *range(299)]
        assert writer.packets_dropped == 1

    def test_packet_that_is_no_contiguous_buffer_is_an_error(self) -> None:
        writer = _native.TraceWriter(make_arbiter(make_table()), BUFFER)
        with pytest.raises(TypeError, match="packet must be bytes-like"):
            writer.write("text")  # type: ignore[arg-type]
        with pytest.raises(BufferError):
            writer.write(memoryview(b"abcd")[::2])

    def test_packet_larger_than_the_shared_memory_is_written(self) -> None:
        table = make_table(4 << 20)
        writer = _native.TraceWriter(make_arbiter(table, size=16384), BUFFER)
        assert writer.write(packet(1, 1 << 20))
        writer.close()
        (only,) = packets_of(read_all(table))
        assert only[900] == bytes(1 << 20)

    def test_packet_above_64_mb_is_dropped_and_counted(self) -> None:
        writer = _native.TraceWriter(make_arbiter(make_table()), BUFFER)
        assert not writer.write(bytes((64 << 20) + 1))
        assert writer.packets_dropped == 1

    def test_only_the_first_packet_of_a_sequence_is_marked_as_first(self) -> None:
        table = make_table()
        writer = _native.TraceWriter(make_arbiter(table), BUFFER)
        writer.write(packet(1))
        writer.write(packet(2))
        writer.close()
        assert [87 in p for p in packets_of(read_all(table))] == [True, False]


class TestCloseWriter:
    def test_closed_writer_frees_its_id_and_drops_packets(self) -> None:
        arbiter = make_arbiter(make_table())
        writer = _native.TraceWriter(arbiter, BUFFER)
        assert writer.writer_id == 1
        assert arbiter.live_writers == 1
        writer.close()
        writer.close()
        writer.flush()
        assert arbiter.live_writers == 0
        assert not writer.write(packet(1))
        assert writer.packets_dropped == 1

    def test_deleted_writer_is_closed(self) -> None:
        table = make_table()
        arbiter = make_arbiter(table)
        writer = _native.TraceWriter(arbiter, BUFFER)
        writer.write(packet(1))
        del writer
        assert arbiter.live_writers == 0
        assert numbers_of(read_all(table)) == [1]

    def test_writer_without_a_free_id_drops_packets_until_another_writer_is_closed(self) -> None:
        arbiter = make_arbiter(make_table())
        writers = [_native.TraceWriter(arbiter, BUFFER) for _ in range(32767)]
        assert len({w.writer_id for w in writers}) == 32767
        late = _native.TraceWriter(arbiter, BUFFER)
        assert late.writer_id == 0
        assert not late.write(packet(1))
        assert late.packets_dropped == 1
        writers.pop().close()
        assert _native.TraceWriter(arbiter, BUFFER).write(packet(1))


class TestArgumentsOfTraceWriter:
    def test_invalid_arguments_are_refused(self) -> None:
        arbiter = make_arbiter(make_table())
        with pytest.raises(TypeError, match="expected a Arbiter"):
            _native.TraceWriter(object(), BUFFER)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="target_buffer must be from 1 to 65535"):
            _native.TraceWriter(arbiter, 0)
        with pytest.raises(ValueError, match="policy must be from 0 to 2"):
            _native.TraceWriter(arbiter, BUFFER, policy=3)
        with pytest.raises(TypeError, match="no argument 'polecy'"):
            _native.TraceWriter(arbiter, BUFFER, polecy=3)  # type: ignore[call-arg]
        with pytest.raises(TypeError, match="twice"):
            _native.TraceWriter(arbiter, BUFFER, arbiter=arbiter)  # type: ignore[misc]
        with pytest.raises(TypeError, match="needs argument 'target_buffer'"):
            _native.TraceWriter(arbiter)  # type: ignore[call-arg]


@pytest.fixture
def patient_threads() -> Iterator[None]:
    """Let the interpreter switch threads only when a thread waits."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    yield
    sys.setswitchinterval(before)


class TestFullSharedMemory:
    def test_drop_policy_drops_a_packet_without_waiting(self) -> None:
        with RemoteProducer(8192) as remote:
            writer = _native.TraceWriter(remote.arbiter, BUFFER, _native.DROP)
            while writer.write(packet(1, 1000)):
                pass
            assert writer.drop_count == 1
            assert writer.packets_dropped == 1

    def test_packet_after_a_drop_is_marked_with_a_loss(self) -> None:
        with RemoteProducer(8192) as remote:
            writer = _native.TraceWriter(remote.arbiter, BUFFER, _native.DROP)
            while writer.write(packet(1, 1000)):
                pass
            remote.serve()
            assert writer.write(packet(2))
            writer.close()
            remote.serve()
            # Field 42 is `previous_packet_dropped`.
            assert int(packets_of(read_all(remote.table))[-1][42]) & 1

    def test_stall_policy_waits_without_the_gil(self) -> None:
        with RemoteProducer(8192) as remote:
            writer = _native.TraceWriter(remote.arbiter, BUFFER, _native.STALL)
            written: list[bool] = []

            def write() -> None:
                written.extend(writer.write(packet(n, 1000)) for n in range(50))
                writer.close()

            thread = threading.Thread(target=write)
            thread.start()
            # `serve_while` runs only if the other thread has released the GIL.
            remote.serve_while(thread)
            assert written == [True] * 50
            assert numbers_of(read_all(remote.table)) == list(range(50))

    @pytest.mark.usefixtures("patient_threads")
    def test_other_threads_cannot_write_or_close_while_the_owner_stalls(self) -> None:
        with RemoteProducer(8192) as remote:
            filler = _native.TraceWriter(remote.arbiter, BUFFER, _native.DROP)
            while filler.write(packet(1, 1000)):
                pass
            writer = _native.TraceWriter(remote.arbiter, BUFFER, _native.STALL)
            about_to_write = threading.Event()

            def write() -> None:
                about_to_write.set()
                writer.write(packet(2))

            thread = threading.Thread(target=write)
            thread.start()
            about_to_write.wait()
            assert not writer.write(packet(3))
            writer.flush()
            writer.close()  # The writer closes only after the other thread's write has ended.
            assert (writer.packets_dropped, remote.arbiter.live_writers) == (1, 2)
            remote.serve_while(thread)
            assert remote.arbiter.live_writers == 1
            assert numbers_of(read_all(remote.table))[-1] == 2
