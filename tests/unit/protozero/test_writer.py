from __future__ import annotations

import gc
import io
import subprocess
import sys
import weakref
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from stretto.base.errors import ConfigError, LocalProtocolError
from stretto.protos import trace
from stretto.protos.trace import TracePacket
from stretto.protozero import wire, writer, writer_pure
from stretto.protozero.message import Message
from stretto.protozero.table import Table

native = pytest.importorskip("stretto._native")


@pytest.fixture(params=["native", "pure"])
def implementation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The two sides have the same API and write the same bytes."""
    chosen: ModuleType = native if request.param == "native" else writer_pure
    monkeypatch.setattr(writer, "make_writer_class", chosen.make_writer_class)
    return chosen


@pytest.fixture
def raises(implementation: ModuleType) -> Iterator[None]:
    """As under -X dev."""
    before = implementation.raise_on_writer_misuse(True)
    yield
    implementation.raise_on_writer_misuse(before)


@pytest.fixture
def ignores(implementation: ModuleType) -> Iterator[None]:
    before = implementation.raise_on_writer_misuse(False)
    yield
    implementation.raise_on_writer_misuse(before)


@pytest.fixture
def root(implementation: ModuleType) -> type[Any]:
    made: type[Any] = implementation.MessageWriter
    return made


KINDS = [
    "int32 1 int32",
    "int64 2 int64",
    "uint32 3 uint32",
    "uint64 4 uint64",
    "sint32 5 sint32",
    "sint64 6 sint64",
    "bool 7 bool",
    "enum 8 enum",
    "fixed32 9 fixed32",
    "fixed64 10 fixed64",
    "sfixed32 11 sfixed32",
    "sfixed64 12 sfixed64",
    "float 13 float",
    "double 14 double",
    "string 15 string",
    "bytes 16 bytes",
    "far 536870911 uint64",
]


@pytest.fixture
def sample(implementation: ModuleType) -> type[Message]:
    """The message of the ProtoZero paper: `nested {int_val: 42, str_val: "foo"}`, and more."""
    table = Table(
        __name__,
        {
            "Sample": "nested 3 message:Sample.Nested\nmany 4 message:Sample.Nested repeated\n"
            "packed 5 uint32 packed\nplain 6 sint32 repeated\nmap 7 map:string,uint32\n"
            "doubles 8 double packed\nzigzags 9 sint64 packed\nfloats 10 float packed\n"
            "all 11 message:Kinds",
            "Sample.Nested": "int_val 1 int32\nstr_val 2 string\ninner 3 message:Sample.Nested",
            "Kinds": "\n".join(KINDS),
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
    def test_lengths_above_127_stay_redundant(self, root: type[Any], length: int) -> None:
        writer = root()
        with writer.nested(3, root) as nested:
            nested.append_raw(b"x" * length)
        size = b"\x7f" if length == 127 else b"\x80\x81\x80\x00"
        assert writer.finish() == b"\x1a" + size + b"x" * length

    def test_inner_compaction_counts_in_outer_lengths(self, root: type[Any]) -> None:
        writer = root()
        with writer.nested(1, root) as outer:
            outer.append_raw(b"y" * 120)
            with outer.nested(2, root) as inner:
                inner.append_raw(b"zzzzz")
        assert writer.finish() == b"\x0a\x7f" + b"y" * 120 + b"\x12\x05zzzzz"

    def test_empty_message(self, root: type[Any]) -> None:
        writer = root()
        writer.nested(1, root)
        assert writer.finish() == b"\x0a\x00"

    @pytest.mark.usefixtures("raises")
    def test_appending_to_a_parent_ends_its_descendants(self, root: type[Any]) -> None:
        writer = root()
        child = writer.nested(1, root)
        grandchild = child.nested(2, root)
        grandchild.append_varint(3, 1)
        writer.append_varint(4, 1)
        for ended in (child, grandchild):
            with pytest.raises(LocalProtocolError, match="has ended"):
                ended.append_varint(1, 1)
        assert writer.finish() == bytes.fromhex("0a04 1202 1801 2001")

    def test_finalizing_twice_is_harmless(self, root: type[Any]) -> None:
        writer = root()
        with writer.nested(1, root) as child:
            child.finalize()
            child.finalize()
        assert writer.finish() == b"\x0a\x00"

    @pytest.mark.usefixtures("raises")
    def test_an_exception_ends_the_message_too(self, root: type[Any]) -> None:
        writer = root()
        child = writer.nested(1, root)
        child.append_varint(1, 1)
        with pytest.raises(KeyError), child:
            raise KeyError
        with pytest.raises(LocalProtocolError):
            child.append_varint(1, 1)
        assert writer.finish() == b"\x0a\x02\x08\x01"

    def test_writers_need_not_be_kept(self, sample: type[Message]) -> None:
        writer = sample.Writer()
        writer.set_nested().set_inner().set_inner().set_int_val(7)
        writer.add_many().set_int_val(8)
        message = sample.decode(writer.finish())
        assert message.nested.inner.inner.int_val == 7
        assert message.many[0].int_val == 8

    def test_a_child_outlives_its_root(self, sample: type[Message]) -> None:
        child = sample.Writer().set_nested()
        child.set_int_val(1)
        with child.set_inner() as inner:
            inner.set_str_val("x" * 10_000)
        child.finalize()

    def test_deeply_nested(self, root: type[Any]) -> None:
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

    def test_size_counts_what_is_complete(self, root: type[Any]) -> None:
        writer = root()
        child = writer.nested(1, root)
        child.append_raw(b"x" * 5)
        assert child.size == 5
        writer.append_varint(1, 1)
        assert writer.size == 9
        writer.finish()
        assert writer.size == 9


class TestMisuse:
    @pytest.mark.usefixtures("raises")
    def test_a_finished_message_is_not_written(self, sample: type[Message]) -> None:
        writer = sample.Writer()
        writer.finish()
        with pytest.raises(LocalProtocolError, match=r"Sample\.Writer has ended"):
            writer.add_plain(1)
        with pytest.raises(LocalProtocolError, match="has ended"):
            writer.finish()
        with pytest.raises(LocalProtocolError, match="has ended"):
            writer.set_nested()

    @pytest.mark.usefixtures("raises")
    def test_nor_is_one_whose_place_is_taken(self, sample: type[Message]) -> None:
        writer = sample.Writer()
        first, second = writer.add_many(), writer.add_many()
        for write in (lambda: first.set_int_val(1), first.set_inner, lambda: first.set_str_val("")):
            with pytest.raises(LocalProtocolError, match="has ended"):
                write()
        first.finalize()  # harmless, to the second one too
        second.set_int_val(2)
        assert writer.finish() == bytes.fromhex("2200 2202 0802")

    @pytest.mark.usefixtures("ignores")
    def test_otherwise_it_is_counted_and_ignored(
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

    def test_dev_mode_raises(self) -> None:
        code = (
            "from stretto.protozero.writer import MessageWriter as W\n"
            "w = W(); w.finish()\n"
            "try: w.append_varint(1, 1)\n"
            "except Exception as error: print(type(error).__name__)\n"
            "else: print('ignored')"
        )
        for options, said in (("-Xdev",), "LocalProtocolError"), ((), "ignored"):
            done = subprocess.run(
                [sys.executable, *options, "-c", code], capture_output=True, text=True, check=True
            )
            assert done.stdout.strip() == said

    def test_nested_messages_have_no_bytes_of_their_own(self, sample: type[Message]) -> None:
        child = sample.Writer().set_nested()
        with pytest.raises(LocalProtocolError, match="outermost"):
            child.finish()

    def test_refused_values_leave_no_trace(self, sample: type[Message]) -> None:
        writer = sample.Writer()
        with pytest.raises(ConfigError, match=r"Sample\.plain: expected sint32"):
            writer.add_plain(1 << 31)
        with pytest.raises(ConfigError, match=r"Sample\.packed: expected uint32"):
            writer.set_packed([1, 2, -1])
        with pytest.raises(ConfigError, match=r"Sample\.packed: expected uint32"):
            writer.set_packed("12")
        writer.add_plain(1)
        assert writer.finish() == b"\x30\x02"

    def test_numbers_and_arguments_are_checked(self, root: type[Any]) -> None:
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

    def test_native_methods_want_their_own_writer(self) -> None:
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

    def test_native_classes_stay_as_they_are(self) -> None:
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


class TestPrimitives:
    def test_every_wire_type(self, root: type[Any]) -> None:
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

    def test_a_view_of_wider_elements_counts_in_bytes(self, root: type[Any]) -> None:
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

    def test_memory_of_large_messages_is_given_back(self, root: type[Any]) -> None:
        for size in (10, 5_000_000, 10, 100_000, 0):
            writer = root()
            writer.append_bytes(1, bytes(size))
            assert writer.finish() == wire.bytes_field(1, bytes(size))


class Index:
    """An integer, though not an int."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


