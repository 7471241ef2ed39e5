"""Socket addresses of each kind are parsed; invalid addresses are refused."""

from __future__ import annotations

import pytest

from stretto.base.errors import TransportError
from stretto.base.socket_address import (
    ANY_CID,
    is_network,
    parse_tcp,
    parse_vsock,
)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("localhost:32278", ("localhost", 32278)),
        ("127.0.0.1:0", ("127.0.0.1", 0)),
        ("[::1]:1234", ("::1", 1234)),
        ("host:65535", ("host", 65535)),
        ("/tmp/producer", None),
        ("/tmp/odd:1", None),
        ("./odd:1", None),
        ("@name:1", None),
        ("name", None),
        ("name:", None),
        ("name:port", None),
        ("name:-1", None),
        ("name:٣", None),
        ("vsock://2:3", None),
    ],
)
def test_tcp_addresses_are_parsed(address: str, expected: tuple[str, int] | None) -> None:
    assert parse_tcp(address) == expected
    assert is_network(address) is (expected is not None or address.startswith("vsock"))


@pytest.mark.parametrize("address", [":80", "[]:80", "host:65536", "host:9999999999"])
def test_impossible_tcp_addresses_are_refused(address: str) -> None:
    with pytest.raises(TransportError, match="give host:port"):
        parse_tcp(address)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("vsock://2:32278", (2, 32278)),
        ("vsock://-1:10000", (ANY_CID, 10000)),
        ("vsock://4294967295:4294967295", (ANY_CID, ANY_CID)),
        ("localhost:1", None),
        ("/vsock", None),
    ],
)
def test_vsock_addresses_are_parsed(address: str, expected: tuple[int, int] | None) -> None:
    assert parse_vsock(address) == expected


@pytest.mark.parametrize(
    "address", ["vsock://", "vsock://2", "vsock://a:1", "vsock://1:b", "vsock://1:4294967296"]
)
def test_impossible_vsock_addresses_are_refused(address: str) -> None:
    assert is_network(address)
    with pytest.raises(TransportError, match="give vsock://cid:port"):
        parse_vsock(address)
