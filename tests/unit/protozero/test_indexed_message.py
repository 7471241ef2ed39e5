"""IndexedMessage, the native base class of generated decoders."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from stretto.protos.trace import TracePacket
from stretto.protozero import wire
from stretto.protozero.decoder import DecodedField

native: Any = pytest.importorskip("stretto._native")


def two_hundred() -> bytes:
    return b"".join(wire.varint_field(1 + n % 3, n) for n in range(200))


class TestFieldLookup:
    def test_last_or_all_fields_with_a_given_number_are_found(self) -> None:
        message = native.IndexedMessage(two_hundred())
        last = message._last(2)
        assert isinstance(last, DecodedField)
        assert last.value == 199
        assert [f.value for f in message._all(1)] == list(range(0, 200, 3))
        assert [f.value for f in message] == list(range(200))
        assert message._last(9) is None
        assert message._all(9) == []
        assert message.bytes_left == 0

    @pytest.mark.parametrize("number", [0, -1, 1 << 29, 1 << 32, (1 << 32) + 1, 1 << 80])
    def test_invalid_field_numbers_find_nothing(self, number: int) -> None:
        message = native.IndexedMessage(two_hundred())
        assert message._last(number) is None
        assert message._all(number) == []

    def test_invalid_arguments_are_refused(self) -> None:
        for arguments in ((), (1,), ("x",), (b"", b"")):
            with pytest.raises(TypeError):
                native.IndexedMessage(*arguments)
            with pytest.raises(TypeError):
                TracePacket.Decoder(*arguments)
        assert TracePacket.Decoder(data=b"\x40\x01").timestamp == 1
        with pytest.raises(TypeError, match="number is an int"):
            native.IndexedMessage(b"")._last("1")


class TestDecoderClasses:
    def test_decoder_classes_are_immutable(self) -> None:
        made = TracePacket.Decoder
        with pytest.raises(TypeError, match="immutable"):
            made.timestamp = 5
        with pytest.raises(TypeError, match="base type"):
            type("Mine", (made,), {})
        with pytest.raises(AttributeError):
            made(b"").nothing = 5

    def test_only_subclasses_with_empty_slots_can_become_immutable(self) -> None:
        class Larger(native.IndexedMessage):
            __slots__ = ("more",)

        class WithDict(native.IndexedMessage):
            pass

        for wrong in (int, Larger, WithDict):
            with pytest.raises(ValueError, match="empty __slots__"):
                native.close_decoder_class(wrong)
        with pytest.raises(TypeError, match="no class"):
            native.close_decoder_class(5)
        for _ in range(3):
            assert [f.value for f in WithDict(wire.varint_field(1, 5))] == [5]

    def test_decoder_field_is_readable_only_on_decoders(self) -> None:
        field = native.DecoderField(1, "uint32", 7, None)
        assert field.number == 1
        assert field.__get__(None, int) is field
        assert field.__get__(native.IndexedMessage(b""), object) == 7
        assert field.__get__(native.IndexedMessage(b"\x08\x05"), object) == 5
        with pytest.raises(TypeError, match="of decoders"):
            field.__get__(b"", bytes)
        with pytest.raises(ValueError, match="no kind"):
            native.DecoderField(1, "nothing", None, None)

    def test_message_field_needs_a_generated_decoder_class(self) -> None:
        message = native.IndexedMessage(wire.bytes_field(1, b""))
        for wrong in (lambda: int, lambda: 5):
            field = native.DecoderField(1, "message", None, wrong)
            with pytest.raises(TypeError, match="no generated decoder"):
                field.__get__(message, object)
        field = native.DecoderField(1, "message", None, lambda: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            field.__get__(message, object)

    def test_decoder_classes_can_be_collected(self) -> None:
        def make() -> weakref.ref[type[Any]]:
            made: list[Any] = []
            field = native.DecoderField(1, "message", None, lambda: made[0])
            namespace = {"__slots__": (), "inner": field}
            made.append(native.close_decoder_class(type("D", (native.IndexedMessage,), namespace)))
            assert made[0](wire.bytes_field(1, b"")).inner.inner is None
            return weakref.ref(made[0])

        gone = make()
        gc.collect()
        assert gone() is None


class TestInputReferences:
    def test_nested_decoder_keeps_a_reference_to_the_input(self) -> None:
        data = bytearray(wire.bytes_field(11, wire.bytes_field(23, b"name")))
        event = TracePacket.Decoder(data).track_event
        gc.collect()
        with pytest.raises(BufferError):
            data.clear()
        assert event.name == "name"
        del event
        data.clear()
