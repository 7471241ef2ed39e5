"""A server under load, recorded from outside while it runs.

    python examples/always_on/serve.py gunicorn
    python examples/always_on/serve.py uvicorn --seconds 5 --folder /tmp/traces

Starts the tracing service, shop.py in two workers, and customers (load.py). Then there are four
phases, without a restart of the server: no recording; `stretto trace` records the shop's slices;
`stretto trace` records every function call; no recording. The program prints the commands to type,
and the number of answers per second in each phase. Open the traces in the Perfetto UI: `stretto
view functions.pftrace`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from load import Load

HERE = Path(__file__).parent
WORKERS = 2
DEADLINE_S = 60

SERVERS = {
    "gunicorn": "gunicorn --workers 2 --log-level error --bind unix:{} shop:wsgi",
    "uvicorn": "uvicorn --workers 2 --log-level error --lifespan off --uds {} shop:app",
}


@contextlib.contextmanager
def running(command, environment, end=signal.SIGTERM):
    """Runs a process during the block, and ends it with a signal."""
    print("$", command, flush=True)
    words = [sys.executable, "-m", *shlex.split(command)]
    process = subprocess.Popen(words, cwd=HERE, env=environment)
    try:
        yield
    finally:
        process.send_signal(end)
        try:
            status = process.wait(DEADLINE_S)
        finally:
            process.kill()
    if status:
        raise SystemExit(f"{words[2]} failed with status {status}")


def wait_until(condition, what):
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"waited in vain: {what}")
        time.sleep(0.05)


def query(environment):
    """Returns the state of the service: its producers and its sessions."""
    command = [sys.executable, "-m", "stretto", "trace", "--query"]
    done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    return done.stdout


def measure(what, load, seconds):
    print(f"  {what}: {load.rate(seconds):,.0f} answers a second", flush=True)


def record(kind, what, load, environment, options):
    """Starts `stretto trace` to record the server, and ends it with SIGINT after the phase."""
    config, trace = HERE / f"{kind}.pbtxt", options.folder / f"{kind}.pftrace"
    command = shlex.join(["stretto", "trace", "-c", str(config), "--txt", "-o", str(trace)])
    with running(command, environment, signal.SIGINT):
        wait_until(lambda: "(started: 1)" in query(environment), "a session")
        measure(what, load, options.seconds)


def serve(options, folder):
    """Runs the four phases; returns the number of requests without an answer."""
    environment = {
        **os.environ,
        "PERFETTO_PRODUCER_SOCK_NAME": f"{folder}/producer",
        "PERFETTO_CONSUMER_SOCK_NAME": f"{folder}/consumer",
    }
    address = f"{folder}/http"
    with (
        running("stretto traced", environment),
        running(SERVERS[options.server].format(address), environment),
    ):
        wait_until(lambda: query(environment).count("track_event ") >= WORKERS, "the workers")
        with Load(address) as load:
            wait_until(lambda: load.answers, "an answer")
            measure("no recording", load, options.seconds)
            record("slices", "the shop's slices", load, environment, options)
            record("functions", "every function call", load, environment, options)
            measure("no recording", load, options.seconds)
    return load.failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("server", choices=SERVERS)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each part")
    parser.add_argument("--folder", type=Path, default=Path.cwd(), help="for the traces")
    options = parser.parse_args()
    options.folder = options.folder.absolute()
    with tempfile.TemporaryDirectory() as folder:
        failures = serve(options, folder)
    print(f"requests without an answer: {failures}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
