"""The verb `trigger`: activates triggers.

Source: docs/formats/command_line.md, "Triggers".
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

from stretto.base.errors import CommandError, RemoteProtocolError, TransportError
from stretto.base.socket_names import consumer_socket, producer_socket

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stretto import _native
    from stretto.protos.config import DataSourceConfig

HELP = """\
usage: stretto trigger NAME...

Activate triggers: sessions whose trigger_config names one of them start, stop, or are cloned.

  trigger_config {
    trigger_mode: STOP_TRACING
    trigger_timeout_ms: 3600000
    triggers { name: "slow_request"  stop_delay_ms: 500 }
  }

  stretto trigger slow_request

The service's address is in PERFETTO_PRODUCER_SOCK_NAME.
Exit codes: 0: the service has received the triggers; 1: it has not.
"""
PRODUCER_NAME = "perfetto_cmd_producer"
TIMEOUT_S = 10.0


def run(arguments: Sequence[str]) -> int:
    """Run `stretto trigger`.

    Raises:
        CommandError: there is no name, or no service received the triggers.
    """
    if any(word in ("-h", "--help") for word in arguments):
        print(HELP, end="")
        return 0
    for option in (word for word in arguments if word.startswith("-")):
        print(f"stretto: trigger: there is no option {option}; ignored", file=sys.stderr)
    names = [word for word in arguments if not word.startswith("-")]
    if not names:
        raise CommandError("trigger: name a trigger. `stretto trigger --help` shows how.")
    if _has_no_session():
        print("stretto: trigger: no session is running, so nothing waits for it", file=sys.stderr)
    activate_triggers(names)
    return 0


def _has_no_session() -> bool:
    """Whether the service has no session; False if this user may not query it."""
    from stretto.base.selector_task_runner import SelectorTaskRunner
    from stretto.cli.trace.consumer import TraceConsumer

    runner = SelectorTaskRunner()
    consumer = None
    try:
        consumer = TraceConsumer(runner, consumer_socket())
        return not consumer.service_state(sessions_only=True).num_sessions
    except CommandError:
        return False
    finally:
        if consumer is not None:
            consumer.close()
        runner.close()


def activate_triggers(names: Sequence[str]) -> None:
    """Activate triggers, and wait until the service has handled them.

    Raises:
        CommandError: there is no service, or it doesn't reply.
    """
    from stretto.ports.producer_ipc_client import ProducerHints, ProducerIPCClient

    done = threading.Event()
    try:
        hints = ProducerHints(PRODUCER_NAME)
        client = ProducerIPCClient.connect(
            producer_socket(), _EmptyProducer(), hints, TIMEOUT_S * 1000
        )
        client.connect_and_wait(TIMEOUT_S * 1000)
    except (TransportError, RemoteProtocolError) as error:
        raise CommandError(f"trigger: {error} (`stretto traced` starts the service)") from error
    client.activate_triggers(names)
    client.sync(done.set)
    has_replied = done.wait(TIMEOUT_S)
    client.disconnect()
    if not has_replied:
        raise CommandError("trigger: the tracing service doesn't answer.")


class _EmptyProducer:
    """A producer without data sources."""

    def on_connect(self) -> None: ...
    def on_disconnect(self) -> None: ...
    def on_tracing_setup(self, arbiter: _native.Arbiter) -> None: ...
    def setup_data_source(self, instance_id: int, config: DataSourceConfig) -> None: ...
    def start_data_source(self, instance_id: int, config: DataSourceConfig) -> None: ...
    def stop_data_source(self, instance_id: int) -> None: ...
    def flush(self, request_id: int, instance_ids: Sequence[int], flags: int) -> None: ...
    def clear_incremental_state(self, instance_ids: Sequence[int]) -> None: ...
