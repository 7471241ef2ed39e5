from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import pytest

from stretto.base.errors import ConfigError, DecodeError
from stretto.protos.config import DataSourceConfig, TraceConfig
from stretto.protos.trace import DebugAnnotation, TracePacket, TrackEvent
from stretto.protozero import wire
from stretto.protozero.message import MAX_DEPTH, Message
from stretto.protozero.table import Table

Buffer = TraceConfig.BufferConfig

SAMPLE = """\
number 1 int32
text 2 string default=a\\x20b
choice 3 enum:Sample.Choice default=SECOND
flag 4 bool default=true
ratio 5 double default=0.5
blob 6 bytes default=\\x00\\xff
child 7 message:Sample
one 8 uint32 oneof=pick
other 9 message:Sample oneof=pick
third 10 string oneof=pick
list 11 int32 repeated
tight 12 sint32 packed
doubles 13 double packed
children 14 message:Sample repeated
counts 15 map:string,int64
kids 16 map:int32,message:Sample
plain 17 int32 implicit
small 18 float
plain_ratio 19 double implicit
words 20 string repeated
"""
Sample: Any = Table(__name__, {"Sample": SAMPLE}, {"Sample.Choice": "FIRST=1 SECOND=2"}).find(
    "Sample"
)


class TestMessageConstructor:
    def test_keywords_set_fields(self) -> None:
        config = TraceConfig(buffers=[Buffer(size_kb=64)], duration_ms=10)
        assert config.buffers[0].size_kb == 64
        assert config.encode() == bytes.fromhex("0a020840 180a")

    def test_keyword_argument_none_leaves_the_field_unset(self) -> None:
        assert TraceConfig(duration_ms=None) == TraceConfig()

    def test_error_for_an_unknown_keyword_suggests_a_similar_name(self) -> None:
        with pytest.raises(ConfigError, match="no field 'durtion_ms'; did you mean 'duration_ms'"):
            TraceConfig(durtion_ms=1)  # type: ignore[call-arg]

    @pytest.mark.parametrize(
        ("field", "value", "complaint"),
        [
            (
                "duration_ms",
                -1,
                r"TraceConfig\.duration_ms: expected uint32 \(0 to 4294967295\), got -1",
            ),
            ("duration_ms", 1 << 32, "expected uint32"),
            ("duration_ms", 1.0, "expected uint32"),
            ("duration_ms", "1", "expected uint32"),
            ("duration_ms", int, "expected uint32"),
            ("trace_uuid_msb", 1 << 63, "expected int64"),
            ("lockdown_mode", "LOCKDOWN_SET", "expected enum"),
            ("write_into_file", "yes", "expected bool, got 'yes'"),
            ("output_path", b"/tmp", r"expected string, got b'/tmp'"),
            ("output_path", "\ud800", "can't be encoded"),
            ("buffers", Buffer(), "expected a list of TraceConfig.BufferConfig"),
            ("buffers", [3], r"TraceConfig\.buffers: expected TraceConfig\.BufferConfig, got 3"),
            ("activate_triggers", "name", "expected a list of string"),
            ("trigger_config", TraceConfig(), r"expected TraceConfig\.TriggerConfig"),
        ],
    )
    def test_error_for_an_invalid_value_contains_field_type_and_range(
        self, field: str, value: object, complaint: str
    ) -> None:
        with pytest.raises(ConfigError, match=complaint):
            TraceConfig(**{field: value})  # type: ignore[arg-type]

    def test_long_values_are_truncated_in_errors(self) -> None:
        with pytest.raises(ConfigError) as error:
            TraceConfig(duration_ms="x" * 10_000)  # type: ignore[arg-type]
        assert len(str(error.value)) < 200

    def test_values_of_a_wrong_type_are_refused(self) -> None:
        for wrong in (
            {"ratio": "1"},
            {"small": 1e39},
            {"small": "x"},
            {"blob": "x"},
            {"counts": [1]},
        ):
            with pytest.raises(ConfigError, match=rf"Sample\.{next(iter(wrong))}"):
                Sample(**wrong)
        with pytest.raises(ConfigError, match=r"Sample\.counts: expected string"):
            Sample(counts={1: 1})
        with pytest.raises(ConfigError, match=r"Sample\.counts: expected int64"):
            Sample(counts={"a": "b"})


