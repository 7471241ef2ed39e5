"""Hooks and switches of RPC tracing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stretto.base import rpc_hooks
from stretto.base.rpc_hooks import RpcMethod, TraceSwitch


@pytest.fixture(autouse=True)
def empty_slot() -> Iterator[None]:
    yield
    rpc_hooks.set_hooks(None, None)


def test_no_rpc_hooks_are_installed_by_default() -> None:
    assert rpc_hooks.hooks is None


def test_category_has_one_switch_that_is_off_at_first() -> None:
    first = RpcMethod("S", "A", 1, "category.one").switch
    assert first is rpc_hooks.switch("category.one")
    assert not first.enabled
    assert RpcMethod("S", "B", 2).switch is rpc_hooks.NEVER
    assert not rpc_hooks.NEVER.enabled


def test_listeners_are_called_only_when_their_switch_changes() -> None:
    switch = TraceSwitch("x")
    heard: list[bool] = []
    switch.listen(heard.append)
    for enabled in (False, True, True, False):
        switch.set(enabled)
    assert heard == [False, True, False]


def test_installed_hooks_get_existing_and_new_category_switches() -> None:
    early = rpc_hooks.switch("category.early")
    seen: list[TraceSwitch] = []
    rpc_hooks.set_hooks(object(), seen.append)  # type: ignore[arg-type]
    assert rpc_hooks.hooks is not None
    late = rpc_hooks.switch("category.late")
    assert early in seen
    assert seen[-1] is late


def test_removing_the_hooks_disables_all_switches() -> None:
    rpc_hooks.set_hooks(object(), lambda switch: switch.set(True))  # type: ignore[arg-type]
    switch = rpc_hooks.switch("category.on")
    assert switch.enabled
    rpc_hooks.set_hooks(None, None)
    assert not switch.enabled
