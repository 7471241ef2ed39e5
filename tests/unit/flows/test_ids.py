"""Flow ids: vectors, and what each scheme tells apart."""

from __future__ import annotations

import random

import pytest

from stretto.base.rpc_hooks import CONTROL, EVENT, ONE_WAY, REPLY, REQUEST
from stretto.flows.ids import (
    MAX_COUNT,
    AnchoredIds,
    Direction,
    NumberedIds,
    Rfc0035Ids,
    hashed,
    rfc0035,
)
from stretto.flows.mixing import combine, mix64, stream

KEY = 0x1234_5678_9ABC_DEF0


def pair(key: int = KEY, *, synchronised: bool = True) -> tuple[AnchoredIds, AnchoredIds]:
    """A client's end and a server's end of one channel."""
    return (
        AnchoredIds(lambda: key, is_server=False, synchronised=synchronised),
        AnchoredIds(lambda: key, is_server=True, synchronised=synchronised),
    )


class TestMixing:
    def test_the_stream_is_splitmix64(self) -> None:
        assert stream(0, 1) == 0xE220A8397B1DCDAF
        numbers = [stream(1234567, index) for index in (1, 2, 3)]
        assert numbers == [6457827717110365317, 3203168211198807973, 9817491932198370423]

    def test_a_stream_never_repeats(self) -> None:
        assert len({stream(KEY, index) for index in range(100_000)}) == 100_000

    def test_every_bit_changes_about_half_of_the_result(self) -> None:
        for bit in range(64):
            changed = (mix64(KEY) ^ mix64(KEY ^ (1 << bit))).bit_count()
            assert 16 <= changed <= 48

    def test_order_counts_in_a_combined_key(self) -> None:
        assert len({combine(1, 2), combine(2, 1), combine(1, 2, 0), combine(1), combine(2)}) == 5
        assert combine() == 1


class TestRfc0035:
    def test_the_intended_masks(self) -> None:
        assert rfc0035(0xABCD_1234, 0x5566_7788_99AA_BBCC, 0x1FF) == 0x1234_99AA_BBCC_00FF

    def test_eight_bits_are_always_zero(self) -> None:
        draw = random.Random(1)
        ids = [rfc0035(*(draw.getrandbits(64) for _ in range(3))) for _ in range(1000)]
        assert all(not value & 0xFF00 for value in ids)

    def test_the_literal_expression_loses_the_channel(self) -> None:
        koid, ordinal, txid = 1235, 0x99AA_BBCC, 7
        literal = koid & 0xFFFF << 48 | (ordinal & 0xFFFFFFFF) << 16 | txid & 0xFF
        assert literal == rfc0035(0, ordinal, txid)
        assert literal != rfc0035(koid, ordinal, txid)

    def test_transactions_256_apart_have_one_id(self) -> None:
        assert rfc0035(1, 2, 3) == rfc0035(1, 2, 3 + 256)
        assert hashed(1, 2, 3) != hashed(1, 2, 3 + 256)

    def test_one_ways_of_a_method_have_one_id(self) -> None:
        ids = Rfc0035Ids(lambda: KEY)
        assert ids.next(True, ONE_WAY, 0, 9) == ids.next(True, ONE_WAY, 0, 9) == rfc0035(KEY, 9, 0)

    def test_no_key_no_id(self) -> None:
        assert Rfc0035Ids(lambda: 0).next(True, REQUEST, 5, 9) == 0
        forsaken = Rfc0035Ids(lambda: KEY, hashed)
        assert forsaken.next(True, REQUEST, 5, 9) == hashed(KEY, 9, 5)
        forsaken.forsake()
        assert forsaken.next(True, REQUEST, 5, 9) == 0


class TestCollisions:
    """Section 0 of the measurements: what isn't told apart, of messages sent."""

    @staticmethod
    def not_unique(ids: list[int]) -> float:
        return 1 - len(set(ids)) / len(ids)

    def test_one_channel_half_one_way(self) -> None:
        draw = random.Random(7)
        txid, by_rfc, anchored = 0, [], []
        ends, _ = pair()
        for _ in range(1000):
            ordinal = draw.randrange(40)
            two_way = draw.random() < 0.5
            txid += two_way
            mine = txid if two_way else 0
            by_rfc.append(rfc0035(KEY, ordinal, mine))
            anchored.append(ends.next(True, REQUEST if two_way else ONE_WAY, mine, ordinal))
        assert 0.4 < self.not_unique(by_rfc) < 0.55
        assert self.not_unique(anchored) == 0

    def test_many_channels(self) -> None:
        draw = random.Random(8)
        by_rfc, anchored = [], []
        for koid in range(1, 51):
            ids, _ = pair(combine(koid))
            for txid in range(1, 1001):
                ordinal = draw.randrange(40)
                by_rfc.append(rfc0035(koid, ordinal, txid))
                anchored.append(ids.next(True, REQUEST, txid, ordinal))
        assert 0.02 < self.not_unique(by_rfc) < 0.1
        assert self.not_unique(anchored) == 0


