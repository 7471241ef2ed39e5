"""Flow points are connected to the right flow, even if several processes use the same ids."""

from __future__ import annotations

import pytest

from stretto.analysis.fxt import flow_scopes
from stretto.analysis.fxt.flow_scopes import FlowScopes


def test_flow_is_found_from_another_process_until_the_flow_ends() -> None:
    scopes = FlowScopes()
    flow = scopes.begin(7, 1, 0)
    assert flow.id == 7
    assert scopes.find(7, 2) is flow
    scopes.end(flow, 4)
    assert scopes.find(7, 1) is None
    assert scopes.begin(7, 2, 5).id == 7


def test_flow_id_begun_by_two_processes_makes_two_flows() -> None:
    scopes = FlowScopes()
    first, second = scopes.begin(7, 1, 0), scopes.begin(7, 2, 0)
    assert first.id == 7 != second.id
    assert scopes.find(7, 1) is first
    assert scopes.find(7, 2) is second
    assert scopes.find(7, 3) is None
    scopes.end(first, 0)
    assert scopes.find(7, 3) is second


def test_second_begin_of_a_flow_id_makes_a_new_flow() -> None:
    scopes = FlowScopes()
    first = scopes.begin(7, 1, 0)
    second = scopes.begin(7, 1, 0)
    assert scopes.find(7, 1) is second
    assert second.id != first.id


def test_flow_id_whose_end_was_not_written_is_not_reused() -> None:
    scopes = FlowScopes()
    scopes.end(scopes.begin(7, 1, 0), None)
    assert scopes.begin(7, 1, 0).id != 7


def test_flow_id_is_not_reused_in_the_slice_where_its_flow_ended() -> None:
    scopes = FlowScopes()
    scopes.end(scopes.begin(7, 1, 3), 4)
    assert scopes.begin(7, 1, 4).id != 7


def test_number_of_remembered_flow_ends_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow_scopes, "_MAX_ENDED", 3)
    scopes = FlowScopes()
    for number in range(1, 6):
        scopes.end(scopes.begin(number, 1, 0), 4)
    assert list(scopes._ended_at) == [3, 4, 5]


def test_fxt_flow_id_0_is_replaced_by_another_id() -> None:
    assert FlowScopes().begin(0, 1, 0).id != 0


def test_number_of_flows_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow_scopes, "_MAX_FLOWS", 3)
    scopes = FlowScopes()
    for number in range(1, 6):
        scopes.begin(number, 1, 0)
    assert [number for number in range(1, 6) if scopes.find(number, 1)] == [3, 4, 5]
    for process in range(100):
        scopes.begin(5, process, 0)
    assert len(scopes._flows[5]) == 8
