"""Checks of Host and Origin: which web pages may send requests to a server on 127.0.0.1.

Any web page may send requests to 127.0.0.1 from the user's browser. A page whose host name was
made to resolve to 127.0.0.1 (DNS rebinding) may even read the responses, as if they were its own.

Rules
- Host must be this machine with the server's port: a rebound page sends its own host name.
- Origin, if present, must be allowed. Browsers send it, and pages can't forge it.
- A request with several Host or Origin fields is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from stretto.base.errors import ConfigError
from stretto.viewer.response import HttpError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LOOPBACK = "127.0.0.1"
PUBLIC_UI = "https://ui.perfetto.dev"
SOURCE_HOST = "stretto.localhost"
"""A name that browsers resolve to 127.0.0.1. The UI opens traces of the other hosts as files, and
then doesn't fetch their sources."""
LOCAL_HOSTS = (LOOPBACK, "localhost", SOURCE_HOST)


class RequestFields(Protocol):
    """The header fields of a request, from `http.server` or `websockets`."""

    def get_all(self, name: str, /) -> Sequence[str] | None:
        """Returns the values of the header fields with this name; None or empty without any."""


class Access:
    """The checks of one server.

    Args:
        port: The port that the server listens on.
        origins: Origins of allowed pages, such as `https://ui.perfetto.dev`.
        own_pages: Whether pages from this server are allowed, too.
    """

    def __init__(self, port: int, origins: Iterable[str], *, own_pages: bool = False) -> None:
        # Browsers omit the default port of the scheme.
        self._hosts = {f"{host}:{port}" for host in LOCAL_HOSTS}
        if port == 80:
            self._hosts.update(LOCAL_HOSTS)
        own = {f"http://{host}" for host in self._hosts} if own_pages else set()
        self._origins = {check_origin(origin) for origin in origins} | own

    def check(self, fields: RequestFields, *, origin_needed: bool = False) -> str | None:
        """Returns the origin of an allowed request; None if the request has no origin.

        Args:
            fields: The request's header fields.
            origin_needed: Whether a request without an origin is refused.

        Raises:
            HttpError: The request is refused.
        """
        host = _single(fields, "Host")
        if host is None or host.lower() not in self._hosts:
            raise HttpError(403, f"{host!r} is not this server's name: ask for {LOOPBACK}")
        origin = _single(fields, "Origin")
        if origin is None and origin_needed:
            raise HttpError(403, "only the Perfetto UI may connect: the request has no Origin")
        if origin is not None and origin not in self._origins:
            allowed = ", ".join(sorted(self._origins))
            raise HttpError(403, f"pages of {origin} may not connect, only those of {allowed}")
        return origin


def _single(fields: RequestFields, name: str) -> str | None:
    """Returns the value of a field; None if it is absent.

    Raises:
        HttpError: The request has several such fields.
    """
    values = fields.get_all(name) or ()
    if len(values) > 1:
        raise HttpError(400, f"the request has several fields {name}")
    return values[0] if values else None


def check_origin(text: str) -> str:
    """Returns an origin in the form that browsers send.

    Raises:
        ConfigError: The text is not an origin.
    """
    if origin_of(text) != text.lower():
        raise ConfigError(f"{text!r} is no origin: give one like http://localhost:10000")
    return text.lower()


def origin_of(url: str) -> str:
    """Returns the origin of a web address.

    Raises:
        ConfigError: The text is not a web address.
    """
    scheme, separator, rest = url.lower().partition("://")
    host = rest.partition("/")[0]
    if scheme not in ("http", "https") or not separator or not host or set(host) & set("?#@ ,"):
        raise ConfigError(f"{url!r} is no address of the web: give one like {PUBLIC_UI}")
    return f"{scheme}://{host}"
