"""The first view of a trace shows names of the program's own functions."""

from __future__ import annotations

import json
import re
import zlib

from stretto.analysis import TraceProcessor
from stretto.protos.trace import (
    InternedData,
    LogMessage,
    LogMessageBody,
    ProcessDescriptor,
    SourceLocation,
    ThreadDescriptor,
    Trace,
    TracePacket,
    TrackDescriptor,
    TrackEvent,
)
from stretto.viewer.first_view import FUNCTIONS_SQL, FirstView, first_view

PROGRAM, CHILD, MAIN, WORKER, TASK = 1, 2, 3, 4, 9
"""Tracks."""
SHOP, PANDAS = "/home/me/shop.py", "/usr/lib/python3.12/site-packages/pandas/frame.py"


def packet(**descriptor: object) -> TracePacket:
    return TracePacket(track_descriptor=TrackDescriptor(**descriptor))  # type: ignore[arg-type]


def call(
    name: str,
    begin: int,
    end: int,
    *,
    file: str = SHOP,
    line: int = 7,
    track: int = MAIN,
    category: str = "python.functions",
) -> list[TracePacket]:
    """Return the packets of a function slice; times in ms."""
    place = SourceLocation(file_name=file, function_name=name, line_number=line)
    first = TrackEvent(
        type=TrackEvent.Type.TYPE_SLICE_BEGIN,
        track_uuid=track,
        name=name,
        categories=[category],
        source_location=place,
    )
    last = TrackEvent(type=TrackEvent.Type.TYPE_SLICE_END, track_uuid=track)
    return [
        TracePacket(timestamp=time * 1_000_000, track_event=event, trusted_packet_sequence_id=1)
        for time, event in ((begin, first), (end, last))
    ]


def trace(*packets: TracePacket) -> bytes:
    """Return a trace of a program with a child process."""
    tracks = [
        TracePacket(trusted_packet_sequence_id=1, sequence_flags=1),
        packet(uuid=PROGRAM, process=ProcessDescriptor(pid=17)),
        packet(uuid=MAIN, parent_uuid=PROGRAM, thread=ThreadDescriptor(pid=17, tid=17)),
        packet(uuid=CHILD, process=ProcessDescriptor(pid=19)),
        packet(uuid=WORKER, parent_uuid=CHILD, thread=ThreadDescriptor(pid=19, tid=19)),
        packet(uuid=TASK, parent_uuid=PROGRAM, name="Task-1"),
    ]
    return Trace(packet=[*tracks, *packets]).encode()


def view(*packets: TracePacket) -> FirstView:
    return first_view(trace(*packets), whole=True)


def shows_table(view: FirstView) -> bool:
    return FUNCTIONS_SQL in [command["args"][0] for command in json.loads(view.commands)]


FIVE = [
    packet
    for number in range(5)
    for packet in call(f"step{number}", 100 * number, 100 * number + 90)
]


def test_tracks_of_the_first_process_are_expanded() -> None:
    tracks = Trace(
        packet=[
            packet(uuid=1, thread=ThreadDescriptor(pid=17, tid=18)),
            packet(uuid=2, process=ProcessDescriptor(pid=17)),
            packet(uuid=3, process=ProcessDescriptor(pid=19)),
        ]
    ).encode()
    packed = TracePacket(compressed_packets=zlib.compress(tracks))
    compressed = Trace(packet=[packed]).encode()
    for start in (tracks, tracks[:-1], compressed):
        (command,) = json.loads(first_view(start, whole=True).commands)
        assert command["id"] == "dev.perfetto.ExpandTracksByRegex"
        (pattern,) = command["args"]
        opened = ["shop.py 17", "MainThread 17", "asyncio tasks", "trio tasks"]
        closed = ["shop.py 170", "17 tasks", "my asyncio tasks"]
        assert [name for name in opened + closed if re.search(pattern, name)] == opened


def test_trace_without_a_process_has_no_first_view() -> None:
    damaged = Trace(packet=[TracePacket(compressed_packets=b"x")]).encode()
    for start in (b"", b'{"traceEvents": []}', Trace(packet=[packet(uuid=1)]).encode(), damaged):
        assert first_view(start, whole=True) == FirstView()


def test_five_readable_names_need_no_table() -> None:
    assert not shows_table(view(*FIVE))
    assert shows_table(view(*FIVE[:8]))


def test_names_in_narrow_bars_need_a_table() -> None:
    assert shows_table(view(*FIVE, *call("sum", 500, 9000, file=PANDAS)))


def test_names_in_deep_rows_need_a_table() -> None:
    outer = [call(f"pandas{depth}", 0, 900, file=PANDAS) for depth in range(24)]
    begins, ends = [pair[0] for pair in outer], [pair[1] for pair in outer]
    assert shows_table(view(*begins, *FIVE, *ends))
    assert not shows_table(view(*begins[1:], *FIVE, *ends[1:]))


def test_names_of_child_processes_need_a_table() -> None:
    assert shows_table(view(*FIVE[:8], *call("step4", 400, 490, track=WORKER)))


