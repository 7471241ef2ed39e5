"""Client and server compute equal flow ids, by the scheme `anchored`, for random RPC calls."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from stretto.base.rpc_hooks import EVENT, ONE_WAY, REPLY, REQUEST
from stretto.flows.ids import AnchoredIds
from tests.support.flow_model import Sent, names

KEY = 99


def conversation(draw: random.Random, length: int) -> list[Sent]:
    """Return random messages of calls, in an order that a client and a server can produce."""
    messages: list[Sent] = []
    waiting: dict[int, int] = {}
    txid = 0
    for _ in range(length):
        choice = draw.randrange(5)
        if choice == 0:
            txid += draw.randrange(1, 3)
            waiting[txid] = 0
            messages.append(Sent(True, REQUEST, txid))
        elif choice == 1:
            messages.append(Sent(True, ONE_WAY, 0))
        elif choice == 2 or not waiting:
            messages.append(Sent(False, EVENT, 0))
        else:
            answered = draw.choice(sorted(waiting))
            messages.append(Sent(False, REPLY, answered, waiting[answered]))
            waiting[answered] += 1
            if choice == 3:
                del waiting[answered]
    return messages


def ids_of(end: AnchoredIds, messages: list[Sent], *, is_server: bool) -> list[int]:
    return [end.next(m.to_server != is_server, m.kind, m.txid, 0, m.answer) for m in messages]


conversations = st.builds(
    conversation, st.randoms(use_true_random=False), st.integers(min_value=0, max_value=60)
)


@given(conversations, st.booleans())
def test_flow_ids_are_equal_if_and_only_if_the_model_gives_equal_names(
    messages: list[Sent], is_server: bool
) -> None:
    ids = ids_of(AnchoredIds(lambda: KEY, is_server=is_server), messages, is_server=is_server)
    expected: dict[int, tuple[object, ...]] = {}
    for to_server in (True, False):
        one_way = [at for at, m in enumerate(messages) if m.to_server == to_server]
        expected.update(zip(one_way, names([messages[at] for at in one_way]), strict=True))
    by_id = {ids[at]: name for at, name in expected.items()}
    assert 0 not in by_id
    assert [by_id[ids[at]] for at in range(len(messages))] == [
        expected[at] for at in range(len(messages))
    ]
    assert len(by_id) == len(set(expected.values()))


@given(conversations)
def test_client_and_server_compute_equal_flow_ids_for_any_interleaving(
    messages: list[Sent],
) -> None:
    client, server = (AnchoredIds(lambda: KEY, is_server=side) for side in (False, True))
    at_client = ids_of(client, messages, is_server=False)
    up = [at for at, m in enumerate(messages) if m.to_server]
    down = [at for at, m in enumerate(messages) if not m.to_server]
    # The server handles all messages from the client first, then sends all its own messages.
    order = up + down
    at_server = ids_of(server, [messages[at] for at in order], is_server=True)
    assert at_server == [at_client[at] for at in order]


@given(conversations, st.data())
def test_messages_after_a_reported_loss_have_no_flow_id_until_the_next_transaction(
    messages: list[Sent], data: st.DataObject
) -> None:
    """Before some messages, the sender or the receiver reports that it has lost messages."""
    losses = data.draw(
        st.lists(st.sampled_from(["", "", "", "sender", "receiver"]), min_size=len(messages),
                 max_size=len(messages))
    )  # fmt: skip
    ends = {side: AnchoredIds(lambda: KEY, is_server=side) for side in (False, True)}
    knows = {(side, outgoing): True for side in (False, True) for outgoing in (False, True)}
    given_ids: dict[int, tuple[object, ...]] = {}
    down = names([m for m in messages if m.to_server])
    up = names([m for m in messages if not m.to_server])
    expected = [(down if m.to_server else up).pop(0) for m in messages]
    for message, loss, name in zip(messages, losses, expected, strict=True):
        sender, receiver = not message.to_server, message.to_server
        if loss:
            side, outgoing = (sender, True) if loss == "sender" else (receiver, False)
            ends[side].lost(outgoing)
            knows[side, outgoing] = False
        anchors = bool(message.txid) and not message.answer
        for side, outgoing in ((sender, True), (receiver, False)):
            # A request and its first reply have the same id, computed from the transaction id.
            knows[side, outgoing] |= anchors
            made = ends[side].next(outgoing, message.kind, message.txid, 0, message.answer)
            assert bool(made) == knows[side, outgoing]
            # Sender and receiver give a message the same id, and all other messages have other ids.
            assert not made or given_ids.setdefault(made, name) == name


@given(conversations, st.data())
def test_flow_ids_of_both_peers_agree_again_at_the_first_call_after_a_loss(
    messages: list[Sent], data: st.DataObject
) -> None:
    """A receiver that doesn't notice a loss assigns wrong flow ids until the next request."""
    down = [m for m in messages if m.to_server]
    missed = data.draw(st.sets(st.integers(0, max(0, len(down) - 1))))
    client, server = (AnchoredIds(lambda: KEY, is_server=side) for side in (False, True))
    right = True
    for at, message in enumerate(down):
        sent = client.next(True, message.kind, message.txid, 0)
        if at in missed:
            right = False
            continue
        right = right or message.kind == REQUEST
        received = server.next(False, message.kind, message.txid, 0)
        assert received == sent or not right
