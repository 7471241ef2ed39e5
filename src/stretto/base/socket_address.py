"""Socket addresses in Perfetto's notation.

    /run/perfetto/producer.sock    a unix socket         @name    an abstract socket
    localhost:32278  [::1]:32278   TCP                   vsock://2:32278    cid and port

An address without a slash that ends in `:number` is TCP. A service accepts several addresses,
separated by commas; a client accepts one.

Source: docs/formats/ipc.md, "Addresses".
"""

from __future__ import annotations

from stretto.base.errors import TransportError

MAX_PORT = 65535
MAX_VSOCK_NUMBER = (1 << 32) - 1
ANY_CID = MAX_VSOCK_NUMBER
"""The cid for all cids of the machine (VMADDR_CID_ANY); -1 is accepted for it."""

_VSOCK = "vsock://"


def is_network(address: str) -> bool:
    """Whether an address is TCP or vsock.

    Connections of these kinds have no shared memory, and the user of the peer isn't known."""
    return address.startswith(_VSOCK) or _is_tcp(address)


def parse_tcp(address: str) -> tuple[str, int] | None:
    """Parse `host:port` or `[IPv6]:port` to (host, port); None for other kinds of address.

    Raises:
        TransportError: The host is missing, or the port is out of range.
    """
    if not _is_tcp(address):
        return None
    host, _, port = address.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if not host or int(port) > MAX_PORT:
        raise TransportError(
            f"socket address {address!r}: give host:port or [IPv6]:port, "
            f"with a port of at most {MAX_PORT}"
        )
    return host, int(port)


def parse_vsock(address: str) -> tuple[int, int] | None:
    """Parse `vsock://cid:port` to (cid, port); None for other kinds of address.

    Raises:
        TransportError: The cid or the port isn't a number, or is too large.
    """
    if not address.startswith(_VSOCK):
        return None
    cid, _, port = address.removeprefix(_VSOCK).rpartition(":")
    numbers = [ANY_CID if word == "-1" else _number(word) for word in (cid, port)]
    if any(not 0 <= number <= MAX_VSOCK_NUMBER for number in numbers):
        raise TransportError(f"socket address {address!r}: give vsock://cid:port with two numbers")
    return numbers[0], numbers[1]


def _is_tcp(address: str) -> bool:
    if address.startswith("@") or "/" in address:
        return False
    _, colon, port = address.rpartition(":")
    return bool(colon) and _number(port) >= 0


def _number(word: str) -> int:
    """Parse an int; -1 if invalid."""
    return int(word) if word.isascii() and word.isdigit() and len(word) <= 10 else -1
