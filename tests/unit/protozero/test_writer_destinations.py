"""Destinations of writers: buffers and files."""

from __future__ import annotations

import io
from typing import Any

import pytest

from stretto.base.errors import LocalProtocolError
from stretto.protozero import wire
from stretto.protozero.message import Message
from stretto.protozero.table import Table

native = pytest.importorskip("stretto._native")


class TestWriterDestinations:
    def test_message_is_written_into_a_buffer(self, root: type[Any]) -> None:
        buffer = bytearray(b"?" * 16)
        with root(buffer) as writer:
            writer.append_bytes(1, b"abc")
        assert writer.size == 5
        assert bytes(buffer) == b"\x0a\x03abc" + b"?" * 11
        buffer.append(0)  # `append` would fail if the writer still held the buffer.

    def test_too_small_buffer_is_an_error(self, root: type[Any]) -> None:
        buffer = bytearray(b"?" * 16)
        writer = root(memoryview(buffer)[4:8])
        writer.append_bytes(1, b"abcdef")
        with pytest.raises(LocalProtocolError, match="didn't fit"):
            writer.finalize()
        assert buffer[:4] == buffer[8:12] == b"????"
        assert buffer[4:8] == b"\x0a\x06ab"

    def test_read_only_or_invalid_destination_is_refused(self, root: type[Any]) -> None:
        with pytest.raises((TypeError, BufferError)):
            root(b"read only").append_varint(1, 1) or root(b"")[0]
        for destination in (5, object()):
            with pytest.raises(TypeError):
                root(destination)

    def test_messages_are_written_into_a_file(self, root: type[Any]) -> None:
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

    def test_finish_of_a_file_writer_is_an_error(self, root: type[Any]) -> None:
        with pytest.raises(LocalProtocolError, match="finalize"):
            root(io.BytesIO()).finish()


@pytest.fixture
def sample_native() -> type[Message]:
    table = Table(__name__, {"Nested": "int_val 1 int32\nstr_val 2 string"}, {})
    return table.find("Nested")


class Slow:
    """A file whose `write` accepts only some of the bytes, like a socket."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.taken = b""

    def write(self, data: bytes) -> int:
        self.taken += data[: self.most]
        return min(self.most, len(data))


def overflow_and_raise(message: Any) -> None:
    message.append_bytes(1, bytes(20))
    raise KeyError("mine")


class TestShortWrites:
    def test_rest_of_a_short_write_is_written_next(self, root: type[Any]) -> None:
        slow = Slow(7_777)
        with root(slow) as message:
            message.append_bytes(1, bytes(200_000))
            message.append_varint(2, 3)
        assert slow.taken == wire.bytes_field(1, bytes(200_000)) + b"\x10\x03"

    @pytest.mark.parametrize("taken", [0, -1, 4])
    def test_invalid_result_of_write_is_an_error(self, root: type[Any], taken: int) -> None:
        class Wrong:
            def write(self, data: bytes) -> int:
                return taken

        message = root(Wrong())
        message.append_varint(1, 1)
        with pytest.raises(OSError, match=f"took {taken} bytes of 2"):
            message.finalize()

    def test_error_of_the_file_is_raised(self, root: type[Any]) -> None:
        class Full:
            def write(self, data: bytes) -> int:
                raise BrokenPipeError(32, "gone")

        with pytest.raises(BrokenPipeError), root(Full()) as message:
            message.append_bytes(1, bytes(200_000))

    def test_exception_in_the_block_is_raised_instead_of_errors_of_the_writer(
        self, root: type[Any]
    ) -> None:
        with pytest.raises(KeyError, match="mine"), root(bytearray(3)) as message:
            overflow_and_raise(message)


class TestNativeDestinations:
    """A native writer writes parts of a message into the file before the message ends."""

    def test_file_is_written_in_large_blocks(self) -> None:
        file = io.BytesIO()
        root = native.MessageWriter(file)
        for _ in range(100):
            root.append_bytes(1, bytes(10_000))
        assert 800_000 < file.tell() < 1_000_300
        root.finalize()
        assert file.getvalue() == wire.bytes_field(1, bytes(10_000)) * 100

    def test_bytes_of_open_messages_are_not_written_yet(self) -> None:
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

    def test_message_that_spans_two_blocks_keeps_its_redundant_length(
        self, sample_native: type[Message]
    ) -> None:
        """A message that starts in one 64-KiB block and ends in the next can't be compacted."""
        file = io.BytesIO()
        with native.MessageWriter(file) as root:
            root.append_bytes(9, bytes(65536 - 8 - 4))
            with root.nested(3, sample_native.Writer) as nested:
                nested.set_int_val(42)
                nested.set_str_val("foo")
        written = file.getvalue()[-12:]
        assert written == bytes.fromhex("1a 87808000 082a 1203") + b"foo"

    def test_error_of_the_file_is_raised_by_append_and_finalize(self) -> None:
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

    def test_message_cannot_be_used_by_the_write_method_of_its_file(self) -> None:
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

    def test_deleted_writer_completes_its_file(self) -> None:
        file = io.BytesIO()
        writer = native.MessageWriter(file)
        writer.nested(1, native.MessageWriter).append_varint(2, 2)
        del writer
        assert file.getvalue() == b"\x0a\x02\x10\x02"

    def test_message_above_the_maximum_size_is_an_error(self) -> None:
        writer = native.MessageWriter()
        writer.append_bytes(1, bytes(wire.MAX_SIZE))
        with pytest.raises(LocalProtocolError, match="268435455"):
            writer.finish()
