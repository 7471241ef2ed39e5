"""The service writes its packets with the fields in Perfetto's order."""

from __future__ import annotations

from stretto.service.output import service_packets
from stretto.service.output.service_packets import ServicePackets

BUILD = ServicePackets(uid=300)
UID = "18ac02"
"""Field 3, trusted_uid, is 300."""
SEQUENCE = "5001"
"""Field 10, trusted_packet_sequence_id, is 1."""
HEADER = UID + SEQUENCE + "d00306"
"""The fields 3 and 10, and field 58, timestamp_clock_id, which is 6 (BOOTTIME)."""


def test_clock_snapshot_is_encoded_with_its_primary_clock():
    packet = BUILD.clock_snapshot([(6, 1), (2, 128)], primary_clock=6)
    clocks = "0a0408061001" + "0a050802108001"
    assert packet.hex() == "320f" + "1006" + clocks + HEADER


def test_sync_marker_has_the_16_bytes_that_perfetto_defines():
    marker = "82477a76b28d42ba81dc33326d57a079"
    assert BUILD.sync_marker().hex() == UID + SEQUENCE + "a20210" + marker


def test_trace_config_packet_contains_the_encoded_config():
    assert BUILD.trace_config(b"ab").hex() == HEADER + "8a02026162"


def test_trace_uuid_with_a_negative_half_is_encoded():
    packet = BUILD.trace_uuid(msb=5, lsb=-1)
    assert packet.hex() == HEADER + "ca050d" + "10ffffffffffffffffff01" + "0805"


def test_trace_stats_packet_contains_the_encoded_stats():
    assert BUILD.trace_stats(b"").hex() == HEADER + "9a0200"


def test_trace_provenance_lists_the_sequences_of_each_buffer():
    assert BUILD.trace_provenance(7, [[], []]).hex() == "4007" + "e2070412001200" + HEADER
    packet = BUILD.trace_provenance(7, [[(2, 9), (3, 9)]]).hex()
    assert packet == "4007" + "e2070e" + "120c" + "0a0408021009" + "0a0408031009" + HEADER


def test_service_event_is_encoded_with_its_timestamp():
    packet = BUILD.service_event(7, service_packets.TRACING_DISABLED)
    assert packet.hex() == "4007" + HEADER + "aa04022801"


def test_service_event_lists_data_sources():
    packet = BUILD.service_event(7, 8, [("p", "d"), ("q", "")])
    listed = "0a060a01701201640a050a01711200"
    assert packet.hex() == "4007" + HEADER + "aa0411" + "420f" + listed


def test_system_info_is_encoded():
    class Info:
        sysname, version, machine, release = "s", "v", "m", "r"
        timezone_minutes = -60
        page_size, ram_bytes, cpus = 4096, 1, 2

    packet = BUILD.system_info(Info(), "w")
    body = "220177" + "38c4ffffffffffffffff01" + "0a0c" + "0a0173120176" + "22016d1a0172"
    body += "308020" + "800101" + "4002"
    assert packet.hex() == "ea02" + f"{len(body) // 2:02x}" + body + HEADER
