"""A producer for bench/service.py: a connected program that writes events on command.

    python bench/_producer.py

It prints `connected` after it has connected. For each input line `MEGABYTES_A_SECOND SECONDS` it
writes events at that rate, then prints their number. It ends when its input ends.
"""

from __future__ import annotations

import sys
import time

import stretto

CATEGORY = "bench"
MARK = "<event>"
PAYLOAD = MARK + "." * (224 - len(MARK))
EVENT_BYTES = 250
"""Approximate size of an event: the payload and its encoding."""

PERIOD_S = 0.001
LONGEST_BURST_S = 0.002

FLUSHED = "bench.flushed"

category = stretto.Category(CATEGORY)


class Flushed(stretto.DataSource):
    """A data source with a flush callback; the track event data source has none."""

    name = FLUSHED

    def on_flush(self) -> None:
        """Do nothing: the client acknowledges the flush when this method returns."""


def burst(events: int) -> None:
    for _ in range(events):
        category.instant("event", payload=PAYLOAD)


def write(megabytes_a_second: float, seconds: float) -> int:
    """Write events at a steady rate; return the number of written events."""
    rate = megabytes_a_second * 1e6 / EVENT_BYTES
    most = rate * LONGEST_BURST_S
    written, owed, last = 0, 0.0, time.monotonic()
    end = last + seconds
    while last < end:
        time.sleep(PERIOD_S)
        now = time.monotonic()
        owed = min(owed + rate * (now - last), most)
        last = now
        burst(int(owed))
        written += int(owed)
        owed -= int(owed)
    return written


def main() -> None:
    Flushed.register()
    connection = stretto.connect()
    while not connection.connected:
        time.sleep(0.001)
    print("connected", flush=True)
    for line in sys.stdin:
        rate, seconds = line.split()
        print(write(float(rate), float(seconds)), flush=True)


if __name__ == "__main__":
    main()
