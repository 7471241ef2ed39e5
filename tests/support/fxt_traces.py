"""Builds FXT traces event by event, and converts complete traces."""

from __future__ import annotations

import io
from collections.abc import Iterable

from stretto.analysis.fxt import format as fxt
from stretto.analysis.fxt.arguments import argument_of
from stretto.analysis.fxt.exporter import export_fxt
from stretto.analysis.fxt.importer import import_fxt
from stretto.analysis.fxt.outcome import Outcome
from stretto.analysis.fxt.record_reader import RecordReader
from stretto.analysis.fxt.record_writer import RecordWriter
from stretto.analysis.fxt.records import Argument, Event, Record, Thread

CLIENT, SERVER = Thread(10, 11), Thread(20, 21)


def exported(trace: bytes) -> tuple[bytes, Outcome]:
    file = io.BytesIO()
    outcome = export_fxt(io.BytesIO(trace), file.write)
    return file.getvalue(), outcome


def imported(trace: bytes) -> tuple[bytes, Outcome]:
    file = io.BytesIO()
    outcome = import_fxt(io.BytesIO(trace), file.write)
    return file.getvalue(), outcome


def records_of(trace: bytes) -> list[Record]:
    reader = RecordReader(io.BytesIO(trace))
    records = list(reader)
    assert reader.damaged == 0
    return records


class FxtTrace:
    """An FXT trace with one thread of a client and one of a server."""

    def __init__(self) -> None:
        self._file = io.BytesIO()
        self.records = RecordWriter(self._file.write)
        self.records.provider_info(1, "test")
        self.records.initialization()
        for thread, name in ((CLIENT, "client"), (SERVER, "server")):
            process = Argument("process", fxt.KOID, thread.process)
            self.records.kernel_object(fxt.PROCESS_OBJECT, thread.process, name)
            self.records.kernel_object(fxt.THREAD_OBJECT, thread.thread, "main", [process])

    def event(
        self,
        kind: int,
        time: int,
        thread: Thread = CLIENT,
        name: str = "",
        *,
        number: int = 0,
        end: int = 0,
        category: str = "test",
        **arguments: object,
    ) -> None:
        made = [argument_of(key, value) for key, value in arguments.items()]
        self.records.event(
            Event(
                kind, time, thread, category, name,
                tuple(each for each in made if each is not None), number, end,
            )
        )  # fmt: skip

    def message(
        self, time: int, thread: Thread, flow: tuple[int, int], ordinal: int = 0xABC
    ) -> None:
        """Add the events of a kernel message; `flow` is the type and the id of its flow point."""
        here = {"category": "kernel:ipc"}
        ordinal_argument = Argument("ordinal", fxt.UINT64, ordinal)
        self.records.event(
            Event(fxt.DURATION_BEGIN, time, thread, "kernel:ipc", "ChannelMessage",
                  (ordinal_argument,))
        )  # fmt: skip
        self.event(flow[0], time, thread, "ChannelFlow", number=flow[1], **here)
        self.event(fxt.DURATION_END, time, thread, "ChannelMessage", **here)

    def slice(
        self, start: int, end: int, thread: Thread, name: str, flows: Iterable[tuple[int, int]] = ()
    ) -> None:
        """Add a slice with flow points at its beginning."""
        self.event(fxt.DURATION_BEGIN, start, thread, name)
        for kind, number in flows:
            self.event(kind, start, thread, "flow", number=number)
        self.event(fxt.DURATION_END, end, thread)

    @property
    def data(self) -> bytes:
        return self._file.getvalue()
