"""The list of queries that users write, and the trace on which they are compared.

In queries/*.sql, a comment before each query gives its source. The trace has the names that the
queries search for, so that they find rows.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from google.protobuf import text_format
from perfetto.protos.perfetto.trace import perfetto_trace_pb2

FOLDER = Path(__file__).parent / "queries"


class Query(NamedTuple):
    """A query of the list."""

    number: int
    source: str
    sql: str


def read_queries() -> list[Query]:
    """Read the list; the numbers are the positions in the list."""
    text = "\n".join(path.read_text() for path in sorted(FOLDER.glob("*.sql")))
    parts = re.split(r"(?m)^-- source: (.*)\n", text)[1:]
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return [Query(n, source, sql.strip()) for n, (source, sql) in enumerate(pairs, 1)]


def _slice(ts: int, dur: int, name: str, more: str = "", *, track: int = 7, inner: str = "") -> str:
    """Return the packets of a slice; `inner` are packets between its begin and end."""
    return (
        _event(ts, "SLICE_BEGIN", f'name: "{name}" categories: "app" {more}', track)
        + inner
        + _event(ts + dur, "SLICE_END", "", track)
    )


def _event(ts: int, kind: str, more: str, track: int) -> str:
    return (
        f"packet {{ trusted_packet_sequence_id: 2 timestamp: {ts} "
        f"track_event {{ type: TYPE_{kind} track_uuid: {track} {more} }} }}\n"
    )


def _track(uuid: int, fields: str) -> str:
    return (
        "packet { trusted_packet_sequence_id: 2 sequence_flags: 1 "
        f"track_descriptor {{ uuid: {uuid} {fields} }} }}\n"
    )


def _debug(name: str, value: str) -> str:
    return f'debug_annotations {{ name: "{name}" {value} }} '


MS = 1_000_000


def _tracks() -> str:
    lanes = (
        "My Custom Data Timeline",
        "My Nested Operations Timeline",
        "HTTP Connections",
        "Main System",
        "Request Service",
        "Debug Annotations Example",
        "Nested Debug Annotations",
        "Funcgraph",
    )
    return "".join(
        [
            _track(1, 'process { pid: 1234 process_name: "com.example.myapp" }'),
            _track(2, 'process { pid: 4321 process_name: "system_server" }'),
            _track(7, 'thread { pid: 1234 tid: 1234 thread_name: "main" }'),
            _track(8, 'thread { pid: 1234 tid: 5678 thread_name: "RenderThread" }'),
            _track(9, 'thread { pid: 4321 tid: 4400 thread_name: "OomAdjuster" }'),
            *(
                _track(20 + n, f'parent_uuid: {1 + n % 2} name: "{name}"')
                for n, name in enumerate(lanes)
            ),
            _track(40, 'name: "Outstanding Network Requests" counter { unit: UNIT_COUNT }'),
            _track(41, 'parent_uuid: 1 name: "mem.swap" counter { unit: UNIT_SIZE_BYTES }'),
            _track(42, 'parent_uuid: 7 name: "Framerate" counter { unit_name: "fps" }'),
            _track(43, 'parent_uuid: 2 name: "batt.charge" counter {}'),
        ]
    )


def _main_thread() -> str:
    nested = _slice(
        12 * MS,
        5 * MS,
        "handle interesting_slice",
        _debug("msg_id", "int_value: 1730449307563864") + "flow_ids: 5",
        inner=_slice(13 * MS, MS, "binder transaction", "flow_ids: 6")
        + _slice(15 * MS, 2 * MS, "binder reply", 'flow_ids: 77 categories: "ipc"'),
    )
    return "".join(
        [
            _slice(10 * MS, 20 * MS, "measure", inner=nested),
            _slice(31 * MS, 0, "measure"),
            *(
                _slice(
                    (40 + n * n) * MS,
                    (n + 1) * MS + 7,
                    name,
                    _debug("player_number", f"int_value: {n}"),
                )
                for n, name in enumerate(
                    ("DrawPlayer", "DrawPlayer", "game_frame", "advance", "solver.advance")
                )
            ),
            _event(90 * MS, "INSTANT", 'name: "mem.lmk" categories: "app"', 1),
            _event(91 * MS, "INSTANT", 'name: "mark" categories: "app"', 7),
        ]
    )


def _other_threads() -> str:
    return "".join(
        [
            _slice(14 * MS, 9 * MS, "MyEvent draw", "terminating_flow_ids: 6", track=8),
            _slice(24 * MS, 2 * MS, "interesting_slice", track=8),
            _slice(
                18 * MS,
                11 * MS,
                "setProcessGroup com.example.myapp to 5",
                "flow_ids: 5",
                track=9,
                inner=_slice(19 * MS, MS, "RenderThread wait", "terminating_flow_ids: 77", track=9),
            ),
            _slice(30 * MS, 600 * MS, "setProcessGroup idle to 0", track=9),
            *(
                _slice(
                    (50 + n) * MS,
                    (3 * n + 2) * MS,
                    ("GET /", "MyEvent 2", "interesting slice name", "sys_read")[n % 4],
                    _debug("query_id", f"uint_value: {n}")
                    + 'debug_annotations { name: "config" dict_entries { name: "database" '
                    f'string_value: "db{n}" }} }} debug_annotations {{ name: "server_list" '
                    f'array_values {{ string_value: "s{n}" }} }}',
                    track=20 + n,
                )
                for n in range(8)
            ),
            _event(700 * MS, "SLICE_BEGIN", 'name: "open" categories: "app"', 8),
        ]
    )


def _counters() -> str:
    return "".join(
        _event(n * 9 * MS, "COUNTER", f"counter_value: {(n * 37) % 11 * scale}", track)
        for track, scale in ((40, 1), (41, 500), (42, 60), (43, -3))
        for n in range(1, 12)
    )


def _logs() -> str:
    return (
        "packet { trusted_packet_sequence_id: 2 timestamp: 33000000 interned_data { "
        'log_message_body { iid: 1 body: "ready" } } }\n'
    ) + _event(34 * MS, "INSTANT", 'name: "log" log_message { body_iid: 1 prio: PRIO_WARN }', 7)


def make_trace() -> bytes:
    """Return the trace."""
    text = _tracks() + _main_thread() + _other_threads() + _counters() + _logs()
    trace = perfetto_trace_pb2.Trace()
    text_format.Parse(text, trace)
    return bytes(trace.SerializeToString())
