"""The service receives data from producers in other processes over sockets and shared memory."""

from __future__ import annotations

import os
import signal

import pytest

from stretto.testing.decoded_packets import decode_packets
from tests.support.machine import TIMEOUT_MS, Machine, expected
from tests.support.service_setup import make_config, texts


@pytest.fixture
def machine(tmp_path):
    machine = Machine(str(tmp_path / "producer.sock"))
    yield machine
    machine.close()


def test_flush_delivers_all_packets(machine):
    # The stop time-out is longer than this test, so the producer must acknowledge the stop.
    patient = 2 * TIMEOUT_MS
    config = make_config("ds", size_kb=8192, data_source_stop_timeout_ms=patient)
    machine.consumer.enable(config)
    child = machine.start_child(20_000)
    machine.wait_until_written(child)
    machine.consumer.flush(10_000)
    machine.until(lambda: machine.consumer.flushes)
    assert machine.consumer.flushes == [True]
    packets = machine.finish()
    assert texts(packets) == expected(20_000)
    found = [packet for packet in packets if packet.has("for_testing")]
    assert {packet.trusted_pid for packet in found} == {child.pid}
    assert {packet.trusted_uid for packet in found} == {os.getuid()}
    assert not any(packet.previous_packet_dropped for packet in packets)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_packets_of_a_killed_producer_are_kept(machine, how):
    machine.consumer.enable(make_config("ds", size_kb=8192))
    child = machine.start_child(5000)
    machine.wait_until_written(child)
    child.send_signal(how)
    assert child.wait() == -how
    machine.until(lambda: not machine.service.producers)
    assert texts(machine.finish()) == expected(5000)


def test_several_processes_stream_into_one_file(machine, tmp_path):
    path = tmp_path / "trace"
    config = make_config("ds", size_kb=16384, write_into_file=True, output_path=str(path))
    config.file_write_period_ms = 100
    machine.consumer.enable(config)
    children = [machine.start_child(5000) for _ in range(3)]
    for child in children:
        machine.wait_until_written(child)
    machine.consumer.flush(10_000)
    machine.until(lambda: machine.consumer.flushes)
    machine.consumer.endpoint.disable_tracing()
    machine.until(lambda: machine.consumer.disabled)
    packets = decode_packets(path.read_bytes())
    by_pid = {}
    for packet in packets:
        if packet.has("for_testing"):
            by_pid.setdefault(packet.trusted_pid, []).append(packet.for_testing.str)
    assert by_pid == {child.pid: expected(5000) for child in children}
    assert packets[-1].has("trace_stats")