class TestValues:
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

    def test_edges_of_every_kind(self, sample: type[Message]) -> None:
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

    def test_beyond_the_edges(self, sample: type[Message]) -> None:
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

    def test_other_types_that_will_do(self, sample: type[Message]) -> None:
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
    def test_a_value_may_write_while_it_is_converted(self, sample: type[Message]) -> None:
        writer = sample.Writer()
        nested = writer.set_nested()

        class Sly:
            def __index__(self) -> int:
                writer.add_plain(5)
                return 1

        nested.set_int_val(Sly())  # by then it has ended
        writer.set_packed([1, Sly(), 2])
        assert writer.finish() == bytes.fromhex("1a00 300a 300a 2a03 010102")

    def test_packed_elements(self, sample: type[Message]) -> None:
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

    def test_a_list_that_shrinks_under_our_hands(self, sample: type[Message]) -> None:
        values: list[Any] = [1, 2, 3]

        class Sly:
            def __index__(self) -> int:
                values.clear()
                return 9

        values.insert(1, Sly())
        writer = sample.Writer()
        writer.set_packed(values)
        assert writer.finish() == bytes.fromhex("2a02 0109")


class TestDestinations:
    def test_a_buffer(self, root: type[Any]) -> None:
        buffer = bytearray(b"?" * 16)
        with root(buffer) as writer:
            writer.append_bytes(1, b"abc")
        assert writer.size == 5
        assert bytes(buffer) == b"\x0a\x03abc" + b"?" * 11
        buffer.append(0)  # it is ours again

    def test_a_buffer_that_is_too_small(self, root: type[Any]) -> None:
        buffer = bytearray(b"?" * 16)
        writer = root(memoryview(buffer)[4:8])
        writer.append_bytes(1, b"abcdef")
        with pytest.raises(LocalProtocolError, match="didn't fit"):
            writer.finalize()
        assert buffer[:4] == buffer[8:12] == b"????"
        assert buffer[4:8] == b"\x0a\x06ab"

    def test_what_can_not_be_written_to(self, root: type[Any]) -> None:
        with pytest.raises((TypeError, BufferError)):
            root(b"read only").append_varint(1, 1) or root(b"")[0]
        for destination in (5, object()):
            with pytest.raises(TypeError):
                root(destination)

    def test_a_file(self, root: type[Any]) -> None:
        file = io.BytesIO()
        data = bytes(range(256)) * 10
        with root(file) as trace:
            for number in range(200):
                with trace.nested(1, root) as packet:
                    packet.append_varint(8, number)
                    packet.append_bytes(2, data)
        out, pos, count = file.getvalue(), 0, 0
        while pos < len(out):
            _, _, start, pos = wire.read_field(out, pos, len(out))
            assert out[start:pos] == wire.varint_field(8, count) + wire.bytes_field(2, data)
            count += 1
        assert count == 200
        assert trace.size == len(out)

    def test_finish_is_for_memory_only(self, root: type[Any]) -> None:
        with pytest.raises(LocalProtocolError, match="finalize"):
            root(io.BytesIO()).finish()


