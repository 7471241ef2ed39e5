"""Methods and events with any names work between a client and a server."""

from __future__ import annotations

import threading

import pytest

from stretto_fidl.bindings import channel, load
from stretto_fidl.compiler import compile_sources
from stretto_fidl.errors import FidlError
from stretto_fidl.transport import Client, Server

TEXT = """\
library test;
open protocol P {
    strict from() -> (struct { self int32; });
    strict close(struct { payload int32; self int32; }) -> (struct { cls int32; });
    strict on_unknown_method() -> ();
    strict TYPE() -> ();
    strict -> class();
    strict -> serve(struct { self int32; });
    strict -> on_unknown_event();
};
"""
names = load(compile_sources({"test.fidl": TEXT}))


class Handler:
    def __init__(self) -> None:
        self.called: list[str] = []

    def from_(self) -> object:
        return names.PFromResponse(self=1)

    def close(self, request) -> object:
        return names.PCloseResponse(cls=request.payload + request.self)

    def on_unknown_method_(self) -> None:
        self.called.append("on_unknown_method")

    def on_unknown_method(self, ordinal: int) -> None:
        raise AssertionError(ordinal)

    def TYPE(self) -> None:  # noqa: N802
        self.called.append("TYPE")


class Events:
    def __init__(self) -> None:
        self.seen: list[object] = []

    def class_(self) -> None:
        self.seen.append("class")

    def serve(self, payload) -> None:
        self.seen.append(payload.self)

    def on_unknown_event_(self) -> None:
        self.seen.append("on_unknown_event")

    def on_unknown_event(self, ordinal: int) -> None:
        raise AssertionError(ordinal)


def test_methods_and_events_with_reserved_names_work() -> None:
    near, far = channel()
    handler, events = Handler(), Events()
    server = Server(names.P, far, handler)
    thread = threading.Thread(target=server.serve)
    thread.start()
    with Client(names.P, near) as client:
        assert client.from_().self == 1
        assert client.close_(payload=2, self=3).cls == 5
        client.on_unknown_method()
        client.TYPE()
        server.class_()
        server.serve_(self=4)
        server.on_unknown_event()
        server.close()
        client.dispatch_events(events)
    thread.join()
    assert handler.called == ["on_unknown_method", "TYPE"]
    assert events.seen == ["class", 4, "on_unknown_event"]


def test_error_names_missing_methods_in_python_spelling() -> None:
    near, far = channel()
    with pytest.raises(FidlError, match=r"lacks from_, close, on_unknown_method_, TYPE"):
        Server(names.P, far, object())
    near.close()
    far.close()
