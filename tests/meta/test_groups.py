"""Tests of one group run in one process, also when the other tests run in several.

pytest-xdist tells the group of a test by the end of its node id. pytest 9.2 does not let it write
there, and says nothing: all groups are lost.
"""

from __future__ import annotations

import pytest


@pytest.mark.xdist_group("meta")
def test_groups_are_known_to_the_processes(request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("loadgroup", default=False):
        pytest.skip("one process runs all tests")
    assert request.node.nodeid.endswith("@meta")