class TestReadingFields:
    def test_unset_fields_have_their_defaults(self) -> None:
        empty = Sample()
        assert (empty.number, empty.text, empty.choice, empty.flag) == (0, "a b", 2, True)
        assert (empty.ratio, empty.blob, empty.child, empty.small) == (0.5, b"\0\xff", None, 0.0)
        assert (empty.list, empty.counts) == ([], {})
        assert not any(empty.has(name) for name in Sample.LAYOUT.by_name)
        assert empty.encode() == b""
        assert empty == Sample()

    def test_list_read_from_a_message_can_be_appended_to(self) -> None:
        message = Sample()
        message.list.append(3)
        message.counts["a"] = 1
        assert message.encode() == bytes.fromhex("5803 7a05 0a0161 1001")
        assert message.has("list")

    def test_list_elements_are_checked_when_encoded(self) -> None:
        message = Sample()
        message.list.append("three")
        with pytest.raises(ConfigError, match=r"Sample\.list: expected int32"):
            message.encode()

    def test_unknown_field_names_are_errors(self) -> None:
        message = Sample()
        with pytest.raises(AttributeError, match="no field 'nmuber'"):
            message.nmuber  # noqa: B018
        with pytest.raises(ConfigError, match="did you mean 'number'"):
            message.nmuber = 1
        for method in (message.has, message.clear, message.which_oneof):
            with pytest.raises(ConfigError):
                method("nmuber")


class TestFieldAssignment:
    def test_assigned_value_is_checked_immediately(self) -> None:
        config = TraceConfig()
        with pytest.raises(ConfigError, match="duration_ms"):
            config.duration_ms = -5
        assert not config.has("duration_ms")

    def test_values_are_converted_to_the_type_of_their_field(self) -> None:
        message = Sample(number=True, flag=0, ratio=1, small=0.1, blob=bytearray(b"x"), list=(1, 2))
        assert type(message.number) is int
        assert message.flag is False
        assert type(message.ratio) is float
        assert message.small == Sample.decode(message.encode()).small != 0.1
        assert type(message.blob) is bytes
        assert message.list == [1, 2]

    def test_fields_are_unset_by_none_del_and_clear(self) -> None:
        message = Sample(number=1, text="x", child=Sample())
        message.number = None
        del message.text
        message.clear("child")
        assert message == Sample()

    def test_setting_one_field_of_a_oneof_clears_its_other_fields(self) -> None:
        message = Sample(one=1)
        assert message.which_oneof("pick") == "one"
        message.other = Sample()
        assert message.which_oneof("pick") == "other"
        assert not message.has("one")
        message.third = ""
        assert message.which_oneof("pick") == "third"
        message.third = None
        assert message.which_oneof("pick") is None

    def test_assigned_lists_are_copied(self) -> None:
        mine = [1]
        message = Sample(list=mine)
        mine.append(2)
        assert message.list == [1]


class TestFieldPresence:
    def test_zero_with_explicit_presence_is_written(self) -> None:
        message = Sample(number=0)
        assert message.has("number")
        assert message.encode() == b"\x08\x00"
        assert message != Sample()
        assert Sample.decode(b"\x08\x00").has("number")

    def test_zero_without_explicit_presence_is_not_written(self) -> None:
        message = Sample(plain=5)
        message.plain = 0
        assert not message.has("plain")
        assert message.encode() == b""
        assert not Sample.decode(bytes.fromhex("8801 00")).has("plain")

    def test_negative_zero_without_explicit_presence_is_written(self) -> None:
        decoded = Sample.decode(Sample(plain_ratio=-0.0).encode())
        assert math.copysign(1, decoded.plain_ratio) == -1

    def test_empty_nested_message_is_present(self) -> None:
        message = Sample.decode(Sample(child=Sample()).encode())
        assert message.has("child")
        assert message.child == Sample()


class TestMessageEncoding:
    @pytest.mark.parametrize(
        ("values", "encoded"),
        [
            ({"number": -1}, "08ffffffffffffffffff01"),
            ({"text": "é"}, "1202c3a9"),
            ({"ratio": 1.5}, "29000000000000f83f"),
            ({"list": [1, -1]}, "5801 58ffffffffffffffffff01"),
            ({"tight": [0, -1, 64]}, "6204 00018001"),
            ({"doubles": [1.5]}, "6a08 000000000000f83f"),
            ({"tight": []}, ""),
            ({"small": 1.5}, "9501 0000c03f"),
            ({"kids": {2: Sample(number=1)}}, "820106 0802 12020801"),
        ],
    )
    def test_values_are_encoded_and_decoded(self, values: dict[str, Any], encoded: str) -> None:
        message = Sample(**values)
        assert message.encode() == bytes.fromhex(encoded)
        assert Sample.decode(message.encode()) == message

    def test_fields_are_encoded_in_declaration_order(self) -> None:
        packet = TracePacket(trusted_uid=1, timestamp=2)
        packet.track_event = TrackEvent()
        assert packet.encode() == bytes.fromhex("4002 5a00 1801")
        assert list(packet.set_fields()) == ["timestamp", "track_event", "trusted_uid"]


