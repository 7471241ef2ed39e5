"""Flows of HTTP clients that are built on `http.client`, such as `urllib`.

    connection = TracedHTTPConnection("localhost", 8000)
    connection.request("GET", "/", headers={"traceparent": ...})
    response = connection.getresponse()

The call's slice lasts only while the request is written, because the caller may do other work
before `getresponse`, or drop the connection. `getresponse` is a separate slice, in which the reply
is received. This second slice isn't a message, and has no `role`.

The flow's id is made from the request's `traceparent`. If there is none and `add_header=True`, the
header `x-stretto-flow` with 16 hexadecimal digits is added, and the id is made from it.

A `traceparent` identifies one request. If several requests have the same `traceparent`, arrows lead
from each of these requests to all of their handlers.
"""

from __future__ import annotations

from http.client import HTTPConnection

from stretto.base import rpc_hooks
from stretto.flows.exchange import FLOW_HEADER, TRACEPARENT, Exchange, key_of, new_flow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from http.client import HTTPResponse
    from typing import Any


class TracedHTTPConnection(HTTPConnection):
    """An HTTPConnection whose requests are flows.

    Args:
        add_header: Whether to add `x-stretto-flow` to requests without a `traceparent`.
        category: The category of the requests.
    """

    def __init__(
        self, *args: Any, add_header: bool = False, category: str = "http", **kwargs: Any
    ) -> None:
        self._flow_switch = rpc_hooks.switch(category)
        self._flow_category = category
        self._flow_adds_header = add_header
        self._flow_method = ""
        self._flow_headers: dict[str, str] = {}
        self._flow_exchange: Exchange | None = None
        super().__init__(*args, **kwargs)

    def putrequest(self, method: str, url: str, *args: Any, **kwargs: Any) -> None:
        """Begin a request, as the base class does, and store its method and path for the slice."""
        super().putrequest(method, url, *args, **kwargs)
        # Call super() first: if super() raises, the previous call stays current.
        self._flow_exchange = None
        self._flow_method = f"{method} {url.partition('?')[0]}"
        self._flow_headers = {}

    def putheader(self, header: str | bytes, *values: Any) -> None:
        """Add a header, as the base class does. Store it if a flow's key can be made from it."""
        super().putheader(header, *values)
        name = header.decode("latin-1") if isinstance(header, bytes) else header
        if name.lower() in (TRACEPARENT, FLOW_HEADER) and values:
            value = values[0]
            text = value.decode("latin-1") if isinstance(value, bytes) else str(value)
            self._flow_headers[name.lower()] = text

    def endheaders(self, *args: Any, **kwargs: Any) -> None:
        """Send the request, as the base class does, inside the slice of the request."""
        if not self._flow_switch.enabled:
            super().endheaders(*args, **kwargs)
            return
        key = key_of(self._flow_headers)
        if not key and self._flow_adds_header:
            text, key = new_flow()
            super().putheader(FLOW_HEADER, text)
        exchange = Exchange(
            category=self._flow_category,
            service="http",
            method=self._flow_method,
            key=key,
            is_server=False,
        )
        with exchange:
            super().endheaders(*args, **kwargs)
        self._flow_exchange = exchange

    def getresponse(self) -> HTTPResponse:
        """Wait for the response, as the base class does, and record its arrival."""
        # Call super() after this: super() may close the connection, which resets the exchange.
        exchange, self._flow_exchange = self._flow_exchange, None
        if exchange is None:
            return super().getresponse()
        with exchange.step("getresponse"):
            try:
                response = super().getresponse()
            except BaseException:
                self._flow_exchange = exchange  # The caller may call `getresponse` again.
                raise
            exchange.reply()
        return response

    def close(self) -> None:
        """Close the connection, as the base class does; no response can follow."""
        super().close()
        self._flow_exchange = None
