"""The in-process backend: a tracing service inside the program, on its own thread.

    program's threads --call--> [service thread: task runner, TracingService, client]
    program's threads --events--> shared memory --> trace buffer        (native, no thread)

The thread only handles calls and timers; short-lived threads write files. Trace data never waits
for any of these threads.
"""

from __future__ import annotations

import os

from stretto import _native
from stretto.backends.runner_thread import RunnerThread
from stretto.base.clock import SystemClock
from stretto.client import fork
from stretto.ports.producer_identity import ProducerIdentity
from stretto.ports.producer_memory import PAGE_SIZE, SHM_SIZE
from stretto.service.tracing_service import TracingService

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from stretto.client.producer_connection import ProducerConnection
    from stretto.ports.endpoints import Consumer, ConsumerEndpoint

    T = TypeVar("T")

FILE_STEP_BYTES = 16 << 20
"""The bytes written per step: a step may wait 5 ms for the GIL, while events fill 2 MB."""


class InProcessBackend:
    """A tracing service, and the thread that runs it."""

    def __init__(self) -> None:
        self._thread = RunnerThread()
        self._service = TracingService(
            self._thread.runner,
            SystemClock(_native.read_tsc),
            default_shm_size=SHM_SIZE,
            default_page_size=PAGE_SIZE,
            file_step_bytes=FILE_STEP_BYTES,
        )
        fork.before.append(self._service.file_threads.pause)
        fork.after_in_parent.append(self._service.file_threads.resume)

    # --- methods of client.backend.Backend and SessionBackend

    def connect_producer(self, producer: ProducerConnection) -> None:
        def connect() -> None:
            endpoint = self._service.connect_producer(
                producer,
                ProducerIdentity(
                    "stretto",
                    uid=os.getuid(),
                    pid=os.getpid(),
                    in_process=True,
                    page_size_hint=PAGE_SIZE,
                    shm_size_hint=SHM_SIZE,
                ),
            )
            producer.attach(endpoint)

        self.call(connect)

    def connect_consumer(self, consumer: Consumer) -> ConsumerEndpoint:
        return self._service.connect_consumer(consumer, uid=os.getuid())

    def prepare(self) -> None:
        """Do nothing: this process is a producer of the service already."""

    def call(self, function: Callable[[], T]) -> T:
        return self._thread.call(function)

    def post(self, function: Callable[[], object]) -> None:
        self._thread.runner.post(function)

    def after_fork_in_child(self) -> None:
        self._thread.abandon()
        fork.before.remove(self._service.file_threads.pause)
        fork.after_in_parent.remove(self._service.file_threads.resume)
