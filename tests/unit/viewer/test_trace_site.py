from __future__ import annotations

import os
from collections.abc import Iterator
from email.message import Message
from pathlib import Path
from urllib.parse import unquote

import pytest

from stretto.base.errors import TransportError
from stretto.viewer.access import PUBLIC_UI, SOURCE_HOST, Access
from stretto.viewer.first_view import FirstView
from stretto.viewer.response import FileBody, HttpError, Response
from stretto.viewer.trace_site import TraceFile, TraceSite, trace_url, ui_url
from stretto.viewer.ui_files import UiFiles

TRACE = b"\x0a\x03abc"


def request(path: str, method: str = "GET", **fields: str) -> tuple[str, str, Message]:
    message = Message()
    message["Host"] = "127.0.0.1:9001"
    for name, value in fields.items():
        message[name.replace("_", "-")] = value
    return method, path, message


def content(response: Response) -> bytes:
    if isinstance(response.body, bytes):
        return response.body
    try:
        return b"".join(response.body.blocks())
    finally:
        response.body.close()


@pytest.fixture
def trace(tmp_path: Path) -> Iterator[TraceFile]:
    path = tmp_path / "my trace.pftrace"
    path.write_bytes(TRACE)
    trace = TraceFile(str(path))
    yield trace
    trace.close()


@pytest.fixture
def fetched() -> list[str]:
    return []


@pytest.fixture
def site(trace: TraceFile, fetched: list[str]) -> TraceSite:
    return TraceSite(trace, Access(9001, [PUBLIC_UI]), None, lambda: fetched.append("fetched"))


@pytest.fixture
def ui(tmp_path: Path) -> UiFiles:
    folder = tmp_path / "ui"
    (folder / "v1").mkdir(parents=True)
    (folder / "index.html").write_text("<html>")
    (folder / "v1" / "app.wasm").write_bytes(b"\0asm")
    (tmp_path / "secret").write_text("secret")
    return UiFiles(folder)


class TestServedTrace:
    def test_page_of_the_ui_may_fetch_the_trace(self, site: TraceSite, fetched: list[str]) -> None:
        response = site.answer(*request(site.path, origin=PUBLIC_UI))
        fields = dict(response.fields)
        assert fields["Access-Control-Allow-Origin"] == PUBLIC_UI
        assert fields["Cache-Control"] == "no-store"
        assert content(response) == TRACE
        assert response.on_delivered is not None
        response.on_delivered()
        assert fetched == ["fetched"]

    def test_page_of_another_origin_is_refused(self, site: TraceSite) -> None:
        with pytest.raises(HttpError, match="may not connect"):
            site.answer(*request(site.path, origin="https://evil.example"))

    def test_path_without_the_secret_is_not_found(self, site: TraceSite, trace: TraceFile) -> None:
        other = TraceSite(trace, Access(9001, [PUBLIC_UI]), None, lambda: None)
        assert len(site.path) > len("/my trace.pftrace") + 20
        for path in ("/", "/my trace.pftrace", site.path[:-1], site.path + "x", other.path, "/é"):
            with pytest.raises(HttpError) as caught:
                site.answer(*request(path))
            assert caught.value.status == 404

    def test_later_file_of_the_same_name_is_not_served(
        self, site: TraceSite, tmp_path: Path
    ) -> None:
        os.rename(tmp_path / "my trace.pftrace", tmp_path / "moved")
        (tmp_path / "my trace.pftrace").write_bytes(b"another")
        assert content(site.answer(*request(site.path))) == TRACE

    def test_growing_trace_is_served_with_its_current_content(
        self, site: TraceSite, tmp_path: Path
    ) -> None:
        with open(tmp_path / "my trace.pftrace", "ab") as file:
            file.write(b"more")
        assert content(site.answer(*request(site.path))) == TRACE + b"more"

    def test_response_to_a_preflight_request_allows_the_fetch(self, site: TraceSite) -> None:
        response = site.answer(
            *request(
                site.path,
                "OPTIONS",
                origin=PUBLIC_UI,
                access_control_request_private_network="true",
            )
        )
        fields = dict(response.fields)
        assert response.status == 204
        assert response.on_delivered is None
        assert fields["Access-Control-Allow-Origin"] == PUBLIC_UI
        assert fields["Access-Control-Allow-Private-Network"] == "true"
        assert "GET" in fields["Access-Control-Allow-Methods"]


class TestTraceFile:
    def test_file_that_is_no_trace_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "empty").touch()
        os.mkfifo(tmp_path / "fifo")
        for name, why in [
            ("absent", "No such file"), ("empty", "is empty"), ("fifo", "is no file"),
            (".", "is no file"),
        ]:  # fmt: skip
            with pytest.raises(TransportError, match=why):
                TraceFile(str(tmp_path / name))

    def test_trace_with_a_file_name_that_is_not_utf8_can_be_fetched(self, tmp_path: Path) -> None:
        path = os.fsencode(tmp_path) + b"/\xff.pftrace"
        with open(path, "wb") as file:
            file.write(TRACE)
        trace = TraceFile(os.fsdecode(path))
        site = TraceSite(trace, Access(9001, [PUBLIC_UI]), None, lambda: None)
        assert content(site.answer(*request(unquote(trace_url(1, site.path)[18:])))) == TRACE
        trace.close()


