"""Reads the records of a file in their order.

    file -> blocks -> FXT records -> tables of the provider   strings, threads, clock
                                  -> Record                   all other records

Rules
- A file is hostile: every length is checked against its record, and every record against the file.
- Memory is bounded: one record, and the tables of `_MAX_PROVIDERS` providers, with at most
  `_MAX_STRING_BYTES` of text in all tables.
- A damaged record is lost, and the next one is read. A record starts with its own length; if that
  is zero, reading continues at the next word.
- Times are nanoseconds: ticks are converted by the provider's rate.
- Records of unknown types are skipped, and counted by their kind.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from stretto.analysis.fxt import format as fxt
from stretto.analysis.fxt import records
from stretto.analysis.fxt.arguments import read_arguments
from stretto.analysis.fxt.words import Words
from stretto.base.errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

_READ_BYTES = 1 << 20
_MAX_PROVIDERS = 1024
_MAX_STRING_BYTES = 64 << 20
_NO_THREAD = records.Thread(0, 0)
_NANOSECONDS = fxt.DEFAULT_TICKS_PER_SECOND
_KINDS = {
    fxt.USERSPACE_OBJECT: "userspace objects",
    fxt.SCHEDULING: "scheduling",
    fxt.LOG: "log messages",
    fxt.PROFILER: "profiler records",
    fxt.LARGE: "large blobs",
}
"""Names of the skipped record types."""


class _Provider:
    """The tables that a provider's records refer to."""

    __slots__ = ("id", "name", "strings", "threads", "ticks_per_second")

    def __init__(self, number: int) -> None:
        self.id = number
        self.name = ""
        self.strings: dict[int, str] = {}
        self.threads: dict[int, records.Thread] = {}
        self.ticks_per_second = _NANOSECONDS

    def nanoseconds(self, ticks: int) -> int:
        rate = self.ticks_per_second
        return ticks if rate == _NANOSECONDS else ticks * _NANOSECONDS // rate


