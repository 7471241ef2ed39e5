"""A FIDL channel end replies or closes whatever its peer sends, without hangs and leaks."""

from __future__ import annotations

import os
import socket
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fidl_support.talk import Serving, Talker, talk
from stretto_fidl.bindings import ChannelEnd, channel
from stretto_fidl.codec import TransactionHeader, decode_epitaph, decode_header
from stretto_fidl.errors import FidlError
from stretto_fidl.ordinals import EPITAPH_ORDINAL
from stretto_fidl.transport import Client, PeerError
from tests.support.examples import examples

ORDINALS = [method.ordinal for method in talk.Talk.METHODS if method.name not in ("Crash", "Later")]

HEADERS = st.builds(
    lambda txid, ordinal, flexible: TransactionHeader(txid, ordinal, flexible).encode(),
    st.sampled_from([0, 1, 2, 1 << 31, (1 << 31) + 1, (1 << 32) - 1]),
    st.sampled_from([*ORDINALS, 99, EPITAPH_ORDINAL]),
    st.booleans(),
)
MESSAGES = st.one_of(
    st.binary(min_size=1, max_size=40),
    st.builds(lambda header, body: header + body, HEADERS, st.binary(max_size=40)),
    st.builds(lambda header, body: header + body * 4 + bytes(4), HEADERS, st.just(b"\1")),
)
PACKETS = st.lists(st.tuples(MESSAGES, st.integers(0, 3)), max_size=8)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def send(peer: socket.socket, packets: list[tuple[bytes, int]]) -> None:
    """Send packets with descriptors until the other end closes."""
    try:
        for data, handles in packets:
            socket.send_fds(peer, [data], [peer.fileno()] * handles)
        peer.shutdown(socket.SHUT_WR)
    except OSError:
        return


def received(peer: socket.socket) -> list[bytes]:
    """Return the received packets up to the end of the connection."""
    messages = []
    try:
        while data := peer.recv(65536):
            messages.append(data)
    except ConnectionResetError:
        messages += received(peer)
    return messages


@settings(max_examples=examples(150), deadline=None)
@given(PACKETS)
def test_server_survives_any_packets(packets: list[tuple[bytes, int]]) -> None:
    before = descriptors()
    near, far = channel()
    with socket.socket(fileno=near.detach()) as peer:
        peer.settimeout(30)
        serving = Serving(talk.Talk, far, Talker())
        send(peer, packets)
        serving.join()
        messages = received(peer)
    assert serving.error is None or isinstance(serving.error, PeerError)
    epitaphs = [data for data in messages if decode_header(data).is_epitaph]
    assert epitaphs == (messages[-1:] if serving.error else [])
    assert all(decode_epitaph(data) in (-2, -10) for data in epitaphs)
    del serving
    assert descriptors() == before


def call_for_ever(client: Any) -> None:
    while True:
        client.Echo(number=1)


@settings(max_examples=examples(150), deadline=None)
@given(PACKETS, st.sampled_from([socket.SOCK_SEQPACKET, socket.SOCK_STREAM]))
def test_client_survives_any_packets(packets: list[tuple[bytes, int]], kind: int) -> None:
    before = descriptors()
    near, far = socket.socketpair(socket.AF_UNIX, kind)
    with far, Client(talk.Talk, ChannelEnd(near.detach())) as client:
        far.settimeout(30)
        send(far, packets)
        with pytest.raises(FidlError):
            call_for_ever(client)
        try:
            for _ in client.events():
                continue
        except FidlError:
            pass
    assert descriptors() == before
