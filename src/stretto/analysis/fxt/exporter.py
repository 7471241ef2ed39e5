"""Conversion of Perfetto's packets to FXT.

    packets ──> events, sorted by time ──> records
              (on disk, if they are many)

    slice                     duration begin, duration end
    instant                   instant; with flows a zero-length duration: flows join durations
    flow_ids                  flow begin if no flow with this id is open, else flow step
    terminating_flow_ids      flow end
    counter                   counter with the argument `value`
    track                     thread, see `track_threads`

The earliest point of a flow begins the flow. A trace's packets are not in the order of time, so all
events are sorted first. A flow's record follows the record of its slice, as readers expect. If
events were lost, the trace gets a provider event "buffer filled".
"""

from __future__ import annotations

from collections import Counter
from itertools import starmap
from typing import TYPE_CHECKING

from stretto.analysis.fxt import format as fxt
from stretto.analysis.fxt.annotations import MAX_DEPTH, AnnotationReader, as_text
from stretto.analysis.fxt.arguments import argument_of
from stretto.analysis.fxt.outcome import Outcome
from stretto.analysis.fxt.record_writer import RecordWriter
from stretto.analysis.fxt.records import Argument, Event, Thread
from stretto.analysis.fxt.track_threads import TrackThreads
from stretto.analysis.spool import Spool
from stretto.analysis.track_events import BEGIN, COUNTER, END, INSTANT, TrackEvents
from stretto.base.errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, BinaryIO

    from stretto.analysis import track_events
    from stretto.analysis.fxt.track_threads import Name

PROVIDER = 1
FLOW_CATEGORY, FLOW_NAME = "stretto", "flow"
"""The category and the name of all flow points: some readers join only points with equal ones."""
_MAX_FLOWS = 1 << 20
_MAX_TIMESTAMP = (1 << 63) - 1
_KINDS = {BEGIN: fxt.DURATION_BEGIN, END: fxt.DURATION_END, INSTANT: fxt.INSTANT}


def export_fxt(file: BinaryIO, write: Callable[[bytes], object]) -> Outcome:
    """Convert a trace of packets to FXT.

    Args:
        file: The trace.
        write: Called with each part of the FXT trace.

    Returns:
        Counts of the records that were written and of those that were left out.
    """
    outcome = Outcome()
    events = TrackEvents(file, count_others=True)
    with Spool() as spool:
        reading = _Reading(events, spool, outcome)
        for event in events:
            reading.add(event)
        records = RecordWriter(write)
        threads = TrackThreads(events.tracks)
        _write_names(records, threads.names(reading.used), outcome)
        writing = _Writing(records, threads, outcome)
        for (timestamp,), item in spool:
            writing.add(timestamp, item)
    if events.damaged or events.skipped:
        records.provider_event(PROVIDER)
    outcome.leave_out("damaged packets", events.damaged)
    outcome.leave_out("events whose incremental state was lost", events.skipped)
    for name, count in events.others.items():
        outcome.leave_out(f"packets with {name.removeprefix('track_event.')}", count)
    outcome.leave_out("arguments that did not fit into their record", records.left_out)
    outcome.leave_out("texts cut to the maximum length", records.cut)
    return outcome


def _write_names(records: RecordWriter, names: Iterable[Name], outcome: Outcome) -> None:
    records.provider_info(PROVIDER, fxt.OUR_PROVIDER)
    records.initialization()
    for kind, number, name, arguments in names:
        records.kernel_object(kind, number, name, arguments)
        outcome.made["process" if kind == fxt.PROCESS_OBJECT else "track"] += 1


