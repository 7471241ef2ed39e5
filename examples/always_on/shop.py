"""A small shop with an HTTP interface. It is recorded while it runs: see serve.py.

    uvicorn shop:app
    gunicorn shop:wsgi

The only line for tracing is `stretto.connect()`. Each worker that loads this module is a producer
of its own.
"""

from __future__ import annotations

import asyncio
import time

import stretto

stretto.connect()

shop = stretto.Category("shop", description="What the shop does for its customers")

PRICES = {"apple": 30, "pear": 45, "plum": 20}
QUERY_S = 0.001
"""The time of a database query, in seconds."""


def discount(price: int, number: int) -> int:
    return price // 10 if number >= 3 else 0


def price_of(item: str, number: int) -> int:
    price = PRICES[item] * number
    return price - discount(price, number)


def page(path: str) -> tuple[int, bytes]:
    """Returns the status and the text of an address such as `/apple/3`."""
    with shop.slice("page", path=path):
        item, _, number = path.strip("/").partition("/")
        if item not in PRICES or not number.isdigit():
            return 404, b"There is no such thing.\n"
        return 200, f"{number} {item}: {price_of(item, int(number))}\n".encode()


async def app(scope, _receive, send):
    """The ASGI application."""
    with shop.slice("request"):
        await asyncio.sleep(QUERY_S)
        status, text = page(scope["path"])
    headers = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(text))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text})


def wsgi(environ, start_response):
    """The WSGI application."""
    with shop.slice("request"):
        time.sleep(QUERY_S)
        status, text = page(environ["PATH_INFO"])
    headers = [("Content-Type", "text/plain"), ("Content-Length", str(len(text)))]
    start_response("200 OK" if status == 200 else "404 Not Found", headers)
    return [text]
