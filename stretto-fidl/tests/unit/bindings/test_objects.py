"""Tests of channels, VMOs and events: the objects that handles refer to."""

from __future__ import annotations

import os
import select
import socket

from stretto_fidl.bindings import ChannelEnd, Event, Vmo, adopt, channel
from stretto_fidl.codec.handle import ANY, CHANNEL, EVENT, VMO, Handle


def test_channel_keeps_message_boundaries() -> None:
    one, other = channel()
    with one, other:
        assert one.object_type == CHANNEL
        sender, receiver = (socket.socket(fileno=end.detach()) for end in (one, other))
        with sender, receiver:
            sender.send(b"one")
            sender.send(b"two")
            assert receiver.recv(100) == b"one"
            assert receiver.recv(100) == b"two"


def test_vmo_is_read_written_and_duplicated() -> None:
    with Vmo.create(b"hello", size=4096) as vmo:
        assert vmo.object_type == VMO
        assert vmo.size == 4096
        assert vmo.read(5) == b"hello"
        vmo.write(b"xyz", 4090)
        assert vmo.read(offset=4088) == b"\0\0xyz\0\0\0"
        with vmo.duplicate() as other:
            assert isinstance(other, Vmo)
            other.write(b"J")
            assert vmo.read(5) == b"Jello"


def test_event_is_signalled_and_cleared() -> None:
    with Event.create() as event:
        assert event.object_type == EVENT
        assert not event.clear()
        event.signal()
        assert select.select([event], [], [], 0)[0] == [event]
        assert event.clear()
        assert not event.clear()


def test_adopted_descriptor_gets_its_type_and_rights() -> None:
    one, other = channel()
    with one, other, Vmo.create() as vmo, Event.create() as event:
        for handle, kind in ((one, ChannelEnd), (vmo, Vmo), (event, Event)):
            with adopt(os.dup(handle.fd)) as adopted:
                assert type(adopted) is kind
                assert adopted.object_type == handle.object_type
                assert adopted.rights == handle.rights
    with adopt(os.open(os.devnull, os.O_RDONLY)) as adopted:
        assert type(adopted) is Handle
        assert adopted.object_type == ANY
