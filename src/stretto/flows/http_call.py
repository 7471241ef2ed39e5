"""A flow around one request of any HTTP client: requests, httpx, aiohttp, urllib, urllib3, ...

    headers = {"Accept": "text/html"}
    with http_call("GET", url, headers, add_header=True):
        response = requests.get(url, headers=headers)

    with http_call("GET", url, headers, add_header=True):
        async with session.get(url, headers=headers) as response: ...

The block is the call. If it ends without an exception, the reply has been received.

The flow's id is made from the `traceparent` in `headers`. If there is none and `add_header=True`,
the header `x-stretto-flow` is added to `headers`, and the id is made from it.

An instrumented client adds its own `traceparent` only inside the block. This `traceparent` can't be
used here. With such a client, put the `traceparent` into `headers` yourself, or use `add_header`:
the server prefers `x-stretto-flow`.
"""

from __future__ import annotations

from contextlib import contextmanager
from urllib.parse import urlsplit

from stretto.base import rpc_hooks
from stretto.flows.exchange import FLOW_HEADER, Exchange, key_of, new_flow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, MutableMapping


@contextmanager
def http_call(
    method: str,
    url: str,
    headers: MutableMapping[str, str],
    *,
    add_header: bool = False,
    category: str = "http",
) -> Iterator[None]:
    """Trace the request that the block sends.

    Args:
        method: The HTTP method, like `GET`.
        url: The URL or its path; the query isn't recorded.
        headers: The headers of the request; a header may be added.
        add_header: Whether to add `x-stretto-flow` to requests without a `traceparent`.
        category: The category of the request.
    """
    if not rpc_hooks.switch(category).enabled:
        yield
        return
    key = key_of({name.lower(): value for name, value in headers.items()})
    if not key and add_header:
        headers[FLOW_HEADER], key = new_flow()
    name = f"{method} {urlsplit(url).path or '/'}"
    with Exchange(
        category=category, service="http", method=name, key=key, is_server=False
    ) as exchange:
        yield
        exchange.reply()
