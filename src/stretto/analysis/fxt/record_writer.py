"""Writes records, and the entries of the string and thread tables that they refer to.

    RecordWriter(file.write)
    writer.initialization()  writer.kernel_object(…)  writer.event(…)

Rules
- A text gets an entry in the string table at its second use: most argument values are used only
  once, and would fill the table. Entries are never replaced. When a table is full, further texts
  and threads are written inline.
- A record has at most 32,760 bytes and 15 arguments. A name has at most 2,000 bytes, a text 24,000.
  Longer texts are cut, and counted in `cut`. Arguments that don't fit are left out, and counted in
  `left_out`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.analysis.fxt import format as fxt
from stretto.analysis.fxt.arguments import encode_argument
from stretto.base.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stretto.analysis.fxt.records import Argument, Event, Thread

_MAX_CANDIDATES = 1 << 16
"""The number of remembered texts that were used once."""
_MAX_ENTRY_BYTES = 512
_MAX_NAME_BYTES, _MAX_VALUE_BYTES = 2000, 24000
"""With these limits a category, a name, and an argument always fit into one record."""
_MAX_RECORD_BYTES = fxt.MAX_RECORD_WORDS * fxt.WORD_BYTES
_MASK64 = (1 << 64) - 1


class RecordWriter:
    """Writes the records of one trace.

    Args:
        write: Called with the bytes of the file, in order. The magic number comes first.

    Attributes:
        cut: The number of texts that were too long for a record.
        left_out: The number of arguments that didn't fit into their record.
    """

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self._strings: dict[str, int] = {}
        self._threads: dict[Thread, int] = {}
        self._seen: set[str] = set()
        self.cut = 0
        self.left_out = 0
        write(fxt.MAGIC_BYTES)

    def provider_info(self, number: int, name: str) -> None:
        """Begin the records of a provider; its tables are empty."""
        data = self._bounded(name, 0xFF)
        self._record(fxt.METADATA, fxt.PROVIDER_INFO | number << 4 | len(data) << 36, _pad(data))
        self._strings.clear()
        self._threads.clear()
        self._seen.clear()

    def provider_event(self, number: int, event: int = fxt.BUFFER_FILLED) -> None:
        """Write that a provider lost records."""
        self._record(fxt.METADATA, fxt.PROVIDER_EVENT | number << 4 | event << 36)

    def initialization(self, ticks_per_second: int = fxt.DEFAULT_TICKS_PER_SECOND) -> None:
        """Write the rate of the clock of the following records."""
        self._record(fxt.INITIALIZATION, 0, _word(ticks_per_second))

    def kernel_object(
        self, kind: int, number: int, name: str, arguments: Iterable[Argument] = ()
    ) -> None:
        """Write the name of a kernel object.

        Args:
            kind: PROCESS_OBJECT, THREAD_OBJECT or another type of Zircon's objects.
            number: The koid of the object.
            name: The name of the object.
            arguments: For a thread, the koid of its process as the argument `process`.
        """
        reference, inline = self._name(name)
        encoded = self._arguments(arguments, _MAX_RECORD_BYTES - 16 - len(inline))
        low = kind | reference << 8 | len(encoded) << 24
        self._record(fxt.KERNEL_OBJECT, low, _word(number), inline, *encoded)

    def blob(self, kind: int, name: str, data: bytes) -> None:
        """Write bytes, split into as many records as necessary."""
        reference, inline = self._name(name)
        room = _MAX_RECORD_BYTES - 8 - len(inline)
        for start in range(0, len(data) or 1, room):
            part = data[start : start + room]
            low = reference | len(part) << 16 | kind << 32
            self._record(fxt.BLOB, low, inline, _pad(part))

    def event(self, event: Event) -> None:
        """Write an event; its times are ticks."""
        category, inline_category = self._name(event.category)
        name, inline_name = self._name(event.name)
        index, inline_thread = self._thread(event.thread)
        start = _word(event.timestamp) + inline_thread + inline_category + inline_name
        last = b""
        if event.type in fxt.EVENTS_WITH_ID:
            last = _word(event.id)
        elif event.type == fxt.DURATION_COMPLETE:
            last = _word(event.end)
        room = _MAX_RECORD_BYTES - fxt.WORD_BYTES - len(start) - len(last)
        encoded = self._arguments(event.arguments, room)
        low = event.type | len(encoded) << 4 | index << 8 | category << 16 | name << 32
        self._record(fxt.EVENT, low, start, *encoded, last)

    def _record(self, kind: int, low: int, *parts: bytes) -> None:
        """Write a record.

        Args:
            kind: The type of the record.
            low: Bits 16 to 63 of the header.
            parts: The payload.
        """
        body = b"".join(parts)
        words = 1 + len(body) // fxt.WORD_BYTES
        if words > fxt.MAX_RECORD_WORDS:
            raise ConfigError(
                f"a record of {words} words; at most {fxt.MAX_RECORD_WORDS} are possible"
            )
        self._write(_word(kind | words << 4 | low << 16) + body)

    def _arguments(self, arguments: Iterable[Argument], room: int) -> list[bytes]:
        encoded: list[bytes] = []
        for argument in arguments:
            data = encode_argument(argument, self._name, self._value)
            if len(encoded) == fxt.MAX_ARGUMENTS or len(data) > room:
                self.left_out += 1
                continue
            encoded.append(data)
            room -= len(data)
        return encoded

    def _bounded(self, text: str, limit: int) -> bytes:
        data = text.encode(errors="replace")
        if len(data) <= limit:
            return data
        self.cut += 1
        return data[:limit].decode(errors="ignore").encode()

    def _name(self, text: str) -> tuple[int, bytes]:
        return self._reference(text, _MAX_NAME_BYTES)

    def _value(self, text: str) -> tuple[int, bytes]:
        return self._reference(text, _MAX_VALUE_BYTES)

    def _reference(self, text: str, limit: int) -> tuple[int, bytes]:
        """Return the reference to a text, and the bytes to write inline."""
        if not text:
            return 0, b""
        index = self._strings.get(text)
        if index is not None:
            return index, b""
        data = self._bounded(text, limit)
        if not self._deserves_entry(text, data):
            return fxt.INLINE | len(data), _pad(data)
        index = self._strings[text] = len(self._strings) + 1
        self._record(fxt.STRING, index | len(data) << 16, _pad(data))
        return index, b""

    def _deserves_entry(self, text: str, data: bytes) -> bool:
        if len(self._strings) == fxt.MAX_STRINGS or len(data) > _MAX_ENTRY_BYTES:
            return False
        if text in self._seen:
            self._seen.discard(text)
            return True
        if len(self._seen) < _MAX_CANDIDATES:
            self._seen.add(text)
        return False

    def _thread(self, thread: Thread) -> tuple[int, bytes]:
        """Return the reference to a thread, and the bytes to write inline."""
        index = self._threads.get(thread)
        if index is not None:
            return index, b""
        if len(self._threads) == fxt.MAX_THREADS:
            return 0, b"".join(map(_word, thread))
        index = self._threads[thread] = len(self._threads) + 1
        self._record(fxt.THREAD, index, b"".join(map(_word, thread)))
        return index, b""


def _word(value: int) -> bytes:
    return (value & _MASK64).to_bytes(fxt.WORD_BYTES, "little")


def _pad(data: bytes) -> bytes:
    return data.ljust(fxt.padded(len(data)), b"\0")
