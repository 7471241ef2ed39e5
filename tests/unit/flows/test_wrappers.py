"""Wrappers of other transports leave messages unchanged and record a flow for each message."""

from __future__ import annotations

import asyncio
import io
import multiprocessing
import os
import sys
import threading
from collections.abc import Iterable, Iterator
from http.client import CannotSendRequest, ResponseNotReady
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.request import Request, urlopen
from wsgiref.types import StartResponse, WSGIEnvironment
from wsgiref.util import FileWrapper, setup_testing_defaults

import pytest

import stretto
from stretto import flows
from stretto.flows import asgi, wsgi
from stretto.flows.exchange import Exchange, key_of, new_flow
from stretto.flows.http_call import http_call
from stretto.flows.http_client import TracedHTTPConnection
from stretto.flows.queues import TracedConnection, TracedSimpleQueue, traced_pipe
from tests.support.flow_chains import CALL, ONE_WAY, arrows
from tests.support.recorded_events import BEGIN, END, INSTANT, Event, record
from tests.support.traced_greeter import flows_installed

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

http = stretto.Category("http")


@pytest.fixture(autouse=True)
def installed() -> Iterator[None]:
    with flows_installed():
        yield


def echo(queue: TracedSimpleQueue, back: TracedConnection) -> None:
    """In another process, get five items and return them with their flows."""
    flows.install()
    with record() as recorded:
        items = [queue.get() for _ in range(5)]
    received = [(e.flows + e.terminating_flows)[0] for e in recorded.events if e.kind != END]
    back.send((items, received))
    back.close()


class TestTracedQueues:
    @pytest.mark.parametrize("method", ["spawn", "fork"])
    @pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
    def test_items_sent_to_another_process_have_flows(self, method: str) -> None:
        context = multiprocessing.get_context(method)
        queue = TracedSimpleQueue(category="test.queues", context=context)
        near, far = traced_pipe(category="test.queues", context=context)
        child = context.Process(target=echo, args=(queue, far))  # type: ignore[attr-defined]
        child.start()
        far.close()
        with record() as recorded:
            for number in range(5):
                queue.put({"number": number})
        sent = [(e.flows + e.terminating_flows)[0] for e in recorded.events if e.kind != END]
        assert near.poll(60)
        items, received = near.recv()
        child.join()
        near.close()
        queue.close()
        assert items == [{"number": number} for number in range(5)]
        assert len(set(sent)) == 5
        assert received == sent
        assert child.exitcode == 0

    def test_items_of_several_threads_have_flows(self) -> None:
        queue = TracedSimpleQueue(category="test.queues", name="job")
        got: list[int] = []

        def put(first: int) -> None:
            for number in range(first, 200, 4):
                queue.put(number)

        def get() -> None:
            got.extend(queue.get() for _ in range(100))

        threads = [threading.Thread(target=put, args=(first,)) for first in range(4)]
        threads += [threading.Thread(target=get) for _ in range(2)]
        with record() as recorded:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        queue.close()
        assert sorted(got) == list(range(200))
        assert arrows(recorded.events, "job") == [ONE_WAY] * 200

    def test_messages_of_a_pipe_have_flows(self) -> None:
        near, far = traced_pipe(category="test.queues")
        with record() as recorded:
            near.send([1])
            assert far.poll()
            assert far.recv() == [1]
            far.send("two")
            assert near.recv() == "two"
        assert near.fileno() >= 0
        near.close()
        with pytest.raises(EOFError):
            far.recv()
        far.close()
        assert arrows(recorded.events, "message") == [ONE_WAY] * 2


