"""A program's own data source, with packets of its own content.

    python examples/custom_data_source.py screenshots.pftrace

A data source has a name; each session whose config names it gets an instance. A packet is built
with the generated class of Perfetto's TracePacket, so every field of it can be written. This
program's session also records track events, on the same timeline.
"""

from __future__ import annotations

import sys

import stretto
from stretto.protos.config import DataSourceConfig, TraceConfig
from stretto.protos.trace import TestEvent, TracePacket


class Screenshots(stretto.DataSource):
    """Writes a packet for each screenshot, while a session records."""

    name = "com.example.screenshots"

    def on_start(self) -> None:
        print("screenshots are recorded")

    def on_stop(self) -> None:
        print("screenshots are not recorded any more")


def take_screenshot(number: int) -> None:
    """Takes a screenshot. Builds a packet only if a session records the data source."""
    for source in Screenshots.instances():
        event = TestEvent(str=f"screenshot {number}", seq_value=number)
        source.write(TracePacket(for_testing=event))


def config() -> TraceConfig:
    sources = [
        TraceConfig.DataSource(config=DataSourceConfig(name=name))
        for name in (Screenshots.name, "track_event")
    ]
    buffers = [TraceConfig.BufferConfig(size_kb=1024)]
    return TraceConfig(buffers=buffers, data_sources=sources)


def main(path: str) -> None:
    Screenshots.register()
    with stretto.TracingSession(config()) as session:
        for number in range(10):
            with stretto.slice("screenshot", number=number):
                take_screenshot(number)
        session.stop()
        trace = session.read()
    with open(path, "wb") as file:
        file.write(trace)
    print(f"{len(trace)} bytes in {path}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "screenshots.pftrace")
