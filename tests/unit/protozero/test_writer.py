from __future__ import annotations

import pytest

from stretto.base.errors import ConfigError, LocalProtocolError
from stretto.protos import trace
from stretto.protos.trace import TracePacket
from stretto.protozero.message import Message
from stretto.protozero.table import Table
from stretto.protozero.writer import MessageWriter


@pytest.fixture
def sample() -> type[Message]:
    """The message of the ProtoZero paper: `nested {int_val: 42, str_val: "foo"}`, and more."""
    table = Table(
        __name__,
        {
            "Sample": "nested 3 message:Sample.Nested\nmany 4 message:Sample.Nested repeated\n"
            "packed 5 uint32 packed\nplain 6 sint32 repeated\nmap 7 map:string,uint32",
            "Sample.Nested": "int_val 1 int32\nstr_val 2 string",
        },
        {},
    )
    return table.find("Sample")


class TestNested:
    def test_short_message_gets_one_byte_of_length(self, sample: type[Message]) -> None:
        writer = sample.Writer()
        with writer.set_nested() as nested:
            nested.set_int_val(42)
            nested.set_str_val("foo")
        assert writer.finish() == bytes.fromhex("1a07 082a 1203") + b"foo"

    @pytest.mark.parametrize("length", [127, 128])
    def test_lengths_above_127_stay_redundant(self, length: int) -> None:
        writer = MessageWriter()
        with writer.nested(3, MessageWriter) as nested:
            nested.append_raw(b"x" * length)
        size = b"\x7f" if length == 127 else b"\x80\x81\x80\x00"
        assert writer.finish() == b"\x1a" + size + b"x" * length

    def test_inner_compaction_counts_in_outer_lengths(self) -> None:
        writer = MessageWriter()
        with writer.nested(1, MessageWriter) as outer:
            outer.append_raw(b"y" * 120)
            with outer.nested(2, MessageWriter) as inner:
                inner.append_raw(b"zzzzz")
        assert writer.finish() == b"\x0a\x7f" + b"y" * 120 + b"\x12\x05zzzzz"

    def test_empty_message(self) -> None:
        writer = MessageWriter()
        writer.nested(1, MessageWriter)
        assert writer.finish() == b"\x0a\x00"

    def test_appending_to_a_parent_ends_its_descendants(self) -> None:
        writer = MessageWriter()
        child = writer.nested(1, MessageWriter)
        grandchild = child.nested(2, MessageWriter)
        grandchild.append_varint(3, 1)
        writer.append_varint(4, 1)
        for ended in (child, grandchild):
            with pytest.raises(LocalProtocolError, match="has ended"):
                ended.append_varint(1, 1)
        assert writer.finish() == bytes.fromhex("0a04 1202 1801 2001")

    def test_finalizing_twice_is_harmless(self) -> None:
        writer = MessageWriter()
        with writer.nested(1, MessageWriter) as child:
            child.finalize()
            child.finalize()
        assert writer.finish() == b"\x0a\x00"

    def test_an_exception_ends_the_message_too(self) -> None:
        writer = MessageWriter()
        child = writer.nested(1, MessageWriter)
        child.append_varint(1, 1)
        with pytest.raises(KeyError), child:
            raise KeyError
        with pytest.raises(LocalProtocolError):
            child.append_varint(1, 1)
        assert writer.finish() == b"\x0a\x02\x08\x01"


class TestMisuse:
    def test_a_finished_message_is_not_written(self) -> None:
        writer = TracePacket.Writer()
        writer.finish()
        with pytest.raises(LocalProtocolError, match=r"TracePacket\.Writer has ended"):
            writer.set_timestamp(1)
        with pytest.raises(LocalProtocolError, match="has ended"):
            writer.finish()

    def test_nested_messages_have_no_bytes_of_their_own(self) -> None:
        child = TracePacket.Writer().set_track_event()
        with pytest.raises(LocalProtocolError, match="outermost"):
            child.finish()

    def test_too_long_for_four_bytes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("stretto.protozero.writer.MAX_SIZE", 200)
        writer = MessageWriter()
        child = writer.nested(1, MessageWriter)
        child.append_raw(bytes(201))
        with pytest.raises(LocalProtocolError, match="201 bytes"):
            writer.append_varint(1, 1)

    def test_refused_values_leave_no_trace(self) -> None:
        writer = TracePacket.Writer()
        with pytest.raises(ConfigError, match=r"TracePacket\.timestamp: expected uint64"):
            writer.set_timestamp(-1)
        writer.set_timestamp(1)
        assert writer.finish() == b"\x40\x01"


class TestPrimitives:
    def test_every_wire_type(self) -> None:
        writer = MessageWriter()
        writer.append_varint(1, -1)
        writer.append_fixed32(2, -2)
        writer.append_fixed64(3, 3)
        writer.append_bytes(4, "é")
        writer.append_bytes(5, memoryview(b"\0\1"))
        writer.append_raw(b"\x30\x07")
        assert writer.finish() == bytes.fromhex(
            "08ffffffffffffffffff01 15feffffff 190300000000000000 2202c3a9 2a020001 3007"
        )

    def test_a_view_of_wider_elements_counts_in_bytes(self) -> None:
        writer = MessageWriter()
        writer.append_bytes(1, memoryview(b"\1\2\3\4").cast("I"))
        assert writer.finish() == b"\x0a\x04\1\2\3\4"


class TestGenerated:
    def test_writes_what_the_value_class_reads(self) -> None:
        writer = TracePacket.Writer()
        writer.set_timestamp(5)
        with writer.set_for_testing() as event:
            event.set_str("x" * 200)
            with event.set_payload() as payload:
                for text in ("a", "b"):
                    payload.add_str(text)
                payload.add_nested().set_single_int(-1)
        assert TracePacket.decode(writer.finish()) == TracePacket(
            timestamp=5,
            for_testing=trace.TestEvent(
                str="x" * 200,
                payload=trace.TestEvent.TestPayload(
                    str=["a", "b"], nested=[trace.TestEvent.TestPayload(single_int=-1)]
                ),
            ),
        )

    def test_repeated_packed_and_maps(self, sample: type[Message]) -> None:
        writer = sample.Writer()
        writer.set_packed([1, 300])
        writer.add_plain(-1)
        writer.add_plain(1)
        writer.add_map("k", 5)
        writer.add_many().set_int_val(1)
        message = sample.decode(writer.finish())
        assert message.packed == [1, 300]
        assert message.plain == [-1, 1]
        assert message.map == {"k": 5}
        assert [each.int_val for each in message.many] == [1]
