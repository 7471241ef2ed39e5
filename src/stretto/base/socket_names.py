"""Where the tracing service of a machine is found, unless somebody says otherwise.

The variables and the default paths are Perfetto's, so that its programs and ours meet. A
service may listen for producers in several places, separated by commas; a client takes the
variable as it is.

Source: docs/formats/ipc.md, "Addresses".
"""

from __future__ import annotations

import os

PRODUCER_VARIABLE = "PERFETTO_PRODUCER_SOCK_NAME"
CONSUMER_VARIABLE = "PERFETTO_CONSUMER_SOCK_NAME"
SYSTEM_FOLDER = "/run/perfetto"


def producer_socket() -> str:
    """The address that a producer connects to."""
    return os.environ.get(PRODUCER_VARIABLE) or _default("traced-producer.sock", "producer")


def producer_sockets() -> list[str]:
    """The addresses where a service listens for producers."""
    return [word for word in producer_socket().split(",") if word]


def consumer_socket() -> str:
    """The address of consumers, for both sides."""
    return os.environ.get(CONSUMER_VARIABLE) or _default("traced-consumer.sock", "consumer")


def _default(name: str, kind: str) -> str:
    if os.access(SYSTEM_FOLDER, os.X_OK):
        return f"{SYSTEM_FOLDER}/{name}"
    return f"/tmp/perfetto-{kind}"
