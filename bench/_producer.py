"""A producer for bench/service.py: a program that is connected, and does as its input says.

    python bench/_producer.py

It says `connected` as soon as it is. For a line `MEGABYTES_A_SECOND SECONDS` it writes events at
that rate, and answers with their number. The end of its input ends it.
"""

from __future__ import annotations

import sys
import time

import stretto

CATEGORY = "bench"
MARK = "<event>"
PAYLOAD = MARK + "." * (224 - len(MARK))
EVENT_BYTES = 250
"""What an event takes, about: the payload, and what is around it."""

PERIOD_S = 0.001
LONGEST_BURST_S = 0.002

FLUSHED = "bench.flushed"

category = stretto.Category(CATEGORY)


class Flushed(stretto.DataSource):
    """One that wants to hear of flushes: track events don't, the service reads their memory."""

    name = FLUSHED

    def on_flush(self) -> None:
        """Answered when this returns."""


def burst(events: int) -> None:
    for _ in range(events):
        category.instant("event", payload=PAYLOAD)


def write(megabytes_a_second: float, seconds: float) -> int:
    """Events at a steady rate; who did not get the processor in time doesn't catch up."""
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
