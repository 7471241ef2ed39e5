"""Producers over TCP: chunks are sent in messages, without shared memory."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from stretto.base.errors import TransportError
from stretto.ports.peer import machine_hint, machine_id
from stretto.protos.trace import TracePacket
from tests.support.machine import Machine, expected
from tests.support.service_setup import make_config, texts

pytestmark = pytest.mark.thorough


@pytest.fixture(params=["127.0.0.1:0", "[::1]:0"])
def machine(request: pytest.FixtureRequest) -> Iterator[Machine]:
    try:
        machine = Machine(request.param)
    except TransportError as error:
        pytest.skip(f"no such loopback here: {error}")
    yield machine
    machine.close()


def enable(machine: Machine) -> None:
    machine.consumer.enable(make_config("ds", size_kb=16384, trace_all_machines=True))


def flush(machine: Machine) -> None:
    machine.consumer.flush(10_000)
    machine.until(lambda: machine.consumer.flushes)
    assert machine.consumer.flushes == [True]


def events(packets: list[TracePacket]) -> list[TracePacket]:
    return [packet for packet in packets if packet.has("for_testing")]


def test_all_packets_of_a_producer_over_tcp_arrive(machine: Machine) -> None:
    enable(machine)
    child = machine.start_child(20_000)
    machine.wait_until_written(child)
    flush(machine)
    (producer,) = machine.service.producers.values()
    assert producer.identity.shm_emulation
    packets = machine.finish()
    assert texts(packets) == expected(20_000)
    assert not any(packet.previous_packet_dropped for packet in packets)
    # Over TCP, the service uses the pid and uid that the producer reports.
    assert {packet.trusted_pid for packet in events(packets)} == {child.pid}
    assert {packet.trusted_uid for packet in events(packets)} == {os.getuid()}
    assert {packet.machine_id for packet in events(packets)} == {machine_id(machine_hint(), "")}


def test_flush_reads_chunks_that_writers_still_fill(machine: Machine) -> None:
    enable(machine)
    child = machine.start_child(100, "keep")
    machine.wait_until_written(child)
    flush(machine)
    machine.consumer.flush(10_000)  # a second flush must not duplicate packets
    machine.until(lambda: len(machine.consumer.flushes) == 2)
    assert texts(machine.finish()) == expected(100)


def test_sent_packets_are_kept_when_the_producer_dies(machine: Machine) -> None:
    enable(machine)
    dying, living = machine.start_child(5000), machine.start_child(5000)
    for child in (dying, living):
        machine.wait_until_written(child)
    flush(machine)
    dying.kill()
    machine.until(lambda: len(machine.service.producers) == 1)
    by_pid: dict[int, list[str]] = {dying.pid: [], living.pid: []}
    for packet in events(machine.finish()):
        by_pid[packet.trusted_pid].append(packet.for_testing.str)
    assert by_pid == {dying.pid: expected(5000), living.pid: expected(5000)}


def test_sessions_of_this_machine_exclude_remote_producers(machine: Machine) -> None:
    machine.consumer.enable(make_config("ds"))
    child = machine.start_child(0)
    machine.until(lambda: machine.service.data_sources)
    (producer,) = machine.service.producers.values()
    session = machine.service.sessions[machine.consumer.endpoint.session_id]
    assert not session.instances.has(producer, "ds")
    child.kill()
