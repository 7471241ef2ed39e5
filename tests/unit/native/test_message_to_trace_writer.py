"""Messages written directly into a trace writer, as packets of unknown size."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from stretto import _native
from stretto.base.errors import LocalProtocolError
from stretto.protos.trace import Trace, TracePacket
from tests.unit.native.pipeline import (
    BUFFER,
    make_arbiter,
    make_table,
    numbers_of,
    packet,
    read_all,
)


def packets(table: _native.BufferTable) -> list[Any]:
    return list(Trace.decode(read_all(table)).packet)


@pytest.fixture
def misuse_is_counted() -> Iterator[None]:
    """Count misuse of writers instead of raising an error, as without `-X dev`."""
    before = _native.raise_on_writer_misuse(False)
    yield
    _native.raise_on_writer_misuse(before)


def hold_every_chunk(arbiter: _native.Arbiter) -> list[_native.TraceWriter]:
    """Return writers that hold all chunks. The last writer in the list found no free chunk."""
    holders = []
    written = True
    while written:
        holders.append(_native.TraceWriter(arbiter, BUFFER))
        written = holders[-1].write(packet(1))
    return holders


class TestMessagesAsPackets:
    def test_each_message_is_one_packet(self) -> None:
        table = make_table()
        writer = _native.TraceWriter(make_arbiter(table), BUFFER)
        for number in range(500):
            with TracePacket.Writer(writer) as message:
                message.set_timestamp(number)
                with message.set_track_event() as event:
                    event.set_name("x" * (number % 200))
        writer.close()
        found = packets(table)
        assert [p.timestamp for p in found] == list(range(500))
        assert [len(p.track_event.name) for p in found] == [n % 200 for n in range(500)]
        assert writer.packets_written == 500

    def test_nested_messages_that_span_chunks_are_patched(self) -> None:
        table = make_table(4 << 20)
        writer = _native.TraceWriter(make_arbiter(table, size=32768), BUFFER)
        with TracePacket.Writer(writer) as message, message.set_for_testing() as event:
            event.set_str("begin")
            with event.set_payload() as payload:
                for number in range(3000):
                    payload.add_nested().set_single_int(number)
                    payload.add_str("y" * 10)
        writer.close()
        (only,) = packets(table)
        payload = only.for_testing.payload
        assert [each.single_int for each in payload.nested] == list(range(3000))
        assert payload.str == ["y" * 10] * 3000

    def test_messages_and_encoded_packets_keep_their_order(self) -> None:
        table = make_table()
        writer = _native.TraceWriter(make_arbiter(table), BUFFER)
        writer.write(packet(1))
        with TracePacket.Writer(writer) as message:
            message.set_timestamp(2)
        writer.write(packet(3))
        writer.flush()
        assert numbers_of(read_all(table)) == [1, 2, 3]


class TestMisuseOfMessages:
    def test_second_packet_of_a_writer_is_refused_while_the_first_is_open(self) -> None:
        table = make_table()
        writer = _native.TraceWriter(make_arbiter(table), BUFFER)
        message = TracePacket.Writer(writer)
        message.set_timestamp(1)
        with pytest.raises(LocalProtocolError, match="another packet open"):
            TracePacket.Writer(writer)
        assert not writer.write(packet(2))
        writer.flush()
        message.finalize()
        assert writer.packets_dropped == 1
        with pytest.raises(LocalProtocolError, match="finalize"):
            message.finish()
        writer.close()
        assert numbers_of(read_all(table)) == [1]

    def test_open_packet_can_be_finished_after_its_writer_is_closed(self) -> None:
        table = make_table()
        writer = _native.TraceWriter(make_arbiter(table), BUFFER)
        message = TracePacket.Writer(writer)
        writer.close()
        message.set_timestamp(1)
        message.finalize()
        assert numbers_of(read_all(table)) == [1]
        with pytest.raises(LocalProtocolError, match="closed"):
            TracePacket.Writer(writer)

    def test_deleted_unfinished_packet_is_finalized(self) -> None:
        table = make_table()
        writer = _native.TraceWriter(make_arbiter(table), BUFFER)
        child = TracePacket.Writer(writer).set_track_event()
        child.set_name("n")
        del child
        gc.collect()
        assert writer.write(packet(2))
        writer.close()
        assert [(p.timestamp, p.track_event is not None) for p in packets(table)] == [
            (0, True),
            (2, False),
        ]

    def test_message_keeps_a_reference_to_its_writer(self) -> None:
        table = make_table()
        message = TracePacket.Writer(_native.TraceWriter(make_arbiter(table), BUFFER))
        gc.collect()
        message.set_timestamp(9)
        del message
        assert numbers_of(read_all(table)) == [9]


class TestPacketLoss:
    def test_dropped_packet_is_counted_without_an_error(self) -> None:
        """Other writers hold all chunks of the shared memory."""
        arbiter = make_arbiter(make_table())
        holders = hold_every_chunk(arbiter)
        writer = holders[-1]
        before = writer.packets_dropped
        with TracePacket.Writer(writer) as message, message.set_for_testing() as event:
            for _ in range(10):
                event.set_str("z" * 10_000)
        assert writer.packets_dropped == before + 1

    @pytest.mark.usefixtures("misuse_is_counted")
    def test_other_threads_cannot_append_while_an_append_is_stalled(self) -> None:
        """A stalled append waits for a chunk without the GIL, and keeps the message locked."""
        table = make_table()
        arbiter = make_arbiter(table)
        writer = _native.TraceWriter(arbiter, BUFFER, _native.STALL)
        message = TracePacket.Writer(writer)
        child = message.set_for_testing()
        holders = hold_every_chunk(arbiter)
        thread = threading.Thread(target=child.set_str, args=("z" * 100_000,))
        before = _native.writer_misuse_count()
        thread.start()
        while thread.is_alive() and _native.writer_misuse_count() == before:
            child.append_raw(b"")  # `append_raw` is refused while the other thread appends.
        refused = _native.writer_misuse_count() - before
        for holder in holders:
            holder.close()
        thread.join()
        message.finalize()
        writer.close()
        (only,) = (p.for_testing for p in packets(table) if p.for_testing)
        assert only.str == "z" * 100_000
        assert refused == 1
