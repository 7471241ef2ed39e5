"""Measures how fast `stretto trace` and `perfetto` read a long trace; for bench/service.py."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _producer import CATEGORY, FLUSHED
from _services import Consumer, Producers, Service, config, innermost, v56_command

MEGABYTES = 500
PRODUCERS = 4
RATE_MB = 25.0
BUFFER_KB = 640 * 1024
SHM_KB, PAGE_KB = 4096, 32


def measure_reading(command: str, kind: str) -> float:
    """Return how fast a command reads the trace, in MB/s, after a signal has ended the session.

    Args:
        command: The command: `stretto` or `perfetto`.
        kind: The kind of service, as for `Service`.
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        Service(kind, folder) as service,
        Producers(service, PRODUCERS) as producers,
    ):
        consumer = Consumer(service)
        names = consumer.wait_for_producers(FLUSHED, PRODUCERS)
        wanted = config(CATEGORY, FLUSHED, names, SHM_KB, PAGE_KB)
        wanted.buffers[0].size_kb = BUFFER_KB
        Path(folder, "config").write_bytes(wanted.encode())
        process = subprocess.Popen(
            words(command, folder), env=service.environment, stderr=subprocess.DEVNULL
        )
        while not consumer.ask(consumer.endpoint.query_service_state).num_sessions_started:
            consumer.sleep(0.01)
        consumer.sleep(0.5)  # the producers begin to write
        producers.begin(RATE_MB, MEGABYTES / RATE_MB / PRODUCERS)
        producers.end()
        begin = time.perf_counter()
        os.kill(innermost(process.pid), signal.SIGINT)
        process.wait()
        elapsed = time.perf_counter() - begin
        return Path(folder, "trace").stat().st_size / 1e6 / elapsed


def words(command: str, folder: str) -> list[str]:
    arguments = ["-c", f"{folder}/config", "-o", f"{folder}/trace"]
    if command == "perfetto":
        return v56_command(folder, "perfetto", *arguments)
    return [sys.executable, "-m", "stretto", "trace", *arguments]