class TestRequestKeys:
    def test_flow_key_depends_on_trace_and_span_of_a_traceparent(self) -> None:
        key = key_of({"traceparent": PARENT})
        assert key
        assert key == key_of({"traceparent": PARENT[:-2] + "00"})
        assert key != key_of({"traceparent": PARENT.replace("b7ad", "b7ae")})
        assert key != key_of({"traceparent": PARENT.replace("0af7", "0af8")})

    def test_traceparent_of_a_later_version_is_accepted(self) -> None:
        later = PARENT.replace("00-", "01-", 1)
        assert key_of({"traceparent": later + "-more"}) == key_of({"traceparent": f" {PARENT} "})

    def test_flow_keys_of_small_trace_and_span_numbers_are_unique(self) -> None:
        pairs = [(trace, span) for trace in range(1, 40) for span in {*range(1, 40), trace}]
        texts = [f"00-{trace:032x}-{span:016x}-00" for trace, span in pairs]
        keys = {key_of({"traceparent": text}) for text in texts}
        assert len(keys) == len(set(pairs))
        assert 0 not in keys

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "00-1-2-3",
            PARENT.upper(),
            PARENT + "x",
            PARENT[:-1],
            PARENT.replace("-", "_"),
            PARENT.replace("b7", "+7"),
            PARENT.replace("b7", "_7"),
            PARENT.replace("0af7", "0xf7"),
            PARENT.replace("b7", "\u0661\u0662"),
            f"00-{'0' * 32}-{'1' * 16}-01",
            f"00-{'1' * 32}-{'0' * 16}-01",
        ],
    )
    def test_invalid_traceparent_has_flow_key_0(self, text: str) -> None:
        assert key_of({"traceparent": text}) == 0

    def test_x_stretto_flow_header_overrides_traceparent(self) -> None:
        text, key = new_flow()
        assert key_of({"x-stretto-flow": text, "traceparent": PARENT}) == key
        for bad in ("nonsense", text[1:], text + "0", "0x" + text[2:], "+" + text[1:]):
            assert key_of({"x-stretto-flow": bad}) == 0

    @pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
    def test_new_flows_of_parent_and_child_process_are_unique(self) -> None:
        ours, theirs = os.pipe()
        if not (child := os.fork()):
            os.write(theirs, "".join(new_flow()[0] for _ in range(100)).encode())
            os._exit(0)
        os.waitpid(child, 0)
        texts = os.read(ours, 1600).decode()
        os.close(ours)
        os.close(theirs)
        keys = [int(texts[at : at + 16], 16) for at in range(0, 1600, 16)]
        keys += [new_flow()[1] for _ in range(100)]
        assert len({*keys, 0}) == 201


class TestTracedExchange:
    @staticmethod
    def end(key: int, *, is_server: bool) -> Exchange:
        return Exchange(
            category="test.x", service="s", method=str(key), key=key, is_server=is_server
        )

    def test_call_made_by_a_handler_contains_the_id_of_the_handled_call(self) -> None:
        keys = (7, (1 << 64) - 1)
        with record() as recorded:
            for key in keys:
                with self.end(key, is_server=True) as served:
                    assert flows.incoming() == key
                    with self.end(3, is_server=False) as call:
                        call.reply(size=9)
                    served.reply()
                assert flows.incoming() == 0
            with self.end(4, is_server=False):
                pass
        named = [event.args.get("incoming") for event in recorded.events if event.kind != END]
        assert named == [None, 7, None, None, None, -1, None, None, None]
        assert [e.args["bytes"] for e in recorded.events if "bytes" in e.args] == [9, 9]

    def test_exchange_begun_without_a_session_is_not_recorded(self) -> None:
        with self.end(1, is_server=True) as early, record() as recorded:
            early.reply()
            assert flows.incoming() == 0
        assert recorded.events == []


class Handler(BaseHTTPRequestHandler):
    """An HTTP handler that records requests and replies itself, without a wrapper."""

    protocol_version = "HTTP/1.1"
    heard: list[dict[str, str]]
    may_answer_late = threading.Event()
    """Set when the path `/late` may be answered."""

    def do_GET(self) -> None:
        if self.path == "/late":
            assert self.may_answer_late.wait(30)
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.heard.append(headers)
        with Exchange(
            category="http", service="http", method=f"GET {self.path}", key=key_of(headers),
            is_server=True,
        ) as exchange:  # fmt: skip
            exchange.reply()
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

    def log_message(self, *_: object) -> None:
        """Suppress the server's log."""


