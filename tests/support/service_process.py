"""Runs a tracing service in a second process, controlled by a test.

    with ServiceProcess(folder / "producer.sock") as service:
        service.start("one", config)          a program at the socket records
        trace = service.stop("one")
        service.kill()

Run as a program, this module is the second process. It reads requests as lines of JSON from
stdin, and prints one line of JSON for each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

from stretto.base.clock import SystemClock
from stretto.base.selector_task_runner import SelectorTaskRunner
from stretto.base.unix_socket import UnixListener
from stretto.ports.consumer_ipc_service import ConsumerIPCService
from stretto.ports.producer_ipc_service import ProducerIPCService
from stretto.protos.config import DataSourceDescriptor, TraceConfig
from stretto.service.tracing_service import TracingService
from stretto.testing.mock_consumer import MockConsumer
from tests.support.polling import wait_until

ROOT = Path(__file__).parent.parent.parent
TIMEOUT_MS = 30_000


class ServiceProcess:
    """The process with the tracing service, as a test controls it.

    Args:
        address: Path of the service's producer socket.
        consumers: Path of the service's consumer socket; empty for none.
    """

    def __init__(self, address: Path | str, consumers: Path | str = "") -> None:
        command = [sys.executable, "-m", __name__, str(address), str(consumers)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)
        assert self._answer() == "listening"

    def start(self, session: str, config: TraceConfig) -> None:
        self._request("start", session, config.encode().hex())

    def stop(self, session: str) -> bytes:
        """End the session; return its trace."""
        return bytes.fromhex(self._request("stop", session))

    def producers(self) -> list[dict[str, Any]]:
        """Return name, pid and data sources of each producer."""
        answer: list[dict[str, Any]] = self._request("producers")
        return answer

    def categories(self) -> int:
        """Return the number of categories that the producers announce."""
        return int(self._request("count_categories"))

    def wait_for_producers(self, count: int) -> list[dict[str, Any]]:
        """Wait until the service has this number of producers with all their data sources."""
        found: list[dict[str, Any]] = []

        def complete() -> bool:
            found[:] = self.producers()
            return len(found) == count and all(producer["sources"] for producer in found)

        wait_until(complete, f"{count} producers")
        return found

    def kill(self) -> None:
        """Kill the process, as the kernel does when memory runs out."""
        self.process.kill()
        self.close()

    def close(self) -> None:
        process = self.process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
        process.wait()
        process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _request(self, *request: str) -> Any:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the service has died"
        return json.loads(line)


class _Server:
    """The code of the second process: the service, and a consumer for each session."""

    def __init__(self, address: str, consumers: str) -> None:
        self.runner = SelectorTaskRunner()
        self.service = TracingService(self.runner, SystemClock())
        self.host = ProducerIPCService(self.runner, self.service.connect_producer)
        self.host.listen(UnixListener(address))
        self.consumer_host = ConsumerIPCService(self.runner, self.service.connect_consumer)
        if consumers:
            self.consumer_host.listen(UnixListener(consumers))
        self.sessions: dict[str, MockConsumer] = {}
        self.requests = b""
        self.runner.watch(0, self.on_input)
        self.answer("listening")

    def answer(self, value: object) -> None:
        print(json.dumps(value), flush=True)

    def on_input(self) -> None:
        data = os.read(0, 1 << 20)
        if not data:
            self.runner.quit()
        *lines, self.requests = (self.requests + data).split(b"\n")
        for line in lines:
            verb, *arguments = json.loads(line)
            self.runner.post(lambda verb=verb, a=arguments: getattr(self, verb)(*a))

    def start(self, session: str, config: str) -> None:
        consumer = self.sessions[session] = MockConsumer(self.service)
        consumer.enable(TraceConfig.decode(bytes.fromhex(config)))
        self.answer("started")

    def stop(self, session: str) -> None:
        self.sessions[session].endpoint.disable_tracing()
        self.read_when_disabled(session)

    def read_when_disabled(self, session: str) -> None:
        consumer = self.sessions[session]
        if not consumer.disabled:
            self.runner.post_delayed(lambda: self.read_when_disabled(session), 1)
            return
        consumer.endpoint.read_buffers()
        self.answer_when_read(session)

    def answer_when_read(self, session: str) -> None:
        consumer = self.sessions[session]
        if not consumer.reads or consumer.reads[-1][1]:
            self.runner.post_delayed(lambda: self.answer_when_read(session), 1)
            return
        self.answer(self.sessions.pop(session).data.hex())
        consumer.endpoint.disconnect()

    def count_categories(self) -> None:
        descriptors = [
            DataSourceDescriptor.decode(source.descriptor).track_event_descriptor
            for source in self.service.data_sources
        ]
        self.answer(sum(len(each.available_categories) for each in descriptors if each))

    def producers(self) -> None:
        found = [
            {
                "name": producer.name,
                "pid": producer.identity.pid,
                "sources": sorted(
                    source.name
                    for source in self.service.data_sources
                    if source.producer is producer
                ),
            }
            for producer in self.service.producers.values()
        ]
        self.answer(found)


if __name__ == "__main__":
    server = _Server(*sys.argv[1:])
    server.runner.run()
    server.host.close()
    server.consumer_host.close()
