"""The addresses of the machine's tracing service: environment variables and default paths.

Variables and paths are Perfetto's, so that Stretto's programs can be combined with Perfetto's. A
service may listen for producers at several addresses, which its variable separates by commas; a
client takes the whole value as one address.

Source: docs/formats/ipc.md, "Addresses".
"""

from __future__ import annotations

import os

PRODUCER_VARIABLE = "PERFETTO_PRODUCER_SOCK_NAME"
CONSUMER_VARIABLE = "PERFETTO_CONSUMER_SOCK_NAME"
SYSTEM_FOLDER = "/run/perfetto"


def producer_socket() -> str:
    """Return the address that a producer connects to."""
    return os.environ.get(PRODUCER_VARIABLE) or _default("traced-producer.sock", "producer")


def producer_sockets() -> list[str]:
    """Return the addresses at which a service listens for producers."""
    return [word for word in producer_socket().split(",") if word]


def consumer_socket() -> str:
    """Return the address for consumers, used by service and clients."""
    return os.environ.get(CONSUMER_VARIABLE) or _default("traced-consumer.sock", "consumer")


def _default(name: str, kind: str) -> str:
    if os.access(SYSTEM_FOLDER, os.X_OK):
        return f"{SYSTEM_FOLDER}/{name}"
    return f"/tmp/perfetto-{kind}"
