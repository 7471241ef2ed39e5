from __future__ import annotations

from email.message import Message

import pytest

from stretto.base.errors import ConfigError
from stretto.viewer.access import PUBLIC_UI, Access, check_origin, origin_of
from stretto.viewer.response import HttpError

PORT = 8037


def request(host: str | None = "127.0.0.1:8037", origin: str | None = PUBLIC_UI) -> Message:
    fields = Message()
    for name, value in (("Host", host), ("Origin", origin)):
        if value is not None:
            fields[name] = value
    return fields


@pytest.fixture
def access() -> Access:
    return Access(PORT, [PUBLIC_UI, "http://localhost:10000"])


@pytest.mark.parametrize("host", ["127.0.0.1:8037", "localhost:8037", "LOCALHOST:8037"])
@pytest.mark.parametrize("origin", [PUBLIC_UI, "http://localhost:10000"])
def test_page_of_the_ui_is_allowed(access: Access, host: str, origin: str) -> None:
    assert access.check(request(host, origin)) == origin


@pytest.mark.parametrize(
    "host",
    [None, "", "127.0.0.1", "127.0.0.1:80", "evil.example:8037", "127.0.0.1.evil.example:8037",
     "127.0.0.1:8037.evil.example", "0.0.0.0:8037", "[::1]:8037"],
)  # fmt: skip
def test_request_for_another_host_is_refused(access: Access, host: str | None) -> None:
    with pytest.raises(HttpError) as caught:
        access.check(request(host))
    assert caught.value.status == 403


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", "", "http://ui.perfetto.dev", "https://ui.perfetto.dev:8443",
     "https://ui.perfetto.dev.evil.example", "https://evil.example/https://ui.perfetto.dev",
     "http://127.0.0.1:8037"],
)  # fmt: skip
def test_page_of_another_origin_is_refused(access: Access, origin: str) -> None:
    with pytest.raises(HttpError, match="may not connect") as caught:
        access.check(request(origin=origin))
    assert caught.value.status == 403


@pytest.mark.parametrize("name", ["Host", "Origin"])
def test_repeated_header_field_is_refused(access: Access, name: str) -> None:
    twice = request()
    twice[name] = twice[name]
    with pytest.raises(HttpError, match=f"several fields {name}") as caught:
        access.check(twice)
    assert caught.value.status == 400


def test_request_without_origin_is_refused_if_one_is_required(access: Access) -> None:
    assert access.check(request(origin=None)) is None
    with pytest.raises(HttpError) as caught:
        access.check(request(origin=None), origin_needed=True)
    assert caught.value.status == 403


def test_pages_of_the_server_itself_are_allowed_if_the_server_has_the_ui() -> None:
    access = Access(9001, (), own_pages=True)
    for own in ("http://127.0.0.1:9001", "http://localhost:9001"):
        assert access.check(request("127.0.0.1:9001", own)) == own
    with pytest.raises(HttpError):
        access.check(request("127.0.0.1:9001", PUBLIC_UI))


def test_default_port_may_be_omitted() -> None:
    assert Access(80, (), own_pages=True).check(request("localhost", "http://localhost"))


@pytest.mark.parametrize(
    ("url", "origin"),
    [("https://UI.perfetto.dev/", PUBLIC_UI), ("http://h:1/a/b?c#d", "http://h:1")],
)
def test_origin_is_extracted_from_an_address(url: str, origin: str) -> None:
    assert origin_of(url) == origin


@pytest.mark.parametrize("url", ["", "ui.perfetto.dev", "ftp://x", "https://", "http://a@b", "*"])
def test_text_without_an_origin_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="no address"):
        origin_of(url)


def test_origin_with_a_path_is_refused() -> None:
    assert check_origin("http://HOST:1") == "http://host:1"
    with pytest.raises(ConfigError, match="no origin"):
        check_origin("http://host:1/")
