"""The threshold of auto detail rises with the size of the trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from stretto.recorder.host.detail import Detail
from stretto.recorder.workspace import Workspace

MIB = 1 << 20


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(str(tmp_path))


def threshold(workspace: Workspace) -> int:
    return int.from_bytes(Path(workspace.threshold).read_bytes(), "little")


def test_threshold_of_call_durations_starts_at_50_us(workspace: Workspace) -> None:
    assert Detail(workspace, MIB).rises == []
    assert threshold(workspace) == 50_000


def test_threshold_of_call_durations_rises_once_at_each_step_of_the_trace_size(
    workspace: Workspace,
) -> None:
    detail = Detail(workspace, MIB)
    seen = []
    for size in (0, MIB // 2 - 1, MIB // 2, MIB // 2 + 1, MIB * 3 // 4, MIB, 2 * MIB):
        detail.update(size, float(size))
        seen.append(threshold(workspace))
    assert seen == [50_000, 50_000, *[10**6] * 2, 20 * 10**6, 10**9, 10**9]
    assert [rise.threshold_ns for rise in detail.rises] == [10**6, 20 * 10**6, 10**9]
    assert detail.rises[0].size == MIB // 2


def test_large_growth_of_the_trace_raises_the_duration_threshold_by_several_steps(
    workspace: Workspace,
) -> None:
    detail = Detail(workspace, MIB)
    detail.update(MIB, 2.0)
    assert len(detail.rises) == 3
    assert threshold(workspace) == 10**9
