"""The in-process backend: a tracing service inside the program, on a thread of its own.

    program's threads --call--> [service thread: task runner, TracingService, client]
    program's threads --events--> shared memory --> trace buffer        (native, no thread)

The thread only answers calls, timers and file writes; trace data never waits for it. It is
started with the first call, stopped around forks, and not one of `threading`'s: the program's
own list of threads stays as it was. All signals are blocked in it.
"""

from __future__ import annotations

import os
from _thread import allocate_lock, get_ident, get_native_id, start_new_thread
from time import monotonic, sleep
from typing import TYPE_CHECKING, TypeVar

from stretto import _native
from stretto.base.clock import SystemClock
from stretto.base.selector_task_runner import SelectorTaskRunner
from stretto.client import fork
from stretto.client.producer_connection import call_safely
from stretto.service.tracing_service import TracingService

if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.client.producer_connection import ProducerConnection
    from stretto.ports.endpoints import Consumer, ConsumerEndpoint

T = TypeVar("T")

SHM_SIZE = 8 << 20
RESTART_PERIOD_S = 0.1
END_TIMEOUT_S = 1.0
PAGE_SIZE = 16 << 10  # holds the 1,022 packets a chunk may have, at 16 bytes each
FILE_STEP_BYTES = 16 << 20
"""Each step may wait 5 ms for the GIL, while a tight loop writes 2 MB."""


class _Result:
    """What a call on the service thread gave."""

    __slots__ = ("done", "error", "value")

    def __init__(self) -> None:
        self.done = allocate_lock()
        self.done.acquire()
        self.value: object = None
        self.error: BaseException | None = None

    def run(self, function: Callable[[], object]) -> None:
        try:
            self.value = function()
        except BaseException as error:  # noqa: BLE001  # raised again by the caller
            self.error = error
        finally:
            self.done.release()


class InProcessBackend:
    """A service, its task runner and the thread that runs it."""

    def __init__(self) -> None:
        self._runner = SelectorTaskRunner()
        self._service = TracingService(
            self._runner,
            SystemClock(_native.read_tsc),
            default_shm_size=SHM_SIZE,
            default_page_size=PAGE_SIZE,
            file_step_bytes=FILE_STEP_BYTES,
        )
        self._start_lock = allocate_lock()
        self._thread: int | None = None
        self._native_id = 0
        self._stopped = allocate_lock()
        fork.before.append(self._stop_thread)
        fork.after_in_parent.append(self._start_thread)
        self._start_thread()

    # --- client.backend.Backend ---

    def connect_producer(self, producer: ProducerConnection) -> None:
        def connect() -> None:
            endpoint = self._service.connect_producer(
                producer,
                uid=os.getuid(),
                pid=os.getpid(),
                name="stretto",
                in_process=True,
                page_size_hint=PAGE_SIZE,
                shm_size_hint=SHM_SIZE,
            )
            producer.attach(endpoint)

        self.call(connect)

    def connect_consumer(self, consumer: Consumer) -> ConsumerEndpoint:
        return self._service.connect_consumer(consumer, uid=os.getuid())

    def call(self, function: Callable[[], T]) -> T:
        if get_ident() == self._thread:
            return function()
        self._start_thread()
        result = _Result()
        self._runner.post(lambda: result.run(function))
        # A fork may stop the thread meanwhile, and whoever has to start it again may be us.
        while not result.done.acquire(timeout=RESTART_PERIOD_S):
            self._start_thread()
        if result.error is not None:
            raise result.error
        return result.value  # type: ignore[return-value]  # what function returned

    def post(self, function: Callable[[], object]) -> None:
        self._runner.post(function)

    def after_fork_in_child(self) -> None:
        fork.before.remove(self._stop_thread)
        fork.after_in_parent.remove(self._start_thread)
        self._runner.close()

    # --- the thread ---

    def _start_thread(self) -> None:
        with self._start_lock:
            if self._thread is None:
                self._stopped.acquire()
                self._thread = _start_thread_without_signals(self._run)

    def _run(self) -> None:
        self._native_id = get_native_id()
        try:
            while not self._run_once():
                pass
        finally:
            self._stopped.release()

    def _run_once(self) -> bool:
        """True when the runner was told to quit; what a task raises is reported and passes."""
        quits: list[bool] = []

        def run() -> None:
            self._runner.run()
            quits.append(True)

        call_safely(run)
        return bool(quits)

    def _stop_thread(self) -> None:
        if self._thread is None or get_ident() == self._thread:
            return
        self._runner.quit()
        with self._stopped:
            self._thread = None
        _wait_until_gone(self._native_id)


def _wait_until_gone(native_id: int) -> None:
    """CPython counts the system's threads at a fork: one that is about to end still counts."""
    deadline = monotonic() + END_TIMEOUT_S
    while os.path.exists(f"/proc/self/task/{native_id}") and monotonic() < deadline:
        sleep(0.0001)


def _start_thread_without_signals(function: Callable[[], None]) -> int:
    """Start a thread that no signal is delivered to: a signal has to interrupt the program."""
    import signal

    everything = signal.valid_signals()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, everything)
    try:
        return start_new_thread(function, ())
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
