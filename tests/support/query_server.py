"""A server of the trace processor's protocol, on a thread of the test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

from stretto.analysis import TraceProcessor
from stretto.analysis.rpc.service import RpcService
from stretto.viewer.query_server import QueryServer, QuerySite


@contextmanager
def serving(trace: object = b"") -> Iterator[str]:
    """Serve a trace; the value is the address."""
    service = RpcService(TraceProcessor, trace, name="served", version="test")
    with QueryServer(0, {os.getuid()}) as server:
        site = QuerySite(service.answer, server.port)
        thread = Thread(target=server.serve, args=[site])
        thread.start()
        try:
            yield f"127.0.0.1:{server.port}"
        finally:
            server.shutdown()
            thread.join()
            service.close()
