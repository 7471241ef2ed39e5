"""Rules of the importer, each with a trace in text form."""

from __future__ import annotations

from typing import Any

from stretto.analysis.text_packets import parse_packets
from stretto.analysis.trace_tables import import_trace
from stretto.protos.trace import Trace


def table(text: str, name: str, *columns: str) -> list[tuple[Any, ...]]:
    """Import a trace in text form, and return columns of a table."""
    packets = list(parse_packets(text.splitlines(keepends=True), "text"))
    names, rows = import_trace(Trace(packet=packets).encode()).rows(name)
    places = [names.index(column) for column in columns]
    return [tuple(row[place] for place in places) for row in rows]


def test_sequence_id_may_be_zero_but_not_absent() -> None:
    text = """
        packet { timestamp: 1 trusted_packet_sequence_id: 0
                 track_event { type: TYPE_INSTANT track_uuid: 5 name: "zero" } }
        packet { timestamp: 2 track_event { type: TYPE_INSTANT track_uuid: 5 name: "absent" } }
    """
    assert table(text, "slice", "ts", "name") == [(1, "zero")]


def test_snapshot_gives_the_time_of_a_clock_that_went_backwards() -> None:
    snapshot = "packet { clock_snapshot { clocks { clock_id: 1 timestamp: %d } "
    snapshot += "clocks { clock_id: 6 timestamp: %d } } }\n"
    text = snapshot % (500, 10) + snapshot % (400, 20)
    rows = table(text, "clock_snapshot", "ts", "clock_id", "clock_value")
    assert rows == [(10, 1, 500), (10, 6, 10), (20, 1, 400), (20, 6, 20)]
