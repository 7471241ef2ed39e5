"""The FXT reader returns the records that were written, and reads any bytes without an error."""

from __future__ import annotations

import io
import struct

from hypothesis import given
from hypothesis import strategies as st

from stretto.analysis.fxt import format as fxt
from stretto.analysis.fxt.record_reader import RecordReader
from stretto.analysis.fxt.record_writer import RecordWriter
from stretto.analysis.fxt.records import Argument, Event, KernelObject, Record, Thread
from tests.support.fxt_bytes import MAGIC, record

unsigned = st.integers(0, (1 << 64) - 1)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
VALUES: dict[int, st.SearchStrategy[int | float | str | bytes | None]] = {
    fxt.NULL: st.none(),
    fxt.INT32: st.integers(-(1 << 31), (1 << 31) - 1),
    fxt.UINT32: st.integers(0, (1 << 32) - 1),
    fxt.INT64: st.integers(-(1 << 63), (1 << 63) - 1),
    fxt.UINT64: unsigned,
    fxt.DOUBLE: st.floats(allow_nan=False),
    fxt.TEXT: texts,
    fxt.POINTER: unsigned,
    fxt.KOID: unsigned,
    fxt.BOOL: st.booleans(),
    fxt.BYTES: st.binary(max_size=20),
}
arguments = st.sampled_from(sorted(VALUES)).flatmap(
    lambda kind: st.builds(Argument, texts, st.just(kind), VALUES[kind])
)
argument_lists = st.lists(arguments, max_size=15).map(tuple)
threads = st.builds(Thread, st.integers(0, 3), unsigned)


def _events(kind: int) -> st.SearchStrategy[Event]:
    number = unsigned if kind in fxt.EVENTS_WITH_ID else st.just(0)
    end = unsigned if kind == fxt.DURATION_COMPLETE else st.just(0)
    return st.builds(
        Event, st.just(kind), unsigned, threads, texts, texts, argument_lists, number, end
    )


events = st.integers(0, 10).flatmap(_events)
objects = st.builds(KernelObject, st.integers(0, 255), unsigned, texts, argument_lists)


@given(st.lists(events | objects, max_size=20))
def test_fxt_reader_returns_the_written_records(records: list[Record]) -> None:
    file = io.BytesIO()
    writer = RecordWriter(file.write)
    for each in records:
        if isinstance(each, Event):
            writer.event(each)
        elif isinstance(each, KernelObject):
            writer.kernel_object(*each)
    file.seek(0)
    reader = RecordReader(file)
    assert list(reader) == records
    assert (reader.damaged, reader.refused, dict(reader.skipped)) == (0, 0, {})
    assert (writer.cut, writer.left_out) == (0, 0)


words = unsigned.map(lambda value: struct.pack("<Q", value))
plausible = st.builds(
    lambda kind, high, body: record(kind, high, *body),
    st.integers(0, 15),
    st.integers(0, (1 << 48) - 1),
    st.lists(words, max_size=6),
)


@given(st.lists(plausible | words | st.binary(max_size=9), max_size=30))
def test_fxt_reader_reads_any_bytes_to_the_end(parts: list[bytes]) -> None:
    data = MAGIC + b"".join(parts)
    reader = RecordReader(io.BytesIO(data))
    found = list(reader)
    counted = len(found) + reader.damaged + sum(reader.skipped.values())
    assert counted <= len(data) // 8 + 1