class Server(HTTPServer):
    """A server that ignores connection errors: some clients close without reading."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@pytest.fixture
def port() -> Iterator[int]:
    Handler.heard = []
    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


class TestHttpClient:
    def test_request_with_a_traceparent_has_a_flow(self, port: int) -> None:
        with record() as recorded:
            connection = TracedHTTPConnection("127.0.0.1", port)
            connection.request("GET", "/a", headers={"traceparent": PARENT})
            assert connection.getresponse().read() == b"ok"
            connection.close()
        assert arrows(recorded.events, "GET /a") == [CALL]
        assert "x-stretto-flow" not in Handler.heard[0]

    def test_request_with_an_added_flow_header_has_a_flow(self, port: int) -> None:
        with record() as recorded:
            connection = TracedHTTPConnection("127.0.0.1", port, add_header=True)
            for _ in range(2):
                connection.request("GET", "/b")
                assert connection.getresponse().read() == b"ok"
            connection.close()
        assert arrows(recorded.events, "GET /b") == [CALL] * 2
        assert len({heard["x-stretto-flow"] for heard in Handler.heard}) == 2

    def test_request_without_a_header_has_no_flow(self, port: int) -> None:
        with record() as recorded:
            connection = TracedHTTPConnection("127.0.0.1", port)
            connection.request("GET", "/c")
            assert connection.getresponse().read() == b"ok"
            connection.close()
        assert not any(event.flows or event.terminating_flows for event in recorded.events)
        assert flows.stats() == {"no header": 4}

    def test_slices_of_unanswered_requests_end(self, port: int) -> None:
        with record() as recorded:
            connection = TracedHTTPConnection("127.0.0.1", port, timeout=30)
            connection.putrequest("GET", "/d")
            connection.endheaders()
            connection.close()
            refused = TracedHTTPConnection("127.0.0.1", 1)
            with pytest.raises(OSError, match="refused"):
                refused.request("GET", "/e")
        # The server may still be at work.
        ours = [e for e in recorded.events if e.track == recorded.events[0].track]
        assert [e.kind for e in ours] == [BEGIN, END] * 2

    def test_unfinished_request_leaves_no_slice_open(self, port: int) -> None:
        with record() as recorded:
            forgotten = TracedHTTPConnection("127.0.0.1", port, add_header=True)
            forgotten.request("GET", "/f")
            http.instant("after", role="none")
        ours = [e for e in recorded.events if e.track == recorded.events[0].track]
        assert [e.kind for e in ours] == [BEGIN, END, INSTANT]
        forgotten.close()

    def test_early_getresponse_raises_and_does_not_break_flows(self, port: int) -> None:
        with record() as recorded:
            connection = TracedHTTPConnection("127.0.0.1", port, add_header=True, timeout=30)
            connection.request("GET", "/h")
            first = connection.getresponse()
            Handler.may_answer_late.clear()
            connection.request("GET", "/late")
            with pytest.raises(ResponseNotReady):
                connection.getresponse()
            # The server sends the second response only after this read. The first response's read
            # buffer could otherwise take bytes of the second response.
            assert first.read() == b"ok"
            Handler.may_answer_late.set()
            assert connection.getresponse().read() == b"ok"
            connection.close()
        assert arrows(recorded.events, "GET /h") == [CALL]
        assert arrows(recorded.events, "GET /late") == [CALL]

    def test_request_refused_while_another_is_pending_does_not_break_flows(self, port: int) -> None:
        with record() as recorded:
            connection = TracedHTTPConnection("127.0.0.1", port, add_header=True)
            connection.request("GET", "/g")
            with pytest.raises(CannotSendRequest):
                connection.request("GET", "/h")
            assert connection.getresponse().read() == b"ok"
            connection.close()
        assert arrows(recorded.events, "GET /g") == [CALL]
        waits = [e for e in recorded.events if e.name == "getresponse"]
        assert [e.args["method"] for e in waits] == ["GET /g"]


class TestHttpCall:
    """`http_call` traces requests of `urllib`, which Stretto doesn't wrap."""

    def get(self, port: int, path: str, headers: dict[str, str], *, add_header: bool) -> bytes:
        url = f"http://127.0.0.1:{port}{path}?secret=1"
        with (
            http_call("GET", url, headers, add_header=add_header),
            urlopen(Request(url, headers=headers), timeout=30) as response,
        ):
            return bytes(response.read())

    def test_call_with_a_traceparent_has_a_flow(self, port: int) -> None:
        headers = {"Traceparent": PARENT}
        with record() as recorded:
            assert self.get(port, "/a", headers, add_header=True) == b"ok"
        assert [name.lower() for name in headers] == ["traceparent"]
        client = [e for e in recorded.events if e.kind != END and e.args["role"] == "send"]
        assert client[0].name == "GET /a"
        assert (
            len({(e.flows + e.terminating_flows)[0] for e in recorded.events if e.kind != END}) == 1
        )

    def test_concurrent_calls_with_an_added_flow_header_have_flows(self, port: int) -> None:
        async def main() -> None:
            async def one(number: int) -> None:
                headers: dict[str, str] = {}
                with http_call("GET", f"/{number}", headers, add_header=True):
                    url = f"http://127.0.0.1:{port}/{number}"
                    got = await asyncio.to_thread(urlopen, Request(url, headers=headers))
                    with got:
                        assert got.read() == b"ok"

            await asyncio.gather(*(one(number) for number in range(5)))

        with record() as recorded:
            asyncio.run(main())
        for number in range(5):
            assert arrows(recorded.events, f"GET /{number}") == [CALL]

    def test_no_header_is_added_without_a_session(self, port: int) -> None:
        headers: dict[str, str] = {}
        assert self.get(port, "/b", headers, add_header=True) == b"ok"
        assert headers == {}

    def test_failed_call_has_no_reply_event(self) -> None:
        with record() as recorded, pytest.raises(OSError, match="refused"):
            self.get(1, "", {}, add_header=True)
        assert recorded.kinds == "BE"
        assert recorded.events[0].name == "GET /"


