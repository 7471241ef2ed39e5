"""The customers of the shop: threads that request page after page from a server."""

from __future__ import annotations

import http.client
import itertools
import socket
import threading
import time

PAGES = ("/apple/1", "/pear/5", "/plum/2")
VISIT = 20
"""The number of pages over one connection."""


class Connection(http.client.HTTPConnection):
    """An HTTP connection over a unix socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Load:
    """A number of customers, active during the `with` block."""

    def __init__(self, path, customers=4):
        self.answers = self.failures = 0
        self._path = path
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._shop) for _ in range(customers)]

    def rate(self, seconds):
        """Counts the answers during the next `seconds`; returns their number per second."""
        before, begin = self.answers, time.monotonic()
        time.sleep(seconds)
        return (self.answers - before) / (time.monotonic() - begin)

    def _shop(self):
        connection = Connection(self._path)
        for number in itertools.count():
            if self._ended.is_set():
                break
            if number % VISIT == 0:
                connection.close()  # the next request opens a new connection
            try:
                connection.request("GET", PAGES[number % len(PAGES)])
                answer = connection.getresponse()
                answer.read()
                good = answer.status == 200
            except OSError:
                connection.close()
                good = False
            with self._lock:
                self.answers += good
                self.failures += not good
        connection.close()

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        for thread in self._threads:
            thread.join()
