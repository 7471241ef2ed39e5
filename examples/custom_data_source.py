"""A data source of one's own: packets that Stretto knows nothing about.

    python examples/custom_data_source.py screenshots.pftrace

A data source has a name; a session that asks for that name gets an instance of it. Each
packet is built with the generated class of Perfetto's TracePacket, so any field of it can be
written. The session here asks for track events, too, on the same timeline.
"""

from __future__ import annotations

import sys

import stretto
from stretto.protos.config import DataSourceConfig, TraceConfig
from stretto.protos.trace import TestEvent, TracePacket


class Screenshots(stretto.DataSource):
    """Writes a packet for each screenshot, while a session wants them."""

    name = "com.example.screenshots"

    def on_start(self) -> None:
        print("screenshots are recorded")

    def on_stop(self) -> None:
        print("screenshots are not recorded any more")


def take_screenshot(number: int) -> None:
    """What the program does anyway; nothing is built if nobody records."""
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
