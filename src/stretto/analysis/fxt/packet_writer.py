"""Writes track events as packets of one sequence, with names interned in bounded tables.

Source: docs/formats/track_events.md, "Fields".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.analysis.fxt.annotations import write_node
from stretto.analysis.fxt.nested_names import nest
from stretto.analysis.track_events import END
from stretto.protos.trace import TracePacket, TrackDescriptor
from stretto.protozero import wire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stretto.protos.trace import InternedData

    Arguments = Iterable[tuple[str, int, float | str | bytes | None]]
    Joined = Iterable[tuple[int, bool]]
    """Ids of flows, each with whether the flow ends here."""

SEQUENCE = 0x7F787400
"""The trusted_packet_sequence_id: "fxt" in hexadecimal, far above the ids of services."""
_CLEARED, _NEEDS_STATE = 1, 2
_MAX_NAMES = 1 << 14
_PACKET = 1


class _Names:
    """The interned names of one field, with their ids."""

    __slots__ = ("new", "numbers")

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.new: list[tuple[int, str]] = []
        """The entries to write with the next packet."""

    def number(self, name: str) -> int:
        """Return the id of a name; 0 if the table is full."""
        number = self.numbers.get(name, 0)
        if not number and len(self.numbers) < _MAX_NAMES and len(name) < 1024:
            number = self.numbers[name] = len(self.numbers) + 1
            self.new.append((number, name))
        return number


class PacketWriter:
    """Writes descriptors and events.

    Args:
        write: Called with the encoded packets of a trace.
    """

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self._events = _Names()
        self._categories = _Names()
        self._arguments = _Names()
        self._flags = _CLEARED | _NEEDS_STATE

    def _finish(self, packet: TracePacket.Writer) -> None:
        self._write(wire.bytes_field(_PACKET, packet.finish()))

    def process(self, uuid: int, pid: int, name: str) -> None:
        """Write the descriptor of a process track."""
        packet = TracePacket.Writer()
        with packet.set_track_descriptor() as track:
            track.set_uuid(uuid)
            with track.set_process() as process:
                process.set_pid(pid)
                if name:
                    process.set_process_name(name)
        self._finish(packet)

    def thread(self, uuid: int, parent: int, pid: int, tid: int, name: str) -> None:
        """Write the descriptor of a thread track."""
        packet = TracePacket.Writer()
        with packet.set_track_descriptor() as track:
            track.set_uuid(uuid)
            track.set_parent_uuid(parent)
            with track.set_thread() as thread:
                thread.set_pid(pid)
                thread.set_tid(tid)
                if name:
                    thread.set_thread_name(name)
        self._finish(packet)

    def track(
        self,
        uuid: int,
        parent: int,
        name: str | None,
        *,
        counter: bool = False,
        separate: bool = False,
    ) -> None:
        """Write the descriptor of a counter track or a plain track.

        Args:
            uuid: Its uuid.
            parent: That of the process, thread or track around it; 0 for none.
            name: Its name, if it has one.
            counter: Whether it has values instead of slices.
            separate: Whether readers keep it apart from tracks of the same name.
        """
        packet = TracePacket.Writer()
        with packet.set_track_descriptor() as track:
            track.set_uuid(uuid)
            if parent:
                track.set_parent_uuid(parent)
            if name is not None:
                track.set_name(name)
            if separate:
                track.set_sibling_merge_behavior(TrackDescriptor.SIBLING_MERGE_BEHAVIOR_NONE)
            if counter:
                track.set_counter().finalize()
        self._finish(packet)

    def event(
        self,
        kind: int,
        timestamp: int,
        track: int,
        *,
        category: str = "",
        name: str | None = "",
        arguments: Arguments = (),
        flows: Joined = (),
    ) -> None:
        """Write a BEGIN, END or INSTANT; an END needs no name. A name of None isn't written."""
        if not name and kind == END:
            name = None
        name_iid = self._events.number(name) if name is not None else 0
        category_iid = self._categories.number(category) if category else 0
        entries = [(self._arguments.number(each[0]), *each) for each in nest(arguments)]
        packet = self._packet(timestamp)
        with packet.set_track_event() as event:
            event.set_type(kind)
            event.set_track_uuid(track)
            if name_iid:
                event.set_name_iid(name_iid)
            elif name is not None:
                event.set_name(name)
            if category_iid:
                event.add_category_iids(category_iid)
            elif category:
                event.add_categories(category)
            for iid, argument, node in entries:
                with event.add_debug_annotations() as entry:
                    if iid:
                        entry.set_name_iid(iid)
                    else:
                        entry.set_name(argument)
                    write_node(entry, node)
            for flow, ends in flows:
                if ends:
                    event.add_terminating_flow_ids(flow)
                else:
                    event.add_flow_ids(flow)
        self._finish(packet)

    def counter(self, timestamp: int, track: int, value: float) -> None:
        """Write a value of a counter."""
        packet = self._packet(timestamp)
        with packet.set_track_event() as event:
            event.set_type(4)
            event.set_track_uuid(track)
            if isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
                event.set_counter_value(value)
            else:
                event.set_double_counter_value(float(value))
        self._finish(packet)

    def _packet(self, timestamp: int) -> TracePacket.Writer:
        packet = TracePacket.Writer()
        packet.set_timestamp(timestamp)
        packet.set_trusted_packet_sequence_id(SEQUENCE)
        packet.set_sequence_flags(self._flags)
        if self._flags & _CLEARED:
            packet.set_first_packet_on_sequence(True)
            self._flags = _NEEDS_STATE
        if self._events.new or self._categories.new or self._arguments.new:
            with packet.set_interned_data() as data:
                self._write_new_names(data)
        return packet

    def _write_new_names(self, data: InternedData.Writer) -> None:
        for names, add in (
            (self._categories, data.add_event_categories),
            (self._events, data.add_event_names),
            (self._arguments, data.add_debug_annotation_names),
        ):
            for iid, name in names.new:
                with add() as entry:
                    entry.set_iid(iid)
                    entry.set_name(name)
            names.new.clear()
