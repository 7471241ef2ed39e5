"""Reading of hand-made FXT records, valid and malformed."""

from __future__ import annotations

import io
import struct
import tracemalloc

import pytest

from stretto.analysis.fxt import record_reader
from stretto.analysis.fxt.record_reader import RecordReader
from stretto.analysis.fxt.records import (
    Argument,
    Blob,
    Event,
    Initialization,
    KernelObject,
    ProviderEvent,
    ProviderInfo,
    ProviderSection,
    Thread,
)
from stretto.base.errors import DecodeError
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

TABLES = string(1, "net") + string(2, "send") + thread(3, 10, 11)
HERE = Thread(10, 11)


def test_trace_of_only_the_magic_number_is_empty() -> None:
    records, reader = read(MAGIC)
    assert (records, reader.damaged, sum(reader.skipped.values())) == ([], 0, 0)


def test_metadata_and_initialization_records_are_read() -> None:
    info = record(0, 1 | 7 << 4 | 5 << 36, text("audio"))
    records, reader = read(
        info, record(0, 2 | 7 << 4), record(0, 3 | 7 << 4), record(1, 0, words(24_000_000))
    )
    assert records == [
        ProviderInfo(7, "audio"),
        ProviderSection(7),
        ProviderEvent(7, 0),
        Initialization(24_000_000),
    ]
    assert reader.provider == 7
    assert reader.damaged == 0


@pytest.mark.parametrize("kind", [0, 2, 3])
def test_event_with_table_references_is_read(kind: int) -> None:
    records, _ = read(TABLES, event(kind, 5, 3, 1, 2))
    assert records == [Event(kind, 5, HERE, "net", "send")]


@pytest.mark.parametrize("kind", [1, 5, 6, 7, 8, 9, 10])
def test_event_with_an_id_is_read(kind: int) -> None:
    records, _ = read(TABLES, event(kind, 5, 3, 1, 2, words(1 << 63 | 9)))
    assert records == [Event(kind, 5, HERE, "net", "send", (), 1 << 63 | 9)]


def test_complete_duration_is_read() -> None:
    records, _ = read(TABLES, event(4, 5, 3, 1, 2, words(9)))
    assert records == [Event(4, 5, HERE, "net", "send", (), 0, 9)]


def test_event_with_inline_strings_and_thread_is_read() -> None:
    records, _ = read(
        event(0, 5, 0, 0x8000 | 3, 0x8000 | 9, words(20, 21), text("net"), text("receiving"))
    )
    assert records == [Event(0, 5, Thread(20, 21), "net", "receiving")]


def test_arguments_of_all_types_are_read() -> None:
    name = 0x8001
    rows = [
        argument(0, name, 0, text("a")),
        argument(1, name, -4, text("b")),
        argument(2, name, 0xFFFF_FFFF, text("c")),
        argument(3, name, 0, text("d"), words(-5)),
        argument(4, name, 0, text("e"), words(1 << 63)),
        argument(5, name, 0, text("f"), struct.pack("<d", 0.5)),
        argument(6, name, 2, text("g")),
        argument(6, 2, 0x8002, text("hé"[:1] + "i")),
        argument(7, name, 0, text("i"), words(0xF00)),
        argument(8, name, 0, text("j"), words(77)),
        argument(9, name, 1, text("k")),
        argument(10, name, 3, text("l"), text(b"\x01\x02\x03")),
    ]
    (found,), _ = read(TABLES, event(0, 5, 3, 1, 2, *rows, count=len(rows)))
    assert isinstance(found, Event)
    assert found.arguments == (
        Argument("a", 0, None),
        Argument("b", 1, -4),
        Argument("c", 2, 0xFFFF_FFFF),
        Argument("d", 3, -5),
        Argument("e", 4, 1 << 63),
        Argument("f", 5, 0.5),
        Argument("g", 6, "send"),
        Argument("send", 6, "hi"),
        Argument("i", 7, 0xF00),
        Argument("j", 8, 77),
        Argument("k", 9, True),
        Argument("l", 10, b"\x01\x02\x03"),
    )


