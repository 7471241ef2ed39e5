"""Which pages may talk to a server on 127.0.0.1: the checks of Host and Origin.

Any page of the web may send requests to 127.0.0.1 from the user's browser, and a page whose name
was made to resolve to 127.0.0.1 (DNS rebinding) may even read the answers, as its own.

Rules
- Host has to name this machine, with the server's port: a rebound page sends its own name.
- Origin, which browsers send and pages can't forge, has to be one of those meant, if it is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.base.errors import ConfigError
from stretto.viewer.http_request import HttpError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stretto.viewer.http_request import Request

PUBLIC_UI = "https://ui.perfetto.dev"
LOCAL_HOSTS = ("127.0.0.1", "localhost")


class Access:
    """The rules of one server.

    Args:
        port: Where it listens.
        origins: Pages that may ask: `https://ui.perfetto.dev`.
        own_pages: Pages that came from this server may, too.
    """

    __slots__ = ("_hosts", "_origins")

    def __init__(self, port: int, origins: Iterable[str], *, own_pages: bool = False) -> None:
        # Browsers leave the port away if it is the scheme's own.
        self._hosts = {f"{host}:{port}" for host in LOCAL_HOSTS}
        if port == 80:
            self._hosts.update(LOCAL_HOSTS)
        own = {f"http://{host}" for host in self._hosts} if own_pages else set()
        self._origins = {check_origin(origin) for origin in origins} | own

    def check(self, request: Request, *, origin_needed: bool = False) -> str | None:
        """The request's origin, which is one of those meant; None if it has none.

        Args:
            request: Any.
            origin_needed: Refuse requests without one.

        Raises:
            HttpError: It may not ask.
        """
        host = request.fields.get("host")
        if host is None or host.lower() not in self._hosts:
            raise HttpError(403, f"{host!r} is not this server's name: ask for 127.0.0.1")
        origin = request.fields.get("origin")
        if origin is None and origin_needed:
            raise HttpError(403, "only the Perfetto UI may connect, and nobody said to be it")
        if origin is not None and origin not in self._origins:
            meant = ", ".join(sorted(self._origins))
            raise HttpError(403, f"pages of {origin} may not connect, only those of {meant}")
        return origin


def check_origin(text: str) -> str:
    """An origin as browsers send it.

    Raises:
        ConfigError: It's none.
    """
    if origin_of(text) != text.lower():
        raise ConfigError(f"{text!r} is no origin: give one like http://localhost:10000")
    return text.lower()


def origin_of(url: str) -> str:
    """The origin of the pages below an address.

    Raises:
        ConfigError: It is none of the web.
    """
    scheme, separator, rest = url.lower().partition("://")
    host = rest.partition("/")[0]
    if scheme not in ("http", "https") or not separator or not host or set(host) & set("?#@ ,"):
        raise ConfigError(f"{url!r} is no address of the web: give one like {PUBLIC_UI}")
    return f"{scheme}://{host}"
