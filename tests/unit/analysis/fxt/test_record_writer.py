"""Writing of FXT records, word by word as specified."""

from __future__ import annotations

import struct

from stretto.analysis.fxt import format as fxt
from stretto.analysis.fxt.arguments import argument_of
from stretto.analysis.fxt.record_writer import RecordWriter
from stretto.analysis.fxt.records import Argument, Blob, Event, KernelObject, Thread
from tests.support.fxt_bytes import (
    MAGIC,
    argument,
    event,
    read,
    record,
    string,
    text,
    thread,
    words,
)

HERE = Thread(10, 11)


class Writer(RecordWriter):
    """A record writer; `take` returns its output without the magic number."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        super().__init__(self.parts.append)

    def take(self) -> bytes:
        data = b"".join(self.parts)
        self.parts.clear()
        return data.removeprefix(MAGIC)


def test_magic_number_is_written_first() -> None:
    assert Writer().parts == [MAGIC]


def test_metadata_and_initialization_records_are_written() -> None:
    writer = Writer()
    writer.provider_info(7, "audio")
    writer.initialization(1000)
    writer.provider_event(7)
    assert writer.take() == (
        record(0, 1 | 7 << 4 | 5 << 36, text("audio"))
        + record(1, 0, words(1000))
        + record(0, 3 | 7 << 4)
    )


def test_string_gets_a_table_entry_at_its_second_use() -> None:
    writer = Writer()
    instant = Event(fxt.INSTANT, 5, HERE, "net", "send")
    writer.event(instant)
    assert writer.take() == thread(1, 10, 11) + event(
        0, 5, 1, 0x8003, 0x8004, text("net"), text("send")
    )
    writer.event(instant)
    assert writer.take() == string(1, "net") + string(2, "send") + event(0, 5, 1, 1, 2)
    writer.event(instant)
    assert writer.take() == event(0, 5, 1, 1, 2)


def test_last_word_of_an_event_is_its_id_or_end_time() -> None:
    writer = Writer()
    writer.event(Event(fxt.FLOW_END, 5, HERE, "", "", (), 1 << 63))
    assert writer.take() == thread(1, 10, 11) + event(10, 5, 1, 0, 0, words(1 << 63))
    writer.event(Event(fxt.DURATION_COMPLETE, 5, HERE, "", "", (), 0, 9))
    assert writer.take() == event(4, 5, 1, 0, 0, words(9))
    writer.event(Event(fxt.DURATION_END, 5, HERE, "", "", (), 3, 4))
    assert writer.take() == event(3, 5, 1, 0, 0)


def test_arguments_of_all_types_are_written() -> None:
    writer = Writer()
    arguments = (
        Argument("a", fxt.NULL, None),
        Argument("b", fxt.INT32, -4),
        Argument("c", fxt.UINT32, 0xFFFF_FFFF),
        Argument("d", fxt.INT64, -5),
        Argument("e", fxt.UINT64, 1 << 63),
        Argument("f", fxt.DOUBLE, 0.5),
        Argument("g", fxt.TEXT, "hello"),
        Argument("h", fxt.TEXT, ""),
        Argument("i", fxt.POINTER, 0xF00),
        Argument("j", fxt.KOID, 77),
        Argument("k", fxt.BOOL, True),
        Argument("l", fxt.BYTES, b"\x01\x02\x03"),
    )
    writer.event(Event(fxt.INSTANT, 5, HERE, "", "", arguments))
    name = 0x8001
    expected = [
        argument(0, name, 0, text("a")),
        argument(1, name, -4, text("b")),
        argument(2, name, 0xFFFF_FFFF, text("c")),
        argument(3, name, 0, text("d"), words(-5)),
        argument(4, name, 0, text("e"), words(1 << 63)),
        argument(5, name, 0, text("f"), struct.pack("<d", 0.5)),
        argument(6, name, 0x8005, text("g"), text("hello")),
        argument(6, name, 0, text("h")),
        argument(7, name, 0, text("i"), words(0xF00)),
        argument(8, name, 0, text("j"), words(77)),
        argument(9, name, 1, text("k")),
        argument(10, name, 3, text("l"), text(b"\x01\x02\x03")),
    ]
    assert writer.take() == thread(1, 10, 11) + event(0, 5, 1, 0, 0, *expected, count=12)


def test_argument_has_the_smallest_type_for_its_value() -> None:
    values = [None, True, -1, 1 << 31, 1 << 32, 1 << 63, 0.5, "x", b"x", 1 << 64, -1 - (1 << 63)]
    kinds = [made.type if (made := argument_of("a", value)) else None for value in values]
    assert kinds == [0, 9, 1, 2, 3, 4, 5, 6, 10, None, None]
    assert argument_of("a", [1]) is None


def test_kernel_objects_are_written() -> None:
    writer = Writer()
    writer.kernel_object(fxt.PROCESS_OBJECT, 10, "shell")
    writer.kernel_object(fxt.THREAD_OBJECT, 11, "", [Argument("p", fxt.KOID, 10)])
    assert writer.take() == (
        record(7, 1 | 0x8005 << 8, words(10), text("shell"))
        + record(7, 2 | 1 << 24, words(11), argument(8, 0x8001, 0, text("p"), words(10)))
    )


def test_large_blob_is_written_as_several_records() -> None:
    writer = Writer()
    data = bytes(range(256)) * 300
    writer.blob(fxt.PERFETTO_BLOB, "trace", data)
    records, reader = read(writer.take())
    assert reader.damaged == 0
    assert {(each.type, each.name) for each in records if isinstance(each, Blob)} == {(3, "trace")}
    assert b"".join(each.data for each in records if isinstance(each, Blob)) == data


def test_threads_and_strings_are_written_if_they_outnumber_the_table_entries() -> None:
    writer = Writer()
    events = [
        Event(0, 5, Thread(1, number % 300), "", f"{number // 2}") for number in range(66_000)
    ]
    for each in events:
        writer.event(each)
    records, reader = read(writer.take())
    assert records == events
    assert reader.damaged == 0


def test_too_long_strings_are_truncated_and_counted() -> None:
    writer = Writer()
    long = "é" * 30_000
    arguments = [Argument(long, fxt.TEXT, long)]
    writer.event(Event(fxt.FLOW_BEGIN, 5, HERE, long, long, tuple(arguments), 1))
    ((found),), reader = read(writer.take())
    assert isinstance(found, Event)
    assert (found.category, found.name) == ("é" * 1000, "é" * 1000)
    assert found.arguments == (Argument("é" * 1000, fxt.TEXT, "é" * 12_000),)
    assert (writer.cut, writer.left_out, reader.damaged) == (4, 0, 0)


def test_arguments_that_exceed_the_record_limits_are_omitted_and_counted() -> None:
    writer = Writer()
    arguments = [Argument(str(each), fxt.INT32, each) for each in range(20)]
    writer.event(Event(fxt.INSTANT, 5, HERE, "", "", tuple(arguments)))
    large = [Argument(str(each), fxt.TEXT, chr(65 + each) * 20_000) for each in range(3)]
    writer.kernel_object(fxt.PROCESS_OBJECT, 1, "", [*large, *arguments[:1]])
    records, reader = read(writer.take())
    assert records == [
        Event(fxt.INSTANT, 5, HERE, "", "", tuple(arguments[:15])),
        KernelObject(1, 1, "", (large[0], arguments[0])),
    ]
    assert (writer.left_out, reader.damaged) == (7, 0)
