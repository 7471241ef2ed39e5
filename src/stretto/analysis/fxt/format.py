"""Numbers of the FXT format.

A file is a sequence of records of little-endian 64-bit words. The first word of each record has its
type and its number of words:

    bits  0-3   type of the record
    bits  4-15  number of words (bits 4-35 in a large record)
    bits 16-63  depend on the type

Strings and threads are references: to a table that earlier records have filled, or to inline data
behind the record's own words. Text and bytes are padded with zeros to whole words.
"""

from __future__ import annotations

WORD_BYTES = 8
MAGIC = 0x0016547846040010
MAGIC_BYTES = MAGIC.to_bytes(WORD_BYTES, "little")
BIG_ENDIAN_MAGIC_BYTES = MAGIC.to_bytes(WORD_BYTES, "big")

METADATA, INITIALIZATION, STRING, THREAD, EVENT, BLOB = range(6)
USERSPACE_OBJECT, KERNEL_OBJECT, SCHEDULING, LOG, PROFILER = range(6, 11)
LARGE = 15

PROVIDER_INFO, PROVIDER_SECTION, PROVIDER_EVENT, TRACE_INFO = range(1, 5)
BUFFER_FILLED = 0
"""The type of the provider event that reports lost records."""

INSTANT, COUNTER, DURATION_BEGIN, DURATION_END, DURATION_COMPLETE = range(5)
ASYNC_BEGIN, ASYNC_INSTANT, ASYNC_END = range(5, 8)
FLOW_BEGIN, FLOW_STEP, FLOW_END = range(8, 11)
EVENTS_WITH_ID = frozenset((COUNTER, *range(ASYNC_BEGIN, FLOW_END + 1)))
"""Events with one additional word: the id of the counter, operation or flow."""

NULL, INT32, UINT32, INT64, UINT64, DOUBLE, TEXT, POINTER, KOID, BOOL, BYTES = range(11)
"""Types of arguments."""

PERFETTO_BLOB = 3
PROCESS_OBJECT, THREAD_OBJECT = 1, 2

MAX_RECORD_WORDS = 0xFFF
MAX_ARGUMENTS = 15
MAX_STRINGS = 0x7FFF
MAX_THREADS = 0xFF
INLINE = 0x8000
"""A bit of string references: if set, the other bits are the length of the inline text."""

OUR_PROVIDER = "stretto"
"""The provider of converted traces; in these, argument names are paths (`nested_names`)."""

DEFAULT_TICKS_PER_SECOND = 1_000_000_000


def padded(size: int) -> int:
    """Return a size in bytes, rounded up to whole words."""
    return (size + 7) & ~7