def test_lanes_of_the_child_process_that_does_most_of_the_work_are_expanded() -> None:
    def opened(*packets: TracePacket) -> list[str]:
        (pattern,) = json.loads(view(*packets).commands)[0]["args"]
        names = ["job.py 17", "worker 19", "MainThread 19", "Thread-1 23", "Thread-2 29"]
        return [name for name in names if re.search(pattern, name)]

    thread = packet(
        uuid=5, parent_uuid=CHILD, thread=ThreadDescriptor(pid=19, tid=23, thread_name="Thread-1")
    )
    work = call("serve", 0, 400, track=5)
    worker = ["worker 19", "MainThread 19", "Thread-1 23"]
    assert opened(thread, *work, *call("main", 0, 100)) == ["job.py 17", *worker]
    assert opened(thread, *work, *call("main", 0, 500)) == ["job.py 17"]


def test_lanes_of_the_first_of_equally_busy_child_processes_are_expanded() -> None:
    other = [
        packet(uuid=6, process=ProcessDescriptor(pid=23)),
        packet(uuid=7, parent_uuid=6, thread=ThreadDescriptor(pid=23, tid=23)),
    ]
    waits = call("main", 0, 500)
    halves = [*call("serve", 90, 390, track=7), *call("serve", 100, 400, track=WORKER)]
    (pattern,) = json.loads(view(*other, *waits, *halves).commands)[0]["args"]
    names = ["job.py 17", "worker 19", "worker 23"]
    assert [name for name in names if re.search(pattern, name)] == ["job.py 17", "worker 23"]
    (pattern,) = json.loads(view(*other, *call("main", 0, 600), *halves).commands)[0]["args"]
    assert [name for name in names if re.search(pattern, name)] == ["job.py 17"]


def test_log_records_leave_room_for_fewer_rows() -> None:
    record = TracePacket(
        timestamp=5,
        trusted_packet_sequence_id=1,
        sequence_flags=2,
        interned_data=InternedData(log_message_body=[LogMessageBody(iid=1, body="sold")]),
        track_event=TrackEvent(
            type=TrackEvent.Type.TYPE_INSTANT, track_uuid=MAIN, log_message=LogMessage(body_iid=1)
        ),
    )
    outer = [call(f"pandas{depth}", 0, 900, file=PANDAS) for depth in range(8)]
    packets = [pair[0] for pair in outer] + FIVE + [pair[1] for pair in outer]
    assert not shows_table(view(*packets))
    assert shows_table(view(record, *packets))


def test_visible_time_begins_with_the_first_call_after_long_imports() -> None:
    body = call("shop.py", 0, 500, line=1)
    imports = call("import pandas", 10, 60, file=PANDAS)
    found = view(body[0], *imports, *call("main", 70, 400), body[1])
    assert found.visible == (70_000_000, 500_000_000)


def test_visible_time_begins_with_an_installed_function_that_the_script_calls() -> None:
    body = call("shop.py", 0, 500, line=1)
    imports = call("import asyncio", 10, 60, file=PANDAS)
    run = call("asyncio.run", 70, 490, file=PANDAS)
    found = view(body[0], *imports, run[0], *call("main", 300, 400), run[1], body[1])
    assert found.visible == (70_000_000, 500_000_000)


def test_all_is_visible_after_short_imports() -> None:
    body = call("shop.py", 0, 500, line=1)
    assert view(body[0], *call("main", 40, 400), body[1]).visible is None


def test_all_of_a_large_trace_is_visible() -> None:
    start = trace(*call("import pandas", 0, 60, file=PANDAS), *call("main", 70, 100))
    assert first_view(start, whole=True).visible is not None
    assert first_view(start, whole=False).visible is None


def test_table_of_own_functions_counts_calls_of_coroutines_and_not_their_steps() -> None:
    calls = [
        packet
        for begin, end in ((0, 9), (10, 30))
        for packet in call("sell", begin, end, track=TASK, category="python.asyncio")
    ]
    steps = [*call("sell", 0, 1), *call("sell", 8, 9), *call("sell", 10, 11), *call("sell", 20, 24)]
    with TraceProcessor(trace(*calls, *steps), engine="sqlite") as processor:
        (row,) = processor.query(FUNCTIONS_SQL)
    assert (row.function, row.calls, row.longest_ms) == ("sell", 2, 4)


def test_table_of_own_functions_counts_slices() -> None:
    packets = trace(*call("sell", 0, 5), *call("sell", 5, 15), *call("get", 20, 30, file=PANDAS))
    with TraceProcessor(packets, engine="sqlite") as processor:
        (row,) = processor.query(FUNCTIONS_SQL)
    assert (row.function, row.calls, row.longest_ms, row.place) == ("sell", 2, 10, "shop.py:7")


def test_trace_without_own_functions_has_no_table() -> None:
    assert not shows_table(view(*call("pandas.concat", 0, 60, file=PANDAS)))
    assert not shows_table(view(*call("<lambda>", 0, 60, file="<string>")))