def test_argument_of_an_unknown_type_is_skipped() -> None:
    rows = argument(15, 1, 0, words(1, 2)) + argument(1, 1, 3)
    (found,), reader = read(TABLES, event(8, 5, 3, 1, 2, rows, words(6), count=2))
    assert found == Event(8, 5, HERE, "net", "send", (Argument("net", 1, 3),), 6)
    assert reader.damaged == 0


def test_kernel_objects_are_read() -> None:
    process = record(7, 1 | 1 << 8, words(10))
    named = argument(8, 2, 0, words(10))
    of_thread = record(7, 2 | 0x8004 << 8 | 1 << 24, words(11), text("main"), named)
    records, _ = read(TABLES, process, of_thread)
    assert records == [
        KernelObject(1, 10, "net"),
        KernelObject(2, 11, "main", (Argument("send", 8, 10),)),
    ]


def test_blob_record_is_read() -> None:
    records, _ = read(TABLES, record(5, 1 | 5 << 16 | 3 << 32, text(b"\n\x03abc")))
    assert records == [Blob(3, "net", b"\n\x03abc")]


def test_ticks_are_converted_to_nanoseconds() -> None:
    clock = record(1, 0, words(24_000_000))
    records, _ = read(TABLES, clock, event(4, 24, 3, 1, 2, words(1 << 60)))
    assert records[1] == Event(4, 1000, HERE, "net", "send", (), 0, (1 << 60) * 1000 // 24)


def test_each_provider_has_its_own_tables() -> None:
    first = record(0, 1 | 1 << 4) + string(1, "one") + record(1, 0, words(1000))
    second = record(0, 1 | 2 << 4) + string(1, "two")
    here = event(0, 5, 0, 0, 1, words(1, 2))
    records, _ = read(first, second, here, record(0, 2 | 1 << 4), here)
    found = [(each.name, each.timestamp) for each in records if isinstance(each, Event)]
    assert found == [("two", 5), ("one", 5_000_000)]


def test_repeated_provider_info_empties_the_tables() -> None:
    info = record(0, 1 | 1 << 4)
    records, _ = read(info, string(1, "one"), info, event(0, 5, 0, 0, 1, words(1, 2)))
    assert records[-1] == Event(0, 5, Thread(1, 2), "", "")


def test_string_0_is_ignored_and_other_strings_can_be_replaced() -> None:
    here = event(0, 5, 0, 0, 1, words(1, 2))
    records, _ = read(string(0, "no"), string(1, "one"), here, string(1, "two"), here)
    assert [each.name for each in records if isinstance(each, Event)] == ["one", "two"]


def test_unsupported_records_are_counted() -> None:
    large = words(15 | 3 << 4, 1, 2)
    records, reader = read(
        record(6), record(8, 0, words(1)), record(9), record(10), record(12), large, record(0, 9),
        event(14, 1, 1, 0, 0),
    )  # fmt: skip
    assert records == []
    assert reader.skipped == {
        "userspace objects": 1,
        "scheduling": 1,
        "log messages": 1,
        "profiler records": 1,
        "records of type 12": 1,
        "large blobs": 1,
        "metadata of type 9": 1,
        "events of type 14": 1,
    }
    assert reader.damaged == 0


@pytest.mark.parametrize(
    "bad",
    [
        record(1),
        record(1, 0, words(0)),
        record(2, 1 | 9 << 16, text("short")),
        record(3, 1, words(1)),
        record(5, 0x8009),
        record(7, 1),
        record(0, 1 | 200 << 36),
        event(8, 5, 1, 0, 0),
        event(4, 5, 1, 0, 0),
        event(0, 5, 0, 0, 0, words(1)),
        event(0, 5, 1, 0, 0xFFFF, words(1)),
        event(0, 5, 1, 0, 0, words(0), count=1),
        event(0, 5, 1, 0, 0, words(1 | 9 << 4), count=1),
        event(0, 5, 1, 0, 0, argument(3, 0), count=1),
        event(0, 5, 1, 0, 0, argument(10, 0, 0xFFFF_FFFF), count=1),
        event(0, 5, 1, 0, 0, argument(1, 0x8009), count=1),
        event(0, 5, 1, 0, 0, argument(1, 0), count=15),
    ],
)
def test_malformed_record_does_not_affect_the_next_record(bad: bytes) -> None:
    records, reader = read(TABLES, bad, event(0, 5, 3, 1, 2))
    assert records == [Event(0, 5, HERE, "net", "send")]
    assert reader.damaged == 1


def test_consecutive_zeros_are_counted_as_one_damage() -> None:
    records, reader = read(TABLES, bytes(80), event(0, 5, 3, 1, 2), bytes(8), MAGIC)
    assert len(records) == 1
    assert reader.damaged == 2


@pytest.mark.parametrize("cut", range(1, 24))
def test_truncated_record_is_counted_as_damage(cut: int) -> None:
    whole = event(0, 5, 0, 0, 0, words(1, 2))[:24]
    records, reader = read(TABLES, event(0, 4, 3, 1, 2), whole[:cut])
    assert len(records) == 1
    assert reader.damaged == 1


def test_reads_of_any_size_find_the_same_records(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = (
        MAGIC
        + TABLES
        + event(0, 5, 3, 1, 2)
        + words(15 | 9 << 4)
        + bytes(64)
        + event(2, 6, 3, 1, 2)
    )
    whole, _ = read(trace)
    assert len(whole) == 2
    for size in range(1, 40):
        monkeypatch.setattr(record_reader, "_READ_BYTES", size)
        records, reader = read(trace)
        assert records == whole
        assert reader.damaged == 0
        assert reader.skipped == {"large blobs": 1}


class _Endless(io.RawIOBase):
    """A file with the bytes `start`, followed by `size` zeros."""

    def __init__(self, start: bytes, size: int) -> None:
        self._start = start
        self._left = size

    def read(self, size: int = -1) -> bytes:
        if self._start:
            start, self._start = self._start, b""
            return start
        size = min(size, self._left)
        self._left -= size
        return bytes(size)


def test_huge_blob_is_skipped_in_pieces() -> None:
    size = 64 << 20
    file = _Endless(words(15 | (size // 8 + 1) << 4), size)
    tracemalloc.start()
    try:
        reader = RecordReader(file)  # type: ignore[arg-type]
        assert list(reader) == []
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 8 << 20
    assert (reader.damaged, reader.skipped) == (0, {"large blobs": 1})


def test_truncated_huge_blob_is_counted_as_damage() -> None:
    _, reader = read(words(15 | 0xFFFF_FFFF << 4), bytes(1000))
    assert reader.damaged == 1


def test_sizes_of_all_tables_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_reader, "_MAX_STRING_BYTES", 10)
    monkeypatch.setattr(record_reader, "_MAX_PROVIDERS", 3)
    named = event(0, 5, 0, 0, 1, words(1, 2))
    records, reader = read(
        string(1, "12345678"), string(2, "123"), string(1, "123"), string(2, "1234567"),
        event(0, 5, 0, 1, 2, words(1, 2)),
    )  # fmt: skip
    assert records == [Event(0, 5, Thread(1, 2), "123", "1234567")]
    assert reader.refused == 1
    sections = [record(0, 2 | number << 4) + string(1, "12345") + named for number in range(1, 9)]
    records, reader = read(*sections, *sections)
    # A new provider replaces the oldest provider and its strings.
    assert reader.refused >= 8
    assert {each.name for each in records if isinstance(each, Event)} <= {"12345", ""}


def test_big_endian_trace_is_refused() -> None:
    with pytest.raises(DecodeError, match="big-endian"):
        read(MAGIC[::-1])
