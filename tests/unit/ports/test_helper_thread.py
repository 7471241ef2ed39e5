"""Helper threads are told from those of the program by their name in the kernel."""

from __future__ import annotations

from _thread import get_native_id
from pathlib import Path
from queue import Queue

from stretto.ports.helper_thread import start_helper_thread, wait_for_thread_exit


def test_thread_has_the_name_before_its_function_runs() -> None:
    found: Queue[tuple[int, str]] = Queue()

    def tell() -> None:
        found.put((get_native_id(), Path("/proc/thread-self/comm").read_text()))

    start_helper_thread(tell)
    native_id, name = found.get(timeout=10)
    assert name == "stretto-helper\n"
    wait_for_thread_exit(native_id)
