"""Message writers: nested messages, misuse, and the values of each field type."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest

from stretto.base.errors import ConfigError, LocalProtocolError
from stretto.protos import trace
from stretto.protos.trace import TracePacket
from stretto.protozero import wire
from stretto.protozero.message import Message

native = pytest.importorskip("stretto._native")


class TestNestedMessages:
    def test_short_message_has_a_length_of_one_byte(self, sample: type[Message]) -> None:
        writer = sample.Writer()
        with writer.set_nested() as nested:
            nested.set_int_val(42)
            nested.set_str_val("foo")
        assert writer.finish() == bytes.fromhex("1a07 082a 1203") + b"foo"

    @pytest.mark.parametrize("length", [127, 128])
    def test_lengths_above_127_have_four_bytes(self, root: type[Any], length: int) -> None:
        writer = root()
        with writer.nested(3, root) as nested:
            nested.append_raw(b"x" * length)
        size = b"\x7f" if length == 127 else b"\x80\x81\x80\x00"
        assert writer.finish() == b"\x1a" + size + b"x" * length

    def test_length_of_an_outer_message_is_correct_if_inner_lengths_are_shortened(
        self, root: type[Any]
    ) -> None:
        writer = root()
        with writer.nested(1, root) as outer:
            outer.append_raw(b"y" * 120)
            with outer.nested(2, root) as inner:
                inner.append_raw(b"zzzzz")
        assert writer.finish() == b"\x0a\x7f" + b"y" * 120 + b"\x12\x05zzzzz"

    def test_empty_nested_message_has_length_0(self, root: type[Any]) -> None:
        writer = root()
        writer.nested(1, root)
        assert writer.finish() == b"\x0a\x00"

    @pytest.mark.usefixtures("raises")
    def test_appending_to_a_message_ends_its_nested_messages(self, root: type[Any]) -> None:
        writer = root()
        child = writer.nested(1, root)
        grandchild = child.nested(2, root)
        grandchild.append_varint(3, 1)
        writer.append_varint(4, 1)
        for ended in (child, grandchild):
            with pytest.raises(LocalProtocolError, match="has ended"):
                ended.append_varint(1, 1)
        assert writer.finish() == bytes.fromhex("0a04 1202 1801 2001")

    def test_second_finalize_does_nothing(self, root: type[Any]) -> None:
        writer = root()
        with writer.nested(1, root) as child:
            child.finalize()
            child.finalize()
        assert writer.finish() == b"\x0a\x00"

    @pytest.mark.usefixtures("raises")
    def test_exception_in_the_block_ends_the_message(self, root: type[Any]) -> None:
        writer = root()
        child = writer.nested(1, root)
        child.append_varint(1, 1)
        with pytest.raises(KeyError), child:
            raise KeyError
        with pytest.raises(LocalProtocolError):
            child.append_varint(1, 1)
        assert writer.finish() == b"\x0a\x02\x08\x01"

    def test_unreferenced_nested_writers_write_their_fields(self, sample: type[Message]) -> None:
        writer = sample.Writer()
        writer.set_nested().set_inner().set_inner().set_int_val(7)
        writer.add_many().set_int_val(8)
        message = sample.decode(writer.finish())
        assert message.nested.inner.inner.int_val == 7
        assert message.many[0].int_val == 8

    def test_nested_writer_can_be_used_after_its_root_is_deleted(
        self, sample: type[Message]
    ) -> None:
        child = sample.Writer().set_nested()
        child.set_int_val(1)
        with child.set_inner() as inner:
            inner.set_str_val("x" * 10_000)
        child.finalize()

    def test_2000_levels_of_messages_are_written(self, root: type[Any]) -> None:
        writer = deepest = root()
        for _ in range(2000):
            deepest = deepest.nested(1, root)
        deepest.append_varint(2, 3)
        data, depth = memoryview(writer.finish()), 0
        while data[0] == 0x0A:
            size, start = wire.read_varint(data, 1, len(data))
            assert size == len(data) - start
            data, depth = data[start:], depth + 1
        assert (bytes(data), depth) == (b"\x10\x03", 2000)

    def test_writer_size_counts_completed_messages(self, root: type[Any]) -> None:
        writer = root()
        child = writer.nested(1, root)
        child.append_raw(b"x" * 5)
        assert child.size == 5
        writer.append_varint(1, 1)
        assert writer.size == 9
        writer.finish()
        assert writer.size == 9


class TestMisuseOfWriters:
    @pytest.mark.usefixtures("raises")
    def test_write_to_a_finished_message_is_an_error(self, sample: type[Message]) -> None:
        writer = sample.Writer()
        writer.finish()
        with pytest.raises(LocalProtocolError, match=r"Sample\.Writer has ended"):
            writer.add_plain(1)
        with pytest.raises(LocalProtocolError, match="has ended"):
            writer.finish()
        with pytest.raises(LocalProtocolError, match="has ended"):
            writer.set_nested()

    @pytest.mark.usefixtures("raises")
    def test_write_to_a_message_after_its_sibling_began_is_an_error(
        self, sample: type[Message]
    ) -> None:
        writer = sample.Writer()
        first, second = writer.add_many(), writer.add_many()
        for write in (lambda: first.set_int_val(1), first.set_inner, lambda: first.set_str_val("")):
            with pytest.raises(LocalProtocolError, match="has ended"):
                write()
        first.finalize()  # Finalizing a message again has no effect.
        second.set_int_val(2)
        assert writer.finish() == bytes.fromhex("2200 2202 0802")

    @pytest.mark.usefixtures("ignores")
    def test_misuse_outside_of_dev_mode_is_counted_and_ignored(
        self, sample: type[Message], implementation: ModuleType
    ) -> None:
        before = implementation.writer_misuse_count()
        writer = sample.Writer()
        first, second = writer.add_many(), writer.add_many()
        first.set_int_val(1)
        first.set_str_val("lost")
        lost = first.set_inner()
        lost.set_int_val(5)
        lost.set_inner().set_int_val(6)
        lost.finalize()
        second.set_int_val(2)
        assert writer.finish() == bytes.fromhex("2200 2202 0802")
        writer.set_packed([1])
        assert implementation.writer_misuse_count() - before == 7

    def test_misuse_raises_in_dev_mode(self) -> None:
        code = (
            "from stretto.protozero.writer import MessageWriter as W\n"
            "w = W(); w.finish()\n"
            "try: w.append_varint(1, 1)\n"
            "except Exception as error: print(type(error).__name__)\n"
            "else: print('ignored')"
        )
        for options, output in (("-Xdev",), "LocalProtocolError"), ((), "ignored"):
            done = subprocess.run(
                [sys.executable, *options, "-c", code], capture_output=True, text=True, check=True
            )
            assert done.stdout.strip() == output

    def test_nested_message_cannot_be_finished(self, sample: type[Message]) -> None:
        child = sample.Writer().set_nested()
        with pytest.raises(LocalProtocolError, match="outermost"):
            child.finish()

    def test_refused_values_write_nothing(self, sample: type[Message]) -> None:
        writer = sample.Writer()
        with pytest.raises(ConfigError, match=r"Sample\.plain: expected sint32"):
            writer.add_plain(1 << 31)
        with pytest.raises(ConfigError, match=r"Sample\.packed: expected uint32"):
            writer.set_packed([1, 2, -1])
        with pytest.raises(ConfigError, match=r"Sample\.packed: expected uint32"):
            writer.set_packed("12")
        writer.add_plain(1)
        assert writer.finish() == b"\x30\x02"

    def test_invalid_field_numbers_and_arguments_are_refused(self, root: type[Any]) -> None:
        writer = root()
        for number in (0, -1, 1 << 29):
            with pytest.raises(ValueError, match="number must be"):
                writer.append_varint(number, 1)
            with pytest.raises(ValueError, match="number must be"):
                writer.nested(number, root)
        for append in (writer.append_varint, writer.append_fixed64):
            with pytest.raises((TypeError, AttributeError)):
                append(1, "x")
        with pytest.raises(TypeError):
            root(5, 6)
        assert writer.finish() == b""

    def test_native_writer_methods_refuse_wrong_writers_and_arguments(self) -> None:
        method = TracePacket.Writer.set_timestamp
        for arguments in ((), (None, 1), (native.MessageWriter(), 1), (trace.TrackEvent.Writer(),)):
            with pytest.raises(TypeError, match="set_timestamp"):
                method(*arguments)
        writer = TracePacket.Writer()
        for arguments in ((), (1, 2)):
            with pytest.raises(TypeError, match="exactly one argument"):
                writer.set_timestamp(*arguments)
        with pytest.raises(TypeError):
            writer.set_timestamp(value=1)
        with pytest.raises(TypeError, match="no arguments"):
            writer.set_track_event(1)
        with pytest.raises(TypeError, match="class of writers"):
            writer.nested(1, int)
        assert writer.finish() == b""

    def test_native_writer_classes_are_immutable(self) -> None:
        made = TracePacket.Writer
        for name in ("set_timestamp", "__fields__", "new"):
            with pytest.raises(TypeError, match="immutable"):
                setattr(made, name, None)
        with pytest.raises(TypeError, match="base type"):
            type("Mine", (made,), {})
        for rows in ([()], [("a", 0, "int32", False, int)], [("a", 1, "?", False, int)], [5]):
            with pytest.raises((TypeError, ValueError)):
                native.make_writer_class("Writer", rows, {"__slots__": ()})
        with pytest.raises(ValueError, match="__slots__"):
            native.make_writer_class("Writer", [], {})


class TestPrimitiveFields:
    def test_fields_of_every_wire_type_are_written(self, root: type[Any]) -> None:
        writer = root()
        writer.append_varint(1, -1)
        writer.append_fixed32(2, -2)
        writer.append_fixed64(3, 3)
        writer.append_bytes(4, "é")
        writer.append_bytes(5, memoryview(b"\0\1"))
        writer.append_raw(b"\x30\x07")
        assert writer.finish() == bytes.fromhex(
            "08ffffffffffffffffff01 15feffffff 190300000000000000 2202c3a9 2a020001 3007"
        )

    def test_memoryview_of_wide_elements_is_written_as_bytes(self, root: type[Any]) -> None:
        writer = root()
        writer.append_bytes(1, memoryview(b"\1\2\3\4").cast("I"))
        assert writer.finish() == b"\x0a\x04\1\2\3\4"

    def test_large_messages_keep_every_byte(self, root: type[Any]) -> None:
        data = bytes(range(256)) * 4000
        writer = root()
        with writer.nested(1, root) as nested:
            for _ in range(3):
                nested.append_bytes(2, data)
        ((size, start), whole) = wire.read_varint(out := writer.finish(), 1, 6), len(out)
        assert start + size == whole
        assert out[start:] == wire.bytes_field(2, data) * 3

    def test_consecutive_writers_may_write_messages_of_any_size(self, root: type[Any]) -> None:
        for size in (10, 5_000_000, 10, 100_000, 0):
            writer = root()
            writer.append_bytes(1, bytes(size))
            assert writer.finish() == wire.bytes_field(1, bytes(size))


class Index:
    """An object with `__index__` that is no int."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