class TestMessageDecoding:
    def test_any_object_with_the_buffer_protocol_is_decoded(self) -> None:
        data = b"\x08\x05"
        for buffer in (data, bytearray(data), memoryview(data)):
            assert Sample.decode(buffer).number == 5

    def test_last_value_of_a_field_is_kept(self) -> None:
        assert Sample.decode(bytes.fromhex("0801 0802")).number == 2

    def test_occurrences_of_a_singular_message_are_merged(self) -> None:
        data = Sample(child=Sample(number=1, list=[1])).encode()
        data += Sample(child=Sample(text="x", list=[2])).encode()
        assert Sample.decode(data).child == Sample(number=1, text="x", list=[1, 2])

    def test_last_field_of_a_oneof_is_kept(self) -> None:
        message = Sample.decode(Sample(one=1).encode() + Sample(third="x").encode())
        assert message == Sample(third="x")

    def test_packed_and_unpacked_elements_are_both_decoded(self) -> None:
        assert Sample.decode(bytes.fromhex("5a03 010203 5804")).list == [1, 2, 3, 4]
        assert Sample.decode(bytes.fromhex("6001 6002")).tight == [-1, 1]

    def test_redundant_length_is_decoded(self) -> None:
        assert Sample.decode(bytes.fromhex("3a82808000 0805")).child == Sample(number=5)

    def test_integers_are_truncated_to_the_width_of_their_type(self) -> None:
        assert Sample.decode(wire.varint_field(1, 2**32 + 5)).number == 5
        assert Sample.decode(wire.varint_field(8, 2**40 + 6)).one == 6
        assert Sample.decode(wire.varint_field(4, 2**40)).flag is True

    def test_unknown_enum_values_are_kept(self) -> None:
        message = Sample.decode(wire.varint_field(3, 99))
        assert message.choice == 99
        assert message.encode() == wire.varint_field(3, 99)

    def test_strings_that_are_not_utf8_are_kept(self) -> None:
        data = wire.bytes_field(2, b"a\xff\xfe")
        message = Sample.decode(data)
        assert message.text == "a\udcff\udcfe"
        assert message.encode() == data
        assert Sample(text=message.text).encode() == data

    def test_map_entries_may_lack_key_or_value(self) -> None:
        assert Sample.decode(bytes.fromhex("7a00")).counts == {"": 0}
        assert Sample.decode(bytes.fromhex("820102 0805")).kids == {5: Sample()}
        assert Sample.decode(bytes.fromhex("7a07 1005 0a0161 1801")).counts == {"a": 5}

    @pytest.mark.parametrize(
        ("encoded", "offset"),
        [
            ("0805 00", 2),
            ("0805 08", 3),
            ("0805 1205 61", 2),
            ("0805 0b", 2),
            ("0805 2d00", 2),
            ("0805 3a02 0880", 5),
            ("0805 3a01 08", 5),
            ("0805 5a02 0180", 5),
            ("0805 6a07 01020304050607", 4),
            ("0805 7a02 0a05", 4),
        ],
    )
    def test_error_for_malformed_input_contains_the_offset(self, encoded: str, offset: int) -> None:
        with pytest.raises(DecodeError, match=rf"at offset {offset}$|at offset {offset} "):
            Sample.decode(bytes.fromhex(encoded))

    def test_nesting_depth_is_limited(self) -> None:
        data = b""
        for _ in range(MAX_DEPTH):
            data = wire.bytes_field(7, data)
        Sample.decode(data)
        for field in (7, 14, 16):
            deeper = wire.bytes_field(2, data) if field == 16 else data
            with pytest.raises(DecodeError, match="deeper than 100"):
                Sample.decode(wire.bytes_field(field, deeper))

    def test_part_of_a_buffer_can_be_merged(self) -> None:
        message = Sample()
        message.merge_encoded(b"\xff\x08\x05\xff", 1, 3)
        assert message.number == 5
        with pytest.raises(DecodeError):
            message.merge_encoded(b"\x08", 0, 100)


