"""Flow ids have documented values; each flow id scheme gives different messages different ids."""

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
    """Return the objects that make the flow ids of one channel: the client's and the server's."""
    return (
        AnchoredIds(lambda: key, is_server=False, synchronised=synchronised),
        AnchoredIds(lambda: key, is_server=True, synchronised=synchronised),
    )


class TestHashFunctions:
    def test_stream_of_ids_equals_splitmix64(self) -> None:
        assert stream(0, 1) == 0xE220A8397B1DCDAF
        numbers = [stream(1234567, index) for index in (1, 2, 3)]
        assert numbers == [6457827717110365317, 3203168211198807973, 9817491932198370423]

    def test_splitmix64_stream_has_no_repeated_ids(self) -> None:
        assert len({stream(KEY, index) for index in range(100_000)}) == 100_000

    def test_every_key_bit_changes_about_half_of_the_hash_bits(self) -> None:
        for bit in range(64):
            changed = (mix64(KEY) ^ mix64(KEY ^ (1 << bit))).bit_count()
            assert 16 <= changed <= 48

    def test_combined_key_depends_on_the_order_of_its_parts(self) -> None:
        assert len({combine(1, 2), combine(2, 1), combine(1, 2, 0), combine(1), combine(2)}) == 5
        assert combine() == 1


class TestRfc0035Scheme:
    def test_rfc0035_id_contains_channel_ordinal_and_transaction(self) -> None:
        assert rfc0035(0xABCD_1234, 0x5566_7788_99AA_BBCC, 0x1FF) == 0x1234_99AA_BBCC_00FF

    def test_bits_8_to_15_of_an_rfc0035_id_are_zero(self) -> None:
        draw = random.Random(1)
        ids = [rfc0035(*(draw.getrandbits(64) for _ in range(3))) for _ in range(1000)]
        assert all(not value & 0xFF00 for value in ids)

    def test_expression_printed_in_rfc0035_loses_the_channel_from_the_id(self) -> None:
        koid, ordinal, txid = 1235, 0x99AA_BBCC, 7
        literal = koid & 0xFFFF << 48 | (ordinal & 0xFFFFFFFF) << 16 | txid & 0xFF
        assert literal == rfc0035(0, ordinal, txid)
        assert literal != rfc0035(koid, ordinal, txid)

    def test_transactions_256_apart_have_the_same_rfc0035_id(self) -> None:
        assert rfc0035(1, 2, 3) == rfc0035(1, 2, 3 + 256)
        assert hashed(1, 2, 3) != hashed(1, 2, 3 + 256)

    def test_one_way_messages_of_a_method_have_the_same_rfc0035_id(self) -> None:
        ids = Rfc0035Ids(lambda: KEY)
        assert ids.next(True, ONE_WAY, 0, 9) == ids.next(True, ONE_WAY, 0, 9) == rfc0035(KEY, 9, 0)

    def test_rfc0035_id_is_0_without_a_key(self) -> None:
        assert Rfc0035Ids(lambda: 0).next(True, REQUEST, 5, 9) == 0
        ids = Rfc0035Ids(lambda: KEY, hashed)
        assert ids.next(True, REQUEST, 5, 9) == hashed(KEY, 9, 5)
        ids.disable()
        assert ids.next(True, REQUEST, 5, 9) == 0


class TestFlowIdCollisions:
    """The share of messages whose ids are not unique."""

    @staticmethod
    def not_unique(ids: list[int]) -> float:
        return 1 - len(set(ids)) / len(ids)

    def test_one_way_ids_of_one_channel_are_equal_only_with_rfc0035(self) -> None:
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

    def test_request_ids_of_different_channels_are_equal_only_with_rfc0035(self) -> None:
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