class TestFieldValues:
    EDGES = (
        ("int32", -(1 << 31), (1 << 31) - 1, 0, 1, -1),
        ("int64", -(1 << 63), (1 << 63) - 1, 1 << 30, 1 << 60),
        ("uint32", 0, (1 << 32) - 1, 1 << 30),
        ("uint64", 0, (1 << 64) - 1, 1 << 63),
        ("sint32", -(1 << 31), (1 << 31) - 1, -1),
        ("sint64", -(1 << 63), (1 << 63) - 1),
        ("bool", True, False),
        ("enum", -1, 5),
        ("fixed32", 0, (1 << 32) - 1),
        ("fixed64", 0, (1 << 64) - 1),
        ("sfixed32", -(1 << 31), (1 << 31) - 1),
        ("sfixed64", -(1 << 63), (1 << 63) - 1),
        ("float", 0.5, float("inf"), 3.4e38, -0.0),
        ("double", 0.1, float("-inf"), 1e300),
        ("string", "", "é\0" * 100, "x" * 10_000, "\udcff"),
        ("bytes", b"", b"\xff" * 10_000),
        ("far", 1, 1 << 63),
    )

    def test_extreme_values_of_every_type_are_written(self, sample: type[Message]) -> None:
        for name, *values in self.EDGES:
            for value in values:
                writer = sample.Writer()
                getattr(writer.set_all(), f"set_{name}")(value)
                read = getattr(sample.decode(writer.finish()).all, name)
                if name == "float":
                    assert read == pytest.approx(value)
                    assert str(read)[0] == str(value)[0]
                else:
                    assert read == value, name

    def test_values_out_of_range_are_refused(self, sample: type[Message]) -> None:
        writer = sample.Writer().set_all()
        for name, low, high, *_ in self.EDGES:
            if isinstance(low, int) and name not in ("bool", "enum", "far"):
                for value in (low - 1, high + 1, 1 << 200, -(1 << 200), "1", 1.0, None):
                    with pytest.raises(ConfigError, match=rf"Kinds\.{name}"):
                        getattr(writer, f"set_{name}")(value)
        for name, value in (
            ("bool", 2),
            ("float", 1e300),
            ("float", "1"),
            ("string", b""),
            ("string", "\ud800"),
            ("bytes", "x"),
        ):
            with pytest.raises(ConfigError, match=rf"Kinds\.{name}"):
                getattr(writer, f"set_{name}")(value)

    def test_values_convertible_to_the_field_type_are_accepted(self, sample: type[Message]) -> None:
        class Text(str):
            __slots__ = ()

        writer = sample.Writer()
        with writer.set_all() as all_kinds:
            all_kinds.set_int32(Index(-3))
            all_kinds.set_uint64(True)
            all_kinds.set_bool(1)
            all_kinds.set_fixed32(Index(7))
            all_kinds.set_double(2)
            all_kinds.set_string(Text("t"))
            all_kinds.set_bytes(bytearray(b"ab"))
        got = sample.decode(writer.finish()).all
        assert (got.int32, got.uint64, got.bool, got.fixed32) == (-3, 1, True, 7)
        assert (got.double, got.string, got.bytes) == (2.0, "t", b"ab")

    @pytest.mark.usefixtures("ignores")
    def test_write_during_a_value_conversion_does_not_corrupt_the_message(
        self, sample: type[Message]
    ) -> None:
        writer = sample.Writer()
        nested = writer.set_nested()

        class Sly:
            def __index__(self) -> int:
                writer.add_plain(5)
                return 1

        nested.set_int_val(Sly())  # The conversion of the value ends the nested message.
        writer.set_packed([1, Sly(), 2])
        assert writer.finish() == bytes.fromhex("1a00 300a 300a 2a03 010102")

    def test_packed_elements_are_written(self, sample: type[Message]) -> None:
        writer = sample.Writer()
        writer.set_packed([])
        writer.set_packed(range(5000))
        writer.set_doubles((0.5, 1, -2.5))
        writer.set_zigzags(x for x in (-1, 1, -(1 << 63)))
        writer.set_floats([0.5])
        data = writer.finish()
        assert data.startswith(b"\x2a\x00\x2a")
        message = sample.decode(data)
        assert message.packed == list(range(5000))
        assert message.doubles == [0.5, 1.0, -2.5]
        assert message.zigzags == [-1, 1, -(1 << 63)]
        assert message.floats == [0.5]

    def test_list_that_shrinks_during_its_conversion_is_written_partly(
        self, sample: type[Message]
    ) -> None:
        values: list[Any] = [1, 2, 3]

        class Sly:
            def __index__(self) -> int:
                values.clear()
                return 9

        values.insert(1, Sly())
        writer = sample.Writer()
        writer.set_packed(values)
        assert writer.finish() == bytes.fromhex("2a02 0109")
