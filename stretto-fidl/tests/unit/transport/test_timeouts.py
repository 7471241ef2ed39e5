"""Time limits of blocking calls apply to writes, reads, and waits for other threads."""

from __future__ import annotations

import math
import socket
import threading

import pytest

from fidl_support.talk import serving, talk
from stretto_fidl.bindings import ChannelEnd, channel
from stretto_fidl.transport import CallTimeoutError, Client, ClosedError
from stretto_fidl.transport.deadline import deadline_of, is_over, seconds_left

KINDS = pytest.mark.parametrize("kind", [socket.SOCK_SEQPACKET, socket.SOCK_STREAM])


def ends(kind: int) -> tuple[ChannelEnd, ChannelEnd]:
    own, peer = socket.socketpair(socket.AF_UNIX, kind)
    own.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    return ChannelEnd(own.detach(), used=False), ChannelEnd(peer.detach(), used=False)


@KINDS
def test_call_to_a_server_that_does_not_read_times_out(kind: int) -> None:
    own, peer = ends(kind)
    request = talk.TalkEchoRequest(number=1)
    with peer, Client(talk.Talk, own) as client:
        for _ in range(300):
            with pytest.raises(CallTimeoutError):
                client.call("Echo", request, timeout=0)
        with pytest.raises(CallTimeoutError, match="no room"):
            client.call("Echo", request, timeout=0.01)


@KINDS
def test_one_way_call_has_the_time_limit_of_its_client(kind: int) -> None:
    own, peer = ends(kind)
    with peer, Client(talk.Talk, own, timeout=0) as client:
        errors = 0
        for number in range(300):
            try:
                client.Fire(number=number)
            except CallTimeoutError:
                errors += 1
        assert errors


def test_close_wakes_a_thread_that_waits_for_room_in_the_socket() -> None:
    own, peer = ends(socket.SOCK_SEQPACKET)
    began, errors = threading.Event(), []

    def fire() -> None:
        try:
            while True:
                client.Fire(number=1)
                began.set()
        except ClosedError as error:
            errors.append(error)

    with peer, Client(talk.Talk, own) as client:
        thread = threading.Thread(target=fire)
        thread.start()
        began.wait(30)
        for timeout in (0, 0.01):
            with pytest.raises(CallTimeoutError):
                client.call("Echo", talk.TalkEchoRequest(number=1), timeout=timeout)
        client.close()  # close() wakes the thread that waits for room in the socket
        thread.join(30)
    assert errors


@KINDS
def test_timed_out_write_leaves_no_partial_message(kind: int) -> None:
    own, peer = ends(kind)
    with Client(talk.Talk, own) as client:
        sent = 0
        with pytest.raises(CallTimeoutError, match="no room"):  # noqa: PT012
            while True:
                try:
                    client.call("Echo", talk.TalkEchoRequest(number=sent), timeout=0)
                except CallTimeoutError as error:
                    if "no room" in str(error):
                        raise
                sent += 1
        with serving(peer) as there:
            assert client.Echo(number=7).number == 7
            client.Fire(number=8)
            client.Echo(number=9)
            assert there.handler.fired == [8]


@pytest.mark.parametrize("timeout", [3e6, 1e20, math.inf])
def test_very_long_time_limits_are_accepted(timeout: float) -> None:
    near, far = channel()
    with Client(talk.Talk, near, timeout=timeout) as client, serving(far) as there:
        assert client.Echo(number=1).number == 1
        there.server.OnTick(number=2)
        event = client.next_event(timeout=timeout)
        assert event is not None
        assert event.payload.number == 2


def test_time_limits_are_converted_to_deadlines_or_refused() -> None:
    assert deadline_of(None) is deadline_of(math.inf) is None
    assert seconds_left(None) == -1
    assert not is_over(None)
    assert seconds_left(deadline_of(-1)) == 0
    assert is_over(deadline_of(-1))
    assert 0 < seconds_left(deadline_of(1e300)) <= threading.TIMEOUT_MAX
    with pytest.raises(TypeError, match="'soon'"):
        deadline_of("soon")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="nan"):
        deadline_of(math.nan)
