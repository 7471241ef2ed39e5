"""After a fork, parent and child share flow ids until one of them uses the channel."""

from __future__ import annotations

from mmap import mmap

import pytest

from stretto.base.rpc_hooks import ONE_WAY, REQUEST, RpcChannel
from stretto.flows.channel_state import ChannelState
from stretto.flows.shared_ids import SharedIds

KEY = 99


def used_channel() -> tuple[RpcChannel, ChannelState]:
    """Return a channel and its state; the caller has to keep a reference to the channel."""
    channel = RpcChannel(None, is_server=False, key=KEY)
    state = ChannelState(None, channel, "anchored", synchronised=True, tcp=False)
    state.use()
    return channel, state


def shared(flags: mmap, index: int = 0) -> tuple[RpcChannel, ChannelState]:
    channel, state = used_channel()
    assert state.needs_flag
    state.before_fork(flags, index)
    assert not state.needs_flag
    return channel, state


def one_way(state: ChannelState) -> int:
    return state.ids.next(True, ONE_WAY, 0, 9)


def request(state: ChannelState, txid: int) -> int:
    return state.ids.next(True, REQUEST, txid, 9)


def test_next_call_of_the_parent_after_a_fork_restores_flows_if_the_child_sends_nothing() -> None:
    channel, state = shared(mmap(-1, 1))
    state.after_fork_in_parent()
    assert one_way(state) == 0
    assert state.missing_id_reason() == "not synchronised"
    assert request(state, 5) != 0
    assert one_way(state) != 0
    del channel


@pytest.mark.parametrize("skips", [False, True])
def test_message_of_the_child_process_ends_flows_in_both_processes(*, skips: bool) -> None:
    flags = mmap(-1, 2)
    kept, parent = shared(flags, 1)
    kept_too, child = shared(flags, 1)
    other_kept, other = shared(flags, 0)
    for state in (parent, other):
        state.after_fork_in_parent()
    child.after_fork_in_child()
    assert request(parent, 5) != 0
    assert one_way(parent) != 0
    if skips:
        child.ids.skip(True, ONE_WAY, 0)
    else:
        assert one_way(child) == 0
        assert child.missing_id_reason() == "forked"
    assert request(parent, 6) == one_way(parent) == 0
    assert parent.missing_id_reason() == "forked"
    assert request(other, 6) != 0
    del kept, kept_too, other_kept


def test_child_has_flows_on_a_channel_unused_before_the_fork() -> None:
    channel = RpcChannel(None, is_server=False, key=KEY)
    state = ChannelState(None, channel, "anchored", synchronised=True, tcp=False)
    assert not state.needs_flag
    state.after_fork_in_child()
    assert one_way(state) != 0


def test_shared_flag_of_the_first_fork_is_used_again_after_a_second_fork() -> None:
    channel, state = shared(mmap(-1, 1))
    ids = state.ids
    state.after_fork_in_parent()
    assert isinstance(ids, SharedIds)
    assert not state.needs_flag
    state.after_fork_in_parent()
    assert state.ids is ids
    assert request(state, 7) != 0
    del channel
