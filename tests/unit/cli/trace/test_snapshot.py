from __future__ import annotations

from stretto.cli.trace.snapshot import (
    bugreport_requests,
    distinct_names,
    folder,
    session_number,
)
from stretto.protos.trace import TracingServiceState


def test_snapshot_file_names_are_made_unique() -> None:
    assert distinct_names(["a.b.c", "a.b.c", "../a.b.c", "d", "d"]) == [
        "a.b.c", "a.b_1.c", "a.b_2.c", "d", "d_1",
    ]  # fmt: skip


def test_bugreport_requests_are_ordered_by_score() -> None:
    session = TracingServiceState.TracingSession
    state = TracingServiceState(
        tracing_sessions=[
            session(id=1, is_started=True, bugreport_score=1),
            session(id=2, is_started=True, bugreport_score=5, bugreport_filename="x.pftrace"),
            session(id=3, is_started=False, bugreport_score=9),
            session(id=4, is_started=True),
        ]
    )
    requests = bugreport_requests(state)
    assert [(r.session_id, path) for r, path in requests] == [
        (2, f"{folder()}/x.pftrace"),
        (1, f"{folder()}/systrace.pftrace"),
    ]
    assert all(each.for_bugreport and each.skip_trace_filter for each, _ in requests)


def test_bugreport_session_number_is_unsigned() -> None:
    assert session_number(-1) == (1 << 64) - 1
    assert session_number(7) == 7