def test_asgi_requests_are_slices_with_flows() -> None:
    async def app(scope: Any, _receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"hi"})
        else:
            await send({"type": scope["type"]})

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message["type"])

    async def receive() -> Any:
        raise AssertionError

    traced = asgi.FlowMiddleware(app)
    scope = {"type": "http", "method": "GET", "path": "/x"}
    headers = [(b"Traceparent", PARENT.encode())]
    with record() as recorded:
        asyncio.run(traced({**scope, "headers": headers}, receive, send))
        asyncio.run(traced({"type": "lifespan"}, receive, send))
    assert sent == ["http.response.start", "http.response.body", "lifespan"]
    assert arrows(recorded.events, "GET /x") == [CALL[1:3]]


def test_interleaved_asgi_handlers_have_their_own_tracks() -> None:
    async def app(_scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def send(_message: Any) -> None:
        await asyncio.sleep(0)

    async def serve() -> None:
        gates = [asyncio.Event() for _ in range(3)]

        async def one(number: int) -> None:
            scope = {"type": "http", "method": "GET", "path": f"/{number}", "headers": []}
            await asgi.FlowMiddleware(app)(scope, gates[number].wait, send)

        tasks = [asyncio.create_task(one(number)) for number in range(3)]
        await asyncio.sleep(0)
        # The handlers end in the order of their starts, so their slices overlap.
        for gate in gates:
            gate.set()
            await asyncio.sleep(0)
        await asyncio.gather(*tasks)

    with record() as recorded:
        asyncio.run(serve())
    assert recorded.kinds.startswith("BBB")
    tracks = {event.track for event in recorded.events}
    assert len(tracks) == 3
    for track in tracks:
        kinds = "".join("?BEI"[e.kind] for e in recorded.events if e.track == track)
        assert kinds == "BIE"


class TestWsgiMiddleware:
    """The WSGI middleware passes response bodies to the server and records events."""

    @staticmethod
    def serve(app: Any, body_to: Any = list, **extra: Any) -> tuple[list[Event], Any]:
        environ: WSGIEnvironment = {"HTTP_TRACEPARENT": PARENT, "PATH_INFO": "/y", **extra}
        setup_testing_defaults(environ)
        with record() as recorded:
            body = wsgi.FlowMiddleware(app)(environ, start_response)
            got = body_to(body)
            if hasattr(body, "close"):
                body.close()
        return recorded.events, got

    def test_response_body_that_is_a_list_is_returned_unchanged_and_recorded(self) -> None:
        body = [b"hi"]
        events, got = self.serve(lambda *_: body, lambda body: body)
        assert got is body
        assert arrows(events, "GET /y") == [CALL[1:3]]
        assert [e.kind for e in events] == [BEGIN, INSTANT, END]

    def test_slice_of_a_crashing_application_ends(self) -> None:
        def app(_environ: WSGIEnvironment, _start_response: StartResponse) -> list[bytes]:
            raise ZeroDivisionError

        environ: WSGIEnvironment = {"HTTP_TRACEPARENT": PARENT, "PATH_INFO": "/y"}
        setup_testing_defaults(environ)
        with record() as recorded, pytest.raises(ZeroDivisionError):
            wsgi.FlowMiddleware(app)(environ, start_response)
        assert arrows(recorded.events, "GET /y") == [CALL[1:2]]
        assert recorded.kinds == "BE"

    def test_each_step_of_a_generator_body_is_a_slice_and_the_generator_is_closed(self) -> None:
        """The reply is recorded at the first piece of the body that isn't empty."""

        def app(_environ: WSGIEnvironment, _start_response: StartResponse) -> Iterator[bytes]:
            try:
                for piece in (b"", b"one", b"two"):
                    http.instant("work", named=flows.incoming() != 0)
                    yield piece
            finally:
                http.instant("work", named=flows.incoming() != 0)

        events, got = self.serve(app)
        assert got == [b"", b"one", b"two"]
        shown = [e.name if e.kind == BEGIN else e.args.get("role", e.name) for e in events]
        assert [name or "end" for name in shown] == [
            *("GET /y", "end"), *("body", "work", "end"), *("body", "work", "end"), "send",
            *("body", "work", "end"), *("body", "work", "end"), *("close", "end"),
        ]  # fmt: skip
        assert all(e.args["named"] for e in events if e.name == "work")
        assert arrows(events, "GET /y") == [CALL[1:3]]
        assert flows.incoming() == 0

    @pytest.mark.parametrize("taken", [0, 1])
    def test_response_body_closed_before_its_end_leaves_no_slice_open(self, taken: int) -> None:
        closed = []

        def app(_environ: WSGIEnvironment, _start_response: StartResponse) -> Iterator[bytes]:
            try:
                yield b"one"
                yield b"two"
            finally:
                closed.append(True)

        events, got = self.serve(app, lambda body: [next(iter(body)) for _ in range(taken)])
        assert got == [b"one"] * taken
        assert closed == [True] * taken
        assert [e.kind for e in events].count(BEGIN) == [e.kind for e in events].count(END)
        assert arrows(events, "GET /y") == [CALL[1 : 2 + taken]]

    def test_iterable_application_object_is_recorded(self) -> None:
        class App:
            def __init__(self, *_: object) -> None:
                pass

            def __iter__(self) -> Iterator[bytes]:
                yield b"piece"

        events, got = self.serve(App)
        assert got == [b"piece"]
        assert arrows(events, "GET /y") == [CALL[1:3]]

    def test_crashing_generator_leaves_no_slice_open(self) -> None:
        def app(_environ: WSGIEnvironment, _start_response: StartResponse) -> Iterator[bytes]:
            yield b"one"
            raise ZeroDivisionError

        def take(body: Iterable[bytes]) -> None:
            with pytest.raises(ZeroDivisionError):
                list(body)

        events, _ = self.serve(app, take)
        assert [e.kind for e in events].count(BEGIN) == [e.kind for e in events].count(END)

    def test_wsgi_file_wrapper_is_returned_unchanged(self) -> None:
        file = FileWrapper(io.BytesIO(b"data"))
        _, got = self.serve(lambda *_: file, lambda b: b, **{"wsgi.file_wrapper": FileWrapper})
        assert got is file


def start_response(*_: Any, **__: Any) -> Any:
    """Accept the status and headers, like a server."""
