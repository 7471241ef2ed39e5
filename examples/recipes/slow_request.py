"""A slow request: its handler waits for a lock, for the GIL and for another service.

stretto record --waits --gil-waits examples/recipes/slow_request.py
"""

from __future__ import annotations

import http.client
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

REQUESTS = 3

stock = threading.Lock()
closing = threading.Event()


def ask_bank() -> bytes:
    """Asks another service, which answers after 60 ms."""
    ours, bank = socket.socketpair()
    with ours, bank:
        threading.Timer(0.06, bank.sendall, [b"paid"]).start()
        return ours.recv(16)


def price() -> int:
    """Computes: as any Python code, it needs the GIL."""
    return sum(number * number for number in range(200_000))


class Shop(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        with stock:
            total = price()
        paid = ask_bank()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"%d %s" % (total, paid))

    def log_message(self, *_: object) -> None:
        """Logs nothing."""


def take_stock() -> None:
    """Holds the lock longer than it has to."""
    while not closing.wait(0.01):
        with stock:
            time.sleep(0.08)


def report() -> None:
    """Computes all the time, on a thread: a process would not take the GIL from the handler."""
    while not closing.is_set():
        price()


def main() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Shop) as server:
        for work in (server.serve_forever, take_stock, report):
            threading.Thread(target=work, name=work.__name__).start()
        for _ in range(REQUESTS):
            client = http.client.HTTPConnection("127.0.0.1", server.server_port)
            client.request("GET", "/order")
            client.getresponse().read()
            client.close()
        closing.set()
        server.shutdown()


if __name__ == "__main__":
    main()
