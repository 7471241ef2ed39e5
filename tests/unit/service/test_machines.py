"""Producers and relays of other machines."""

from __future__ import annotations

import gzip

import pytest

from stretto.protos.config import TraceConfig
from stretto.protos.trace import ExtensionDescriptor, SystemInfo
from tests.support.service_setup import Setup, data_source, kinds, make_config

BOX = {"machine_id": 9, "machine_name": "box"}


class TestMachineFilter:
    def started(self, setup, *names, **fields):
        """Return whether the producers of the machines host, box and crate were started."""
        crate = {"machine_id": 10, "machine_name": "crate"}
        producers = [setup.producer("ds", **machine) for machine in ({}, BOX, crate)]
        config = make_config(**fields)
        source = data_source("ds")
        source.machine_name_filter = list(names)
        config.data_sources = [source]
        setup.enable(config)
        return [("start", "ds") in producer.calls for producer in producers]

    def test_machine_filter_host_starts_only_local_producers(self, setup):
        assert self.started(setup, "host") == [True, False, False]

    def test_filter_with_two_names_starts_data_sources_on_both_machines(self, setup):
        assert self.started(setup, "crate", "host") == [True, False, True]

    def test_filter_matches_the_configured_name_of_the_host(self):
        assert self.started(Setup(machine_name="me"), "me", "box") == [True, True, False]

    def test_only_local_producers_are_started_by_default(self, setup):
        assert self.started(setup) == [True, False, False]

    def test_trace_all_machines_starts_producers_of_all_machines(self, setup):
        assert self.started(setup, trace_all_machines=True) == [True, True, True]

    def test_machine_filter_overrides_trace_all_machines(self, setup):
        assert self.started(setup, "box", trace_all_machines=True) == [False, True, False]


def clocks(snapshot):
    return [(clock.clock_id, clock.timestamp) for clock in snapshot.clocks]


class TestRelayConnection:
    def test_clock_pairs_sent_by_a_relay_are_in_the_trace_once(self, setup):
        relay = setup.service.connect_relay(9)
        relay.sync_clock([(6, 100), (1, 200)], update=False)
        first = setup.clock.snapshot()
        setup.clock.advance_ms(5)
        relay.sync_clock([(6, 150)], update=True)
        consumer = setup.enable(make_config())
        packets = setup.read(consumer)
        (packet,) = [p for p in packets if p.has("remote_clock_sync")]
        assert packet.machine_id == 9
        assert not packet.has("trusted_packet_sequence_id")
        ping, update = packet.remote_clock_sync.synced_clocks
        assert clocks(ping.client_clocks) == [(6, 100), (1, 200)]
        assert clocks(ping.host_clocks) == first
        assert clocks(update.client_clocks) == [(6, 150)]
        assert clocks(update.host_clocks) == setup.clock.snapshot()
        assert "remote_clock_sync" not in kinds(
            setup.read(consumer)
        )  # The clock pairs are written only once.

    def test_each_relay_has_a_packet_with_its_five_newest_clock_pairs(self, setup):
        relays = [setup.service.connect_relay(machine) for machine in (8, 9)]
        for number in range(7):
            relays[0].sync_clock([(6, number)], update=False)
        relays[1].sync_clock([(6, 1)], update=False)
        packets = setup.read(setup.enable(make_config()))
        syncs = {p.machine_id: p.remote_clock_sync for p in packets if p.has("remote_clock_sync")}
        pairs = syncs[8].synced_clocks
        assert [pair.client_clocks.clocks[0].timestamp for pair in pairs] == [2, 3, 4, 5, 6]
        assert len(syncs[9].synced_clocks) == 1

    def test_disconnected_relay_leaves_no_clock_pairs(self, setup):
        relay = setup.service.connect_relay(9)
        relay.sync_clock([(6, 1)], update=False)
        consumer = setup.enable(make_config())
        relay.disconnect()
        relay.disconnect()
        assert "remote_clock_sync" not in kinds(setup.read(consumer))

    def test_system_info_of_the_machine_of_a_relay_is_in_the_trace(self, setup):
        relay = setup.service.connect_relay(9)
        relay.init_relay(SystemInfo(machine_name="box").encode())
        infos = [p for p in setup.read(setup.enable(make_config())) if p.has("system_info")]
        assert [p.machine_id for p in infos] == [0, 9]
        assert infos[1].system_info.machine_name == "box"
        assert infos[1].trusted_packet_sequence_id == 1


class TestMachineIdsInPackets:
    def test_packets_contain_the_machine_id_of_their_producer(self, setup):
        producer = setup.producer("ds", in_process=True, **BOX)
        consumer = setup.enable(make_config("ds", trace_all_machines=True))
        setup.write(producer, "data")
        (packet,) = [p for p in setup.read(consumer) if p.has("for_testing")]
        assert packet.machine_id == 9

    def test_service_packets_contain_the_machine_id_of_an_in_process_producer(self, setup):
        setup.producer("ds", in_process=True, **BOX)
        packets = setup.read(setup.enable(make_config()))
        assert {p.machine_id for p in packets if not p.has("synchronization_marker")} == {9}

    @pytest.mark.parametrize("arguments", [{}, {"in_process": False, **BOX}])
    def test_service_packets_have_no_machine_id_without_an_in_process_producer(
        self, setup, arguments
    ):
        setup.producer("ds", **arguments)
        packets = setup.read(setup.enable(make_config()))
        assert not any(p.has("machine_id") for p in packets)


class TestExtensionDescriptors:
    def test_extension_descriptors_are_in_the_trace_once(self):
        packed = gzip.compress(b"set")
        setup = Setup(extension_descriptors=[("a.desc", b"\x0a\x00"), ("b.desc.gz", packed)])
        consumer = setup.enable(make_config())
        packets = setup.read(consumer)
        found = [p.extension_descriptor for p in packets if p.has("extension_descriptor")]
        assert found[0] == ExtensionDescriptor.decode(b"\x0a\x02\x0a\x00\x1a\x06a.desc")
        assert (found[1].extension_set_gzip, found[1].file_name) == (packed, "b.desc.gz")
        assert "extension_descriptor" not in kinds(setup.read(consumer))

    def test_extension_descriptors_can_be_disabled(self):
        setup = Setup(extension_descriptors=[("a.desc", b"")])
        builtin = TraceConfig.BuiltinDataSource(disable_extension_descriptors=True)
        packets = setup.read(setup.enable(make_config(builtin_data_sources=builtin)))
        assert "extension_descriptor" not in kinds(packets)
