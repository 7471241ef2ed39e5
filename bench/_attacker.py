"""Attacks a tracing service with expensive requests; for bench/service.py.

    python bench/_attacker.py NAME

It prints `attacking` when the attack begins, and continues until its input ends. The variables
PERFETTO_PRODUCER_SOCK_NAME and PERFETTO_CONSUMER_SOCK_NAME name the service's sockets.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
from typing import TYPE_CHECKING

from _services import ConsumerConnection

import stretto
from stretto.base.errors import StrettoError
from stretto.base.socket_names import consumer_socket, producer_socket
from stretto.ports.producer_ipc_client import ProducerHints, ProducerIPCClient
from stretto.protos.config import (
    DataSourceConfig,
    DataSourceDescriptor,
    TraceConfig,
    TrackEventConfig,
)

if TYPE_CHECKING:
    from collections.abc import Callable

SLOW_READ_BYTES = 4096
SLOW_READ_PERIOD_S = 1.0
PERIOD_MS = 100
ACTIVATIONS, UNKNOWN_NAMES = 66_000, 15_000
ACTIVATED_AT_ONCE = 4_000
PRODUCERS, SOURCES = 400, 256
CONFIG_NAMES = 14_000
REGEXES = ("a{99999999999}", "(" * 4000 + ")" * 4000)
TIMEOUT_S = 60
ROUND_S = 1.0
"""Pause between two attacks of one peer."""

_Triggers = TraceConfig.TriggerConfig


class Silent:
    """A producer that ignores all commands of the service."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_: None


def say_begin() -> None:
    print("attacking", flush=True)


def make_producer(name: str = "attacker") -> ProducerIPCClient:
    client = ProducerIPCClient.connect(producer_socket(), Silent(), ProducerHints(name))  # type: ignore[arg-type]
    client.connect_and_wait(TIMEOUT_S * 1000)
    return client


def wait_for(client: ProducerIPCClient) -> None:
    """Wait until the service has handled all messages sent so far."""
    handled = threading.Event()
    client.sync(handled.set)
    handled.wait(TIMEOUT_S)


def make_config(source: DataSourceConfig | None = None, **fields: object) -> TraceConfig:
    sources = [] if source is None else [TraceConfig.DataSource(config=source)]
    return TraceConfig(
        buffers=[TraceConfig.BufferConfig(size_kb=4096)],
        data_sources=sources,
        **fields,  # type: ignore[arg-type]
    )


def slow_pipe() -> None:
    """Write a session into a pipe whose reader takes 4 KiB/s."""
    stretto.connect()
    category = stretto.Category("attack")
    reader, writer = os.pipe()
    events = TrackEventConfig(enabled_categories=["attack"])
    source = DataSourceConfig(name="track_event", track_event_config=events)
    config = make_config(source, write_into_file=True, file_write_period_ms=PERIOD_MS)
    consumer = ConsumerConnection(consumer_socket())
    consumer.endpoint.enable_tracing(config.encode(), writer)
    consumer.sleep(1)

    def write() -> None:
        while True:
            for _ in range(100):
                category.instant("event", payload="." * 1000)
            time.sleep(0.01)

    threading.Thread(target=write, daemon=True).start()
    say_begin()
    while True:
        os.read(reader, SLOW_READ_BYTES)
        consumer.sleep(SLOW_READ_PERIOD_S)


def triggers() -> None:
    """Send 66,000 triggers with a known name once; then send 15,000 unknown names each second."""
    known = _Triggers.Trigger(name="k", stop_delay_ms=1)
    wanted = _Triggers(
        trigger_mode=_Triggers.START_TRACING, triggers=[known], trigger_timeout_ms=3_600_000
    )
    consumer = ConsumerConnection(consumer_socket())
    consumer.endpoint.enable_tracing(make_config(trigger_config=wanted).encode())
    consumer.sleep(0.2)
    client = make_producer()
    for _ in range(ACTIVATIONS // ACTIVATED_AT_ONCE):
        for _ in range(ACTIVATED_AT_ONCE):
            client.activate_triggers(["k"])
        wait_for(client)
    names = [f"{number:05}" for number in range(UNKNOWN_NAMES)]
    say_begin()
    while True:
        client.activate_triggers(names)
        wait_for(client)
        time.sleep(ROUND_S)


def registrations() -> None:
    """Register 102,400 data sources of 400 producers, again and again."""
    begun = False
    while True:
        clients = [make_producer(f"attacker {number}") for number in range(PRODUCERS)]
        if not begun:
            say_begin()
        begun = True
        for client in clients:
            for number in range(SOURCES):
                client.register_data_source(DataSourceDescriptor(name=f"source {number}"))
        for client in clients:
            wait_for(client)
            client.disconnect()


def trigger_names() -> None:
    """Once a second, start a session whose config has 14,000 trigger names."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    names = itertools.islice(map("".join, itertools.product(letters, repeat=3)), CONFIG_NAMES)
    wanted = _Triggers(
        trigger_mode=_Triggers.START_TRACING,
        triggers=[_Triggers.Trigger(name=name) for name in names],
        trigger_timeout_ms=1000,
    )
    _enable_for_ever([make_config(trigger_config=wanted)])


def regexes() -> None:
    """Once a second, start a session whose producer filters are expensive regexes."""
    configs = [make_config(DataSourceConfig(name="track_event")) for _ in REGEXES]
    for config, regex in zip(configs, REGEXES, strict=True):
        config.data_sources[0].producer_name_regex_filter = [regex]
    make_producer().register_data_source(DataSourceDescriptor(name="track_event"))
    _enable_for_ever(configs)


def _enable_for_ever(configs: list[TraceConfig]) -> None:
    encoded = [config.encode() for config in configs]
    begun = False
    while True:
        for config in encoded:
            consumer = ConsumerConnection(consumer_socket())
            if not begun:
                say_begin()
            begun = True
            consumer.endpoint.enable_tracing(config)
            consumer.sleep(ROUND_S)
            consumer.endpoint.disconnect()
            consumer.runner.close()


ATTACKS = {
    function.__name__: function
    for function in (slow_pipe, triggers, registrations, trigger_names, regexes)
}


def main() -> None:
    def attack() -> None:
        try:
            ATTACKS[sys.argv[1]]()
        except (StrettoError, SystemExit) as error:
            print(f"attacker: {error}", file=sys.stderr, flush=True)
        finally:
            os._exit(1)

    threading.Thread(target=attack, daemon=True).start()
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