class TestUnknownFields:
    DATA = bytes.fromhex("0805 b80c8180808000 c20c03616263 0d01000000 c90c0102030405060708")

    def test_unknown_fields_are_kept_byte_for_byte(self) -> None:
        message = Sample.decode(self.DATA)
        assert message.number == 5
        assert message.unknown_fields == self.DATA[2:]
        assert message.encode() == self.DATA

    def test_unknown_fields_are_encoded_after_known_fields(self) -> None:
        message = Sample.decode(self.DATA[2:] + self.DATA[:2])
        assert message.encode() == self.DATA

    def test_unknown_fields_of_nested_messages_are_kept(self) -> None:
        data = wire.bytes_field(7, self.DATA) + wire.bytes_field(14, self.DATA)
        assert Sample.decode(data).encode() == data

    def test_field_of_a_wrong_wire_type_is_unknown(self) -> None:
        for data in ("1205", "0d01000000", "0a00", "3805", "7805", "5d01000000"):
            raw = bytes.fromhex(data)
            raw += b"12345" if data == "1205" else b""
            message = Sample.decode(raw)
            assert message.encode() == raw
        assert Sample.decode(bytes.fromhex("3805")).unknown_fields == bytes.fromhex("3805")
        assert Sample.decode(bytes.fromhex("3805")).child is None

    def test_messages_with_different_unknown_fields_are_unequal(self) -> None:
        assert Sample.decode(self.DATA) == Sample.decode(self.DATA)
        assert Sample.decode(self.DATA) != Sample(number=5)

    def test_unknown_fields_can_be_removed(self) -> None:
        message = Sample.decode(self.DATA)
        message.unknown_fields = b""
        assert message == Sample(number=5)

    @pytest.mark.parametrize("no_bytes", [3, "abc", None, [1, 2]])
    def test_unknown_fields_of_another_type_than_bytes_are_refused(self, no_bytes: Any) -> None:
        with pytest.raises(TypeError):
            Sample.decode(no_bytes)
        with pytest.raises(TypeError):
            Sample().unknown_fields = no_bytes

    def test_config_with_newer_fields_is_encoded_unchanged(self) -> None:
        data = wire.bytes_field(1, b"x") + wire.bytes_field(5000, b"newer")
        assert DataSourceConfig.decode(data).encode() == data


class TestMergeMessages:
    def test_merge_copies_set_fields_and_appends_lists(self) -> None:
        message = Sample(
            number=1, text="x", list=[1], child=Sample(number=1), counts={"a": 1}, one=1
        )
        message.merge(
            Sample(number=2, list=[2], child=Sample(text="y"), counts={"a": 2, "b": 3}, third="z")
        )
        assert message == Sample(
            number=2,
            text="x",
            list=[1, 2],
            child=Sample(number=1, text="y"),
            counts={"a": 2, "b": 3},
            third="z",
        )

    def test_merge_gives_the_same_message_as_decoding_the_joined_bytes(self) -> None:
        one = Sample(children=[Sample(number=1)], kids={1: Sample(number=1)})
        two = Sample(
            children=[Sample(number=2)], kids={1: Sample(text="t")}, child=Sample(number=3)
        )
        joined = Sample.decode(one.encode() + two.encode())
        one.merge(two)
        assert one == joined

    def test_copy_shares_no_values_with_its_source(self) -> None:
        child = Sample(number=1)
        source = Sample(child=child, children=[child], kids={1: child}, words=["a"])
        message = source.copy()
        assert message == source
        child.number = 2
        source.words.append("b")
        assert message.child.number == message.children[0].number == message.kids[1].number == 1
        assert message.words == ["a"]

    def test_merge_copies_unknown_fields(self) -> None:
        message = Sample()
        message.merge(Sample.decode(TestUnknownFields.DATA))
        assert message.encode() == TestUnknownFields.DATA


class TestPythonSpecialMethods:
    def test_equality_is_by_value_and_class(self) -> None:
        assert Buffer(size_kb=1) == Buffer(size_kb=1)
        assert Buffer(size_kb=1) != Buffer(size_kb=2)
        assert Buffer() != TraceConfig()
        assert Buffer() != 5

    def test_message_is_not_hashable(self) -> None:
        with pytest.raises(TypeError):
            hash(Buffer())

    def test_repr_is_a_constructor_call(self) -> None:
        config = TraceConfig(buffers=[Buffer(size_kb=64)], duration_ms=10)
        text = "TraceConfig(buffers=[TraceConfig.BufferConfig(size_kb=64)], duration_ms=10)"
        assert repr(config) == text
        assert eval(text) == config
        assert repr(Sample.decode(b"\xb8\x0c\x01")) == r"Sample(unknown_fields=b'\xb8\x0c\x01')"

    def test_message_can_be_copied_and_pickled(self) -> None:
        config = TraceConfig(buffers=[Buffer(size_kb=64)], duration_ms=10)
        for duplicate in (
            copy.copy(config),
            copy.deepcopy(config),
            pickle.loads(pickle.dumps(config)),
        ):
            assert duplicate == config
        assert pickle.loads(pickle.dumps(config.buffers[0])) == Buffer(size_kb=64)

    def test_base_class_is_an_empty_message(self) -> None:
        assert Message().encode() == b""
        assert Message.decode(b"\x08\x01").unknown_fields == b"\x08\x01"

    def test_recursive_message_is_encoded_and_decoded(self) -> None:
        annotation = DebugAnnotation(
            name="dict", dict_entries=[DebugAnnotation(name="key", int_value=-1)]
        )
        assert DebugAnnotation.decode(annotation.encode()) == annotation