class TestUiPages:
    @pytest.fixture
    def site(self, trace: TraceFile, ui: UiFiles) -> TraceSite:
        return TraceSite(trace, Access(9001, (), own_pages=True), ui, lambda: None)

    @pytest.mark.parametrize(
        ("path", "content_type", "body"),
        [
            ("/", "text/html; charset=utf-8", b"<html>"),
            ("/index.html", "text/html; charset=utf-8", b"<html>"),
            ("/v1/app.wasm", "application/wasm", b"\0asm"),
        ],
    )
    def test_files_of_the_ui_have_their_media_types(
        self, site: TraceSite, path: str, content_type: str, body: bytes
    ) -> None:
        response = site.answer(*request(path))
        assert dict(response.fields)["Content-Type"] == content_type
        assert content(response) == body
        assert response.on_delivered is None

    @pytest.mark.parametrize("path", ["/v1", "/v1/", "/../secret", "/v1/../../secret", "//", "/x"])
    def test_path_outside_the_folder_is_not_found(self, site: TraceSite, path: str) -> None:
        with pytest.raises(HttpError) as caught:
            site.answer(*request(path))
        assert caught.value.status == 404

    def test_live_reload_request_gets_an_empty_response(self, site: TraceSite) -> None:
        # For any status except 204, the browser repeats the request or shows an error.
        response = site.answer(*request("/live_reload"))
        assert (response.status, response.fields, response.body) == (204, (), b"")

    def test_file_that_was_removed_is_an_error(self, site: TraceSite, tmp_path: Path) -> None:
        (tmp_path / "ui" / "index.html").unlink()
        with pytest.raises(HttpError) as caught:
            site.answer(*request("/"))
        assert caught.value.status == 500

    def test_trace_is_served_beside_the_ui(self, site: TraceSite) -> None:
        assert content(site.answer(*request(site.path))) == TRACE


class TestSources:
    def test_sources_are_served_at_the_address_that_the_ui_derives(self, trace: TraceFile) -> None:
        site = TraceSite(trace, Access(9001, [PUBLIC_UI]), None, lambda: None, sources=True)
        assert site.path.endswith("/my trace.pftrace-localtrace")
        assert content(site.answer(*request(site.path))) == TRACE
        derived = site.path.replace("localtrace", "file_info")
        assert content(site.answer(*request(derived))) == b'{"functions": {}, "files": {}}'

    def test_sources_are_not_served_without_the_option(self, trace: TraceFile) -> None:
        site = TraceSite(trace, Access(9001, [PUBLIC_UI]), None, lambda: None)
        with pytest.raises(HttpError) as caught:
            site.answer(*request(f"{site.path}-file_info"))
        assert caught.value.status == 404


class TestUiAddresses:
    def test_ui_address_contains_startup_commands(self) -> None:
        view = FirstView('[{"id":"x & y"}]', (17, 4711))
        url = ui_url(PUBLIC_UI, trace_url(9001, "/secret/a.pftrace"), view)
        _, *parameters = url.split("&")
        assert parameters[:2] == ["visStart=17", "visEnd=4711"]
        name, _, commands = parameters[2].partition("=")
        assert (name, unquote(commands)) == ("startupCommands", view.commands)
        assert ui_url(PUBLIC_UI, "t", FirstView()).endswith("#!/?url=t")

    def test_ui_address_contains_the_trace_address(self) -> None:
        address = trace_url(9001, "/secret/my trace & more.pftrace")
        assert address == "http://127.0.0.1:9001/secret/my trace & more.pftrace"
        url = ui_url(PUBLIC_UI + "/", address)
        start, _, argument = url.partition("#!/?url=")
        assert start == PUBLIC_UI + "/"
        assert not set(argument) & set(" &")
        assert unquote(argument) == address

    def test_address_of_a_trace_with_sources_has_another_host_name(self) -> None:
        # The UI opens traces of the hosts 127.0.0.1 and localhost as files, without their sources.
        assert trace_url(9, "/s/a", SOURCE_HOST) == "http://stretto.localhost:9/s/a"

    def test_characters_that_browsers_change_are_escaped_in_the_path(self) -> None:
        address = trace_url(9001, "/s/50% a?b#c\\d\n ")
        assert address == "http://127.0.0.1:9001/s/50%25 a%3Fb%23c%5Cd%0A%20"


def test_file_body_ends_at_its_initial_size(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    body = FileBody(os.open(path, os.O_RDONLY), 4)
    assert b"".join(body.blocks()) == b"0123"
    body.close()
