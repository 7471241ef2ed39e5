"""Generated writer classes with a method for each field."""

from __future__ import annotations

import gc
import weakref
from types import ModuleType
from typing import Any

import pytest

from stretto.protos import trace
from stretto.protos.trace import TracePacket
from stretto.protozero.message import Message
from stretto.protozero.table import Table

native = pytest.importorskip("stretto._native")


class TestGeneratedWriters:
    def test_output_of_a_writer_class_is_decoded_by_the_message_class(self) -> None:
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

    def test_repeated_packed_and_map_fields_are_written(self, sample: type[Message]) -> None:
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

    def test_writer_classes_and_methods_have_qualified_names(self) -> None:
        made = TracePacket.Writer
        assert (made.__module__, made.__qualname__) == (
            "stretto.protos.trace",
            "TracePacket.Writer",
        )
        assert made.set_timestamp.__name__ == "set_timestamp"

    def test_message_writer_can_be_subclassed(self, root: type[Any]) -> None:
        class Mine(root):  # type: ignore[misc]
            note = ""

        for _ in range(3):
            writer = Mine()
            writer.note = "x"
            writer.nested(1, Mine).append_varint(1, 1)
            assert writer.finish() == b"\x0a\x02\x08\x01"

    def test_class_with_more_fields_than_native_methods_writes_all_fields(
        self, implementation: ModuleType
    ) -> None:
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

    def test_unused_writer_classes_are_garbage_collected(self) -> None:
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