class TestAnchoredScheme:
    def test_anchored_ids_have_the_documented_values(self) -> None:
        client, server = pair()
        to_server, to_client = combine(KEY, 1), combine(KEY, 2)
        assert client.next(True, ONE_WAY, 0, 9) == stream(to_server, 1)
        assert client.next(True, REQUEST, 5, 9) == stream(to_server, 5 << 32)
        assert client.next(True, ONE_WAY, 0, 9) == stream(to_server, 5 << 32 | 1)
        assert server.next(True, EVENT, 0, 9) == stream(to_client, 1)
        assert server.next(True, REPLY, 5, 9) == stream(to_server, 5 << 32)
        assert server.next(True, REPLY, 5, 9, answer=1) == stream(to_client, 5 << 32 | 1)
        assert (to_server, to_client) == (0x56C7A7A7B8F0B8CE, 0x70195250B8E25D5E)

    def test_three_one_way_messages_in_flight_have_three_flows(self) -> None:
        client, server = pair()
        sent = [client.next(True, ONE_WAY, 0, 9) for _ in range(3)]
        assert len(set(sent)) == 3
        assert [server.next(False, ONE_WAY, 0, 9) for _ in range(3)] == sent

    def test_anchored_id_does_not_depend_on_the_method(self) -> None:
        client, server = pair()
        assert client.next(True, ONE_WAY, 0, 1) == server.next(False, ONE_WAY, 0, 2)

    def test_ids_are_equal_at_both_ends_if_the_transport_numbers_transactions(self) -> None:
        client, server = pair()
        assert client.next(True, REQUEST, 0x8000_0001, 9) == server.next(
            False, REQUEST, 0x8000_0001, 9
        )

    def test_control_messages_are_counted_and_have_no_flow(self) -> None:
        client, server = pair()
        assert server.next(True, CONTROL, 0, 9) == client.next(False, CONTROL, 0, 9) == 0
        assert server.next(True, EVENT, 0, 9) == client.next(False, EVENT, 0, 9) != 0

    def test_messages_before_the_channel_key_is_known_are_counted(self) -> None:
        keys = [0, 0]
        client = AnchoredIds(lambda: keys[0], is_server=False)
        server = AnchoredIds(lambda: keys[1], is_server=True)
        for end, outgoing in ((client, True), (server, False)):
            assert end.next(outgoing, ONE_WAY, 0, 9) == 0
        keys[:] = [KEY, KEY]
        assert client.next(True, ONE_WAY, 0, 9) == server.next(False, ONE_WAY, 0, 9) != 0

    def test_adopted_channel_end_has_no_one_way_flows_before_a_transaction(self) -> None:
        client, server = pair(synchronised=False)
        assert client.next(True, ONE_WAY, 0, 9) == 0
        assert client.next(True, REQUEST, 77, 9) == server.next(False, REQUEST, 77, 9) != 0
        assert client.next(True, ONE_WAY, 0, 9) == server.next(False, ONE_WAY, 0, 9) != 0

    def test_lost_message_suppresses_one_way_flows_until_the_next_transaction(self) -> None:
        client, server = pair()
        client.next(True, REQUEST, 3, 9)
        client.next(True, ONE_WAY, 0, 9)
        server.lost(outgoing=False)
        assert server.next(False, ONE_WAY, 0, 9) == 0
        assert server.next(False, REQUEST, 4, 9) == client.next(True, REQUEST, 4, 9)
        assert server.next(False, ONE_WAY, 0, 9) == client.next(True, ONE_WAY, 0, 9)

    def test_unrequested_part_of_a_reply_does_not_restore_synchronisation(self) -> None:
        client, _ = pair()
        client.lost(outgoing=False)
        assert client.next(False, REPLY, 4, 9, answer=2) == 0
        assert client.next(False, REPLY, 4, 9) != 0

    def test_disabled_channel_has_no_flows(self) -> None:
        client, _ = pair()
        client.disable()
        assert client.next(True, REQUEST, 3, 9) == 0
        assert client.next(False, REPLY, 3, 9) == 0
        assert client.next(True, ONE_WAY, 0, 9) == 0

    def test_used_flag_is_set_by_a_message_and_by_the_adoption_of_a_channel(self) -> None:
        client, server = pair()
        assert not client.used
        client.next(True, ONE_WAY, 0, 9)
        server.next(False, REQUEST, 1, 9)
        assert client.used
        assert server.used
        assert pair(synchronised=False)[0].used

    def test_count_of_one_way_messages_is_limited(self) -> None:
        direction = Direction(synchronised=True)
        direction.advance(5)
        direction.count = MAX_COUNT - 1
        assert direction.advance(0) == 5 << 32 | MAX_COUNT
        assert direction.advance(0) == -1
        assert direction.advance(6) == 6 << 32


class TestNumberedScheme:
    def test_numbered_ids_are_equal_at_both_ends_and_differ_for_each_answer(self) -> None:
        client, server = NumberedIds(lambda: KEY), NumberedIds(lambda: KEY)
        request = client.next(True, REQUEST, 8, 0)
        assert server.next(False, REQUEST, 8, 0) == request == server.next(True, REPLY, 8, 0)
        answers = [server.next(True, REPLY, 8, 0, answer) for answer in range(100)]
        assert answers == [client.next(False, REPLY, 8, 0, answer) for answer in range(100)]
        assert len(set(answers)) == 100

    @pytest.mark.parametrize("key", [0, KEY])
    def test_numbered_id_is_0_without_a_key_or_message_number(self, key: int) -> None:
        ids = NumberedIds(lambda: key)
        assert (ids.next(True, REQUEST, 8, 0) != 0) == (key != 0)
        assert ids.next(True, REQUEST, 0, 0) == 0
        ids.lost(outgoing=True)
        ids.disable()
        assert ids.next(True, REQUEST, 8, 0) == 0
