"""Measures a consumer's latency during attacks on the service; for bench/service.py."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from _services import Consumer, Service

ATTACKER = Path(__file__).parent / "_attacker.py"
ATTACKS = ("slow_pipe", "triggers", "registrations", "trigger_names", "regexes")
REQUESTS = 1000
PAUSE_S = 0.002
PATIENCE_S = 10.0
"""Limit of one request; after it no more requests are sent."""
LONGEST_S = 60.0
"""Limit of all requests together."""


def measure_answers(kind: str, attack: str) -> dict[str, float]:
    """Return the median and maximum latency of 1,000 requests, in ms."""
    with tempfile.TemporaryDirectory() as folder, Service(kind, folder) as service:
        bystander = Consumer(service)
        with subprocess.Popen(
            [sys.executable, str(ATTACKER), attack],
            env=service.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as attacker:
            assert attacker.stdin is not None
            assert attacker.stdout is not None
            if attacker.stdout.readline() != b"attacking\n":
                raise SystemExit(f"service: the attack {attack} did not begin")
            times = ask(bystander)
            attacker.stdin.close()
            attacker.kill()
    return {"median": median(times) * 1000, "max": max(times) * 1000}


def ask(bystander: Consumer) -> list[float]:
    times: list[float] = []
    while len(times) < REQUESTS and sum(times) < LONGEST_S:
        times.append(bystander.answer_s(PATIENCE_S))
        if times[-1] >= PATIENCE_S:
            break
        bystander.sleep(PAUSE_S)
    return times