@pytest.fixture
def sample_native() -> type[Message]:
    table = Table(__name__, {"Nested": "int_val 1 int32\nstr_val 2 string"}, {})
    return table.find("Nested")


class Slow:
    """A file that takes some bytes at a time, as sockets do."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.taken = b""

    def write(self, data: bytes) -> int:
        self.taken += data[: self.most]
        return min(self.most, len(data))


def overflow_and_raise(message: Any) -> None:
    message.append_bytes(1, bytes(20))
    raise KeyError("mine")


class TestFilesThatTakeLess:
    def test_the_rest_is_offered_again(self, root: type[Any]) -> None:
        slow = Slow(7_777)
        with root(slow) as message:
            message.append_bytes(1, bytes(200_000))
            message.append_varint(2, 3)
        assert slow.taken == wire.bytes_field(1, bytes(200_000)) + b"\x10\x03"

    @pytest.mark.parametrize("taken", [0, -1, 4])
    def test_a_count_that_can_not_be_is_an_error(self, root: type[Any], taken: int) -> None:
        class Wrong:
            def write(self, data: bytes) -> int:
                return taken

        message = root(Wrong())
        message.append_varint(1, 1)
        with pytest.raises(OSError, match=f"took {taken} bytes of 2"):
            message.finalize()

    def test_the_error_of_the_file_leaves_the_block(self, root: type[Any]) -> None:
        class Full:
            def write(self, data: bytes) -> int:
                raise BrokenPipeError(32, "gone")

        with pytest.raises(BrokenPipeError), root(Full()) as message:
            message.append_bytes(1, bytes(200_000))

    def test_an_exception_in_the_block_leaves_it(self, root: type[Any]) -> None:
        with pytest.raises(KeyError, match="mine"), root(bytearray(3)) as message:
            overflow_and_raise(message)


class TestNativeDestinations:
    """What only the native side can do: write before the message ends."""

    def test_a_file_gets_its_bytes_early(self) -> None:
        file = io.BytesIO()
        root = native.MessageWriter(file)
        for _ in range(100):
            root.append_bytes(1, bytes(10_000))
        assert 800_000 < file.tell() < 1_000_300
        root.finalize()
        assert file.getvalue() == wire.bytes_field(1, bytes(10_000)) * 100

    def test_open_messages_hold_bytes_back(self) -> None:
        file = io.BytesIO()
        root = native.MessageWriter(file)
        root.append_varint(1, 1)
        with root.nested(2, native.MessageWriter) as outer:
            for _ in range(30):
                with outer.nested(3, native.MessageWriter) as inner:
                    inner.append_bytes(4, bytes(20_000))
            assert file.tell() == 0
        root.append_bytes(1, bytes(70_000))
        assert file.tell() > 600_000
        root.finalize()
        field = wire.bytes_field(4, bytes(20_000))
        redundant = b"\x1a" + wire.redundant_varint(len(field)) + field
        body = redundant * 30
        head = b"\x08\x01\x12" + wire.redundant_varint(len(body))
        assert file.getvalue() == head + body + wire.bytes_field(1, bytes(70_000))

    def test_the_worked_example_where_it_can_not_move(self, sample_native: type[Message]) -> None:
        """The message lies in two slices: its length stays redundant."""
        file = io.BytesIO()
        with native.MessageWriter(file) as root:
            root.append_bytes(9, bytes(65536 - 8 - 4))
            with root.nested(3, sample_native.Writer) as nested:
                nested.set_int_val(42)
                nested.set_str_val("foo")
        written = file.getvalue()[-12:]
        assert written == bytes.fromhex("1a 87808000 082a 1203") + b"foo"

    def test_errors_of_the_file(self) -> None:
        class Broken(io.RawIOBase):
            def write(self, data: Any) -> int:
                raise OSError(28, "no space left")

        root = native.MessageWriter(Broken())
        with pytest.raises(OSError, match="no space"):
            root.append_bytes(1, bytes(200_000))
        root.append_bytes(1, bytes(200_000))
        with pytest.raises(LocalProtocolError, match="didn't fit"):
            root.finalize()
        with pytest.raises(OSError, match="no space"), native.MessageWriter(Broken()) as root:
            root.append_varint(1, 1)

    def test_a_file_that_writes_to_its_own_message(self) -> None:
        seen: list[Exception] = []

        class Sly:
            def write(self, data: bytes) -> None:
                for misuse in (lambda: root.append_varint(1, 1), root.finalize, child.finalize):
                    try:
                        misuse()
                    except LocalProtocolError as error:
                        seen.append(error)

        before = native.raise_on_writer_misuse(True)
        root = native.MessageWriter(Sly())
        child = root.nested(1, native.MessageWriter)
        root.append_bytes(1, bytes(100_000))
        native.raise_on_writer_misuse(before)
        assert len(seen) >= 2
        assert "already" in str(seen[0])

    def test_a_forgotten_file_is_completed(self) -> None:
        file = io.BytesIO()
        writer = native.MessageWriter(file)
        writer.nested(1, native.MessageWriter).append_varint(2, 2)
        del writer
        assert file.getvalue() == b"\x0a\x02\x10\x02"

    def test_messages_too_large_for_their_length(self) -> None:
        writer = native.MessageWriter()
        writer.append_bytes(1, bytes(wire.MAX_SIZE))
        with pytest.raises(LocalProtocolError, match="268435455"):
            writer.finish()


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

    def test_names(self) -> None:
        made = TracePacket.Writer
        assert (made.__module__, made.__qualname__) == (
            "stretto.protos.trace",
            "TracePacket.Writer",
        )
        assert made.set_timestamp.__name__ == "set_timestamp"

    def test_the_root_class_can_be_subclassed(self, root: type[Any]) -> None:
        class Mine(root):  # type: ignore[misc]
            note = ""

        for _ in range(3):
            writer = Mine()
            writer.note = "x"
            writer.nested(1, Mine).append_varint(1, 1)
            assert writer.finish() == b"\x0a\x02\x08\x01"

    def test_more_fields_than_native_methods(self, implementation: ModuleType) -> None:
        count = native.MAX_WRITER_METHODS + 3
        lines = [f"f{n} {n} uint32" for n in range(1, count)]
        table = Table(__name__, {"Wide": "\n".join([*lines, f"last {count} message:Wide"])}, {})
        wide = table.find("Wide")
        writer = wide.Writer()
        for n in range(1, count):
            getattr(writer, f"set_f{n}")(n)
        writer.set_last().set_f1(7)
        message = wide.decode(writer.finish())
        assert [getattr(message, f"f{n}") for n in range(1, count)] == list(range(1, count))
        assert message.last.f1 == 7

    def test_classes_can_be_collected(self) -> None:
        def make() -> weakref.ref[type[Any]]:
            made: list[Any] = []
            rows = [
                ("set_a", 1, "int32", False, int),
                ("set_b", 2, "message", False, lambda: made[0]),
            ]
            made.append(native.make_writer_class("Short", rows, {"__slots__": ()}))
            writer = made[0]()
            writer.set_b().set_a(1)
            assert writer.finish() == b"\x12\x02\x08\x01"
            return weakref.ref(made[0])

        gone = make()
        gc.collect()
        assert gone() is None