class TestAnchored:
    def test_vectors(self) -> None:
        client, server = pair()
        to_server, to_client = combine(KEY, 1), combine(KEY, 2)
        assert client.next(True, ONE_WAY, 0, 9) == stream(to_server, 1)
        assert client.next(True, REQUEST, 5, 9) == stream(to_server, 5 << 32)
        assert client.next(True, ONE_WAY, 0, 9) == stream(to_server, 5 << 32 | 1)
        assert server.next(True, EVENT, 0, 9) == stream(to_client, 1)
        assert server.next(True, REPLY, 5, 9) == stream(to_server, 5 << 32)
        assert server.next(True, REPLY, 5, 9, answer=1) == stream(to_client, 5 << 32 | 1)
        assert (to_server, to_client) == (0x56C7A7A7B8F0B8CE, 0x70195250B8E25D5E)

    def test_three_one_ways_in_flight_are_three_flows(self) -> None:
        client, server = pair()
        sent = [client.next(True, ONE_WAY, 0, 9) for _ in range(3)]
        assert len(set(sent)) == 3
        assert [server.next(False, ONE_WAY, 0, 9) for _ in range(3)] == sent

    def test_methods_dont_matter(self) -> None:
        client, server = pair()
        assert client.next(True, ONE_WAY, 0, 1) == server.next(False, ONE_WAY, 0, 2)

    def test_transport_assigned_transactions(self) -> None:
        client, server = pair()
        assert client.next(True, REQUEST, 0x8000_0001, 9) == server.next(
            False, REQUEST, 0x8000_0001, 9
        )

    def test_control_messages_count_and_have_no_flow(self) -> None:
        client, server = pair()
        assert server.next(True, CONTROL, 0, 9) == client.next(False, CONTROL, 0, 9) == 0
        assert server.next(True, EVENT, 0, 9) == client.next(False, EVENT, 0, 9) != 0

    def test_the_key_may_come_late(self) -> None:
        keys = [0, 0]
        client = AnchoredIds(lambda: keys[0], is_server=False)
        server = AnchoredIds(lambda: keys[1], is_server=True)
        for end, outgoing in ((client, True), (server, False)):
            assert end.next(outgoing, ONE_WAY, 0, 9) == 0
        keys[:] = [KEY, KEY]
        assert client.next(True, ONE_WAY, 0, 9) == server.next(False, ONE_WAY, 0, 9) != 0

    def test_an_adopted_end_waits_for_the_next_anchor(self) -> None:
        client, server = pair(synchronised=False)
        assert client.next(True, ONE_WAY, 0, 9) == 0
        assert client.next(True, REQUEST, 77, 9) == server.next(False, REQUEST, 77, 9) != 0
        assert client.next(True, ONE_WAY, 0, 9) == server.next(False, ONE_WAY, 0, 9) != 0

    def test_after_a_loss_there_are_no_one_ways_until_the_next_anchor(self) -> None:
        client, server = pair()
        client.next(True, REQUEST, 3, 9)
        client.next(True, ONE_WAY, 0, 9)
        server.lost(outgoing=False)
        assert server.next(False, ONE_WAY, 0, 9) == 0
        assert server.next(False, REQUEST, 4, 9) == client.next(True, REQUEST, 4, 9)
        assert server.next(False, ONE_WAY, 0, 9) == client.next(True, ONE_WAY, 0, 9)

    def test_a_sequel_is_no_anchor(self) -> None:
        client, _ = pair()
        client.lost(outgoing=False)
        assert client.next(False, REPLY, 4, 9, answer=2) == 0
        assert client.next(False, REPLY, 4, 9) != 0

    def test_a_forsaken_channel_is_silent_for_ever(self) -> None:
        client, _ = pair()
        client.forsake()
        assert client.next(True, REQUEST, 3, 9) == 0
        assert client.next(False, REPLY, 3, 9) == 0
        assert client.next(True, ONE_WAY, 0, 9) == 0

    def test_used(self) -> None:
        client, server = pair()
        assert not client.used
        client.next(True, ONE_WAY, 0, 9)
        server.next(False, REQUEST, 1, 9)
        assert client.used
        assert server.used
        assert pair(synchronised=False)[0].used

    def test_the_count_has_an_end(self) -> None:
        direction = Direction(synchronised=True)
        direction.advance(5)
        direction.count = MAX_COUNT - 1
        assert direction.advance(0) == 5 << 32 | MAX_COUNT
        assert direction.advance(0) == -1
        assert direction.advance(6) == 6 << 32


class TestNumbered:
    def test_both_ends_agree_and_answers_differ(self) -> None:
        client, server = NumberedIds(lambda: KEY), NumberedIds(lambda: KEY)
        request = client.next(True, REQUEST, 8, 0)
        assert server.next(False, REQUEST, 8, 0) == request == server.next(True, REPLY, 8, 0)
        answers = [server.next(True, REPLY, 8, 0, answer) for answer in range(100)]
        assert answers == [client.next(False, REPLY, 8, 0, answer) for answer in range(100)]
        assert len(set(answers)) == 100

    @pytest.mark.parametrize("key", [0, KEY])
    def test_no_key_no_number_no_id(self, key: int) -> None:
        ids = NumberedIds(lambda: key)
        assert (ids.next(True, REQUEST, 8, 0) != 0) == (key != 0)
        assert ids.next(True, REQUEST, 0, 0) == 0
        ids.lost(outgoing=True)
        ids.forsake()
        assert ids.next(True, REQUEST, 8, 0) == 0