class _Reading:
    """Stores events in the spool, with all interned data resolved."""

    def __init__(self, events: TrackEvents, spool: Spool, outcome: Outcome) -> None:
        self._events = events
        self._spool = spool
        self._outcome = outcome
        self._sums: dict[int, float] = {}
        self.used: set[int] = set()
        """Tracks with slices or instants."""

    def add(self, event: track_events.Event) -> None:
        """Add an event."""
        if event.timestamp > _MAX_TIMESTAMP:
            self._outcome.leave_out("events at impossible times")
            return
        value = None
        if event.kind == COUNTER:
            value = self._value(event)
            if value is None:
                self._outcome.leave_out("counters without a value")
                return
        elif event.kind in _KINDS:
            self.used.add(event.track)
        else:
            self._outcome.leave_out("track events of unknown types")
            return
        arguments = self._arguments(event)
        self._spool.add(
            (event.timestamp,),
            (
                event.kind,
                event.track,
                ",".join(event.categories),
                event.name,
                arguments,
                tuple(flow for flow in event.flows[: len(event.flows) - len(event.ending)]),
                tuple(event.ending),
                value,
            ),
            size=len(event.name) + sum(map(len, event.annotations)),
        )

    def _arguments(self, event: track_events.Event) -> tuple[tuple[Any, ...], ...]:
        if not event.annotations:
            return ()
        reader = AnnotationReader(event.names, event.texts)
        found: list[list[Argument]] = []
        for each in event.annotations:
            try:
                found.append(list(reader.arguments(each)))
            except DecodeError:
                self._outcome.leave_out("damaged arguments")
        self._outcome.leave_out(f"arguments nested deeper than {MAX_DEPTH}", reader.too_deep)
        if sum(map(len, found)) > fxt.MAX_ARGUMENTS:
            found = list(map(as_text, found))
        return tuple(tuple(argument) for arguments in found for argument in arguments)

    def _value(self, event: track_events.Event) -> int | float | None:
        track = self._events.tracks.get(event.track)
        counter = track.counter if track is not None else None
        value = event.value
        if value is None or counter is None:
            return value
        value *= counter.unit_multiplier or 1
        if counter.is_incremental:
            value = self._sums[event.track] = self._sums.get(event.track, 0) + value
        return value


class _Writing:
    """Writes the sorted events as FXT records."""

    def __init__(self, records: RecordWriter, threads: TrackThreads, outcome: Outcome) -> None:
        self._records = records
        self._threads = threads
        self._outcome = outcome
        self._flows: dict[int, None] = {}
        self._counters: dict[int, tuple[str, int]] = {}
        self._same_names: Counter[tuple[int, str]] = Counter()

    def add(self, timestamp: int, entry: tuple[Any, ...]) -> None:
        """Write an event."""
        kind, track, category, name, arguments, flows, ending, value = entry
        if value is not None:
            self._counter(timestamp, track, category, value)
            return
        thread = self._threads.thread(track)
        made = tuple(starmap(Argument, arguments))
        event = Event(_KINDS[kind], timestamp, thread, category, name, made)
        joined = bool(flows or ending)
        if kind == INSTANT and joined:
            event = event._replace(type=fxt.DURATION_BEGIN)
        if kind == END:
            self._add_flows(timestamp, thread, flows, ending)
        self._records.event(event)
        if kind != END:
            self._add_flows(timestamp, thread, flows, ending)
            self._outcome.made["slice" if kind == BEGIN else "instant"] += 1
        if kind == INSTANT and joined:
            self._records.event(Event(fxt.DURATION_END, timestamp, thread, "", ""))

    def _add_flows(
        self, timestamp: int, thread: Thread, flows: Iterable[int], ending: Iterable[int]
    ) -> None:
        for number in flows:
            self._add_flow(fxt.FLOW_STEP if number in self._flows else fxt.FLOW_BEGIN,
                           timestamp, thread, number)  # fmt: skip
            if number not in self._flows:
                self._flows[number] = None
                if len(self._flows) > _MAX_FLOWS:
                    self._flows.pop(next(iter(self._flows)))
        for number in ending:
            if number in self._flows:
                self._flows.pop(number)
                self._add_flow(fxt.FLOW_END, timestamp, thread, number)
            else:
                self._outcome.leave_out("ends of flows that have no beginning")

    def _add_flow(self, kind: int, timestamp: int, thread: Thread, number: int) -> None:
        self._records.event(Event(kind, timestamp, thread, FLOW_CATEGORY, FLOW_NAME, (), number))
        self._outcome.made["flow point"] += 1

    def _counter(self, timestamp: int, track: int, category: str, value: float) -> None:
        thread = self._threads.counter_thread(track)
        if track not in self._counters:
            name = self._threads.name(track)
            key = (thread.process, name)
            self._counters[track] = name, self._same_names[key]
            self._same_names[key] += 1
        name, number = self._counters[track]
        argument = argument_of("value", value) or Argument("value", fxt.DOUBLE, float(value))
        self._records.event(
            Event(fxt.COUNTER, timestamp, thread, category, name, (argument,), number)
        )
        self._outcome.made["counter value"] += 1