class RecordReader:
    """An iterable over the records of a trace, for one iteration.

    Args:
        file: The trace, opened for reading bytes.

    Attributes:
        skipped: The number of unknown records, by their kind.
        damaged: The number of unreadable records, and of file areas that hold no records.
        refused: The number of table entries for which there was no room.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._provider = _Provider(0)
        self._providers = {0: self._provider}
        self._string_bytes = 0
        self._in_void = False
        self._readers: dict[int, Callable[[int, Words], records.Record | None]] = {
            fxt.METADATA: self._metadata,
            fxt.INITIALIZATION: self._initialization,
            fxt.STRING: self._string,
            fxt.THREAD: self._thread,
            fxt.EVENT: self._event,
            fxt.BLOB: self._blob,
            fxt.KERNEL_OBJECT: self._kernel_object,
        }
        self.skipped: Counter[str] = Counter()
        self.damaged = 0
        self.refused = 0

    @property
    def provider(self) -> int:
        """The id of the provider of the latest record."""
        return self._provider.id

    @property
    def provider_name(self) -> str:
        """The name of the provider of the latest record."""
        return self._provider.name

    def __iter__(self) -> Iterator[records.Record]:
        """Iterate over the records.

        Raises:
            DecodeError: The trace was written on a big-endian machine.
        """
        data = self._file.read(_READ_BYTES)
        if data.startswith(fxt.BIG_ENDIAN_MAGIC_BYTES):
            raise DecodeError("an FXT trace of a big-endian machine; these aren't read")
        position = over = 0
        while data:
            position, over = min(over, len(data)), max(over - len(data), 0)
            while position + fxt.WORD_BYTES <= len(data):
                header = int.from_bytes(data[position : position + 8], "little")
                end = position + self._size(header)
                if end > len(data):
                    if header & 0xF == fxt.LARGE:
                        # A large record is skipped, because it may not fit into memory.
                        over, position = end - len(data), len(data)
                        self.skipped[_KINDS[fxt.LARGE]] += 1
                    break
                record = self._record(header, data, position, end)
                position = end
                if record is not None:
                    yield record
            piece = self._file.read(_READ_BYTES)
            if not piece:
                self.damaged += position < len(data) or over > 0
                return
            data, position = data[position:] + piece, 0

    def _size(self, header: int) -> int:
        """Return a record's size in bytes; one word for a record whose length is zero."""
        words = header >> 4 & (0xFFFF_FFFF if header & 0xF == fxt.LARGE else 0xFFF)
        if words:
            self._in_void = False
            return words * fxt.WORD_BYTES
        self.damaged += not self._in_void
        self._in_void = True
        return fxt.WORD_BYTES

    def _record(self, header: int, data: bytes, start: int, end: int) -> records.Record | None:
        if self._in_void:
            return None
        kind = header & 0xF
        read = self._readers.get(kind)
        if read is None:
            self.skipped[_KINDS.get(kind, f"records of type {kind}")] += 1
            return None
        words = Words(data, start + fxt.WORD_BYTES, end, self._provider.strings)
        try:
            return read(header, words)
        except DecodeError:
            self.damaged += 1
            return None

    def _metadata(self, header: int, words: Words) -> records.Record | None:
        kind, provider = header >> 16 & 0xF, header >> 20 & 0xFFFF_FFFF
        if kind == fxt.PROVIDER_INFO:
            name = words.stream(header >> 52 & 0xFF).decode(errors="replace")
            self._drop(provider)
            self._switch(provider)
            self._provider.name = name
            return records.ProviderInfo(provider, name)
        if kind == fxt.PROVIDER_SECTION:
            self._switch(provider)
            return records.ProviderSection(provider)
        if kind == fxt.PROVIDER_EVENT:
            return records.ProviderEvent(provider, header >> 52 & 0xF)
        if kind != fxt.TRACE_INFO:
            self.skipped[f"metadata of type {kind}"] += 1
        return None

    def _switch(self, number: int) -> None:
        if number not in self._providers:
            if len(self._providers) == _MAX_PROVIDERS:
                self.refused += 1
                self._drop(next(iter(self._providers)))
            self._providers[number] = _Provider(number)
        self._provider = self._providers[number]

    def _drop(self, number: int) -> None:
        """Delete a provider's tables, if there are any."""
        provider = self._providers.pop(number, None)
        if provider is not None:
            self._string_bytes -= sum(map(len, provider.strings.values()))

    def _initialization(self, _: int, words: Words) -> records.Record:
        rate = words.word()
        if not rate:
            raise DecodeError("a clock with the rate 0")
        self._provider.ticks_per_second = rate
        return records.Initialization(rate)

    def _string(self, header: int, words: Words) -> None:
        index = header >> 16 & 0x7FFF
        strings = self._provider.strings
        text = words.stream(header >> 32 & 0x7FFF).decode(errors="replace")
        if not index:
            return
        self._string_bytes += len(text) - len(strings.pop(index, ""))
        if self._string_bytes > _MAX_STRING_BYTES:
            self._string_bytes -= len(text)
            self.refused += 1
        else:
            strings[index] = text

    def _thread(self, header: int, words: Words) -> None:
        index = header >> 16 & 0xFF
        thread = records.Thread(words.word(), words.word())
        if index:
            self._provider.threads[index] = thread

    def _event(self, header: int, words: Words) -> records.Record | None:
        kind = header >> 16 & 0xF
        provider = self._provider
        timestamp = provider.nanoseconds(words.word())
        index = header >> 24 & 0xFF
        if index:
            thread = provider.threads.get(index, _NO_THREAD)
        else:
            thread = records.Thread(words.word(), words.word())
        category = words.text(header >> 32 & 0xFFFF)
        name = words.text(header >> 48)
        arguments = read_arguments(words, header >> 20 & 0xF)
        if kind in fxt.EVENTS_WITH_ID:
            return records.Event(kind, timestamp, thread, category, name, arguments, words.word())
        if kind == fxt.DURATION_COMPLETE:
            end = provider.nanoseconds(words.word())
            return records.Event(kind, timestamp, thread, category, name, arguments, 0, end)
        if kind > fxt.FLOW_END:
            self.skipped[f"events of type {kind}"] += 1
            return None
        return records.Event(kind, timestamp, thread, category, name, arguments)

    def _blob(self, header: int, words: Words) -> records.Record:
        name = words.text(header >> 16 & 0xFFFF)
        return records.Blob(header >> 48 & 0xFF, name, words.stream(header >> 32 & 0x7FFF))

    def _kernel_object(self, header: int, words: Words) -> records.Record:
        number = words.word()
        name = words.text(header >> 24 & 0xFFFF)
        arguments = read_arguments(words, header >> 40 & 0xF)
        return records.KernelObject(header >> 16 & 0xFF, number, name, arguments)
