"""Lines of the summary that are read from the trace."""

from __future__ import annotations

from pathlib import Path

import pytest

import stretto
from stretto.cli.record import lines_of_trace
from stretto.cli.record.memory_lines import NO_DUMP, memory_lines
from stretto.cli.record.request_lines import request_lines
from tests.support.recorded_events import record

category = stretto.Category("test.lines")


@pytest.fixture
def requests(tmp_path: Path) -> Path:
    def message(role: str, method: str, time: int, flow: int, kind: str = "request") -> None:
        arguments = {"role": role, "method": method, "service": "http", "kind": kind}
        category.instant("x", timestamp=time, flow=flow, args=arguments)

    path = tmp_path / "trace.pftrace"
    with record() as recorded:
        for flow, route in enumerate(("GET /slow", "GET /quick"), 1):
            message("send", "GET host", 1_000, flow)
            message("receive", route, 2_000, flow)
            message("send", route, 3_000, flow, "reply")
            message("receive", "GET host", 9_000_000 // flow + 1_000, flow, "reply")
        message("send", "GET host", 1_000, 7)
    path.write_bytes(recorded.trace)
    return path


def test_requests_are_counted_and_the_slowest_is_named(requests: Path) -> None:
    (line,) = lines_of_trace.lines_of_trace(str(requests), request_lines)
    assert line == (
        "  requests: 3, the slowest http.GET /slow 9 ms, 1 recorded at one end only; "
        "`stretto flows` has more"
    )


def test_slowest_request_of_a_server_alone_is_named(tmp_path: Path) -> None:
    path = tmp_path / "trace.pftrace"
    with record() as recorded:
        for flow, route in enumerate(("GET /slow", "GET /quick"), 1):
            for role, kind, time in (("receive", "request", 0), ("send", "reply", 9_000_000)):
                arguments = {"role": role, "method": route, "service": "http", "kind": kind}
                category.instant("x", timestamp=time // flow + 1_000, flow=flow, args=arguments)
    path.write_bytes(recorded.trace)
    (line,) = lines_of_trace.lines_of_trace(str(path), request_lines)
    assert line.startswith(
        "  requests: 2, the slowest http.GET /slow 9 ms, 2 recorded at one end only; "
    )


def test_large_trace_and_one_that_cant_be_read_have_no_lines(
    requests: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged = requests.with_name("damaged")
    damaged.write_bytes(b"no trace")
    for path in ("", str(requests.with_name("missing")), str(damaged)):
        assert lines_of_trace.lines_of_trace(path, request_lines) == []
    monkeypatch.setattr(lines_of_trace, "LARGEST_BYTES", 10)
    assert lines_of_trace.lines_of_trace(str(requests), request_lines) == []


def test_trace_without_requests_has_no_line_and_one_without_heap_profiles_says_why(
    tmp_path: Path,
) -> None:
    path = tmp_path / "empty"
    path.write_bytes(b"")
    assert lines_of_trace.lines_of_trace(str(path), request_lines) == []
    assert lines_of_trace.lines_of_trace(str(path), memory_lines) == [NO_DUMP]
