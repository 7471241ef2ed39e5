"""`stretto record --system` works with Perfetto's service (v48.1) instead of Stretto's."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.oracle import Oracle
from tests.support.polling import wait_until
from tests.support.recorded import check_trace, names, record_command
from tests.support.reference_service import ReferenceService, missing
from tests.support.traced import Process, closing_all

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
    pytest.mark.xdist_group("reference"),
]

PROGRAM = """
import sys

def before(): pass
def after(): pass

before()
print("waits", flush=True)
sys.stdin.readline()
after()
"""


@pytest.mark.parametrize("options", [(), ("--stream",)])
def test_recording_and_snapshot_with_perfetto_service_have_the_events(
    tmp_path: Path, oracle: Callable[[bytes], Oracle], options: tuple[str, ...]
) -> None:
    producers, consumers = tmp_path / "producer.sock", tmp_path / "consumer.sock"
    environment = {
        **os.environ,
        "PERFETTO_PRODUCER_SOCK_NAME": str(producers),
        "PERFETTO_CONSUMER_SOCK_NAME": str(consumers),
    }
    trace, snapshot = tmp_path / "out.pftrace", tmp_path / "out.snapshot-1.pftrace"
    command = record_command(trace, "--system", *options, "-c", PROGRAM)
    with ReferenceService(producers, consumers), closing_all() as things:
        recorder = Process(*command, env=environment, stderr=subprocess.PIPE)
        things.append(recorder)
        assert recorder.line() == "waits\n"
        if not options:
            recorder.signal(signal.SIGUSR2)
            wait_until(snapshot.exists, "a snapshot")
            loaded = check_trace(oracle, snapshot.read_bytes(), complete=False)
            assert "before" in names(loaded)
            assert "after" not in names(loaded)
        recorder.write_line("")
        _, said = recorder.popen.communicate(timeout=60)
        assert recorder.popen.returncode == 0, said
    assert {"before", "after"} <= names(check_trace(oracle, trace.read_bytes()))
