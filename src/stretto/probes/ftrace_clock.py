"""The clock of an instance, and readings of it beside the trace clock.

The clock `boot` is the trace clock. Bundles with times of another clock have a pair of readings.
"""

from __future__ import annotations

import re

from stretto.probes.tracefs import TracefsError
from stretto.protos.trace import FtraceClock, FtraceEventBundle
from stretto.protozero.wire import varint_field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.probes.tracefs import Instance

BOOT, RAW = "boot", "mono_raw"
CLOCKS = {
    "global": FtraceClock.FTRACE_CLOCK_GLOBAL,
    "local": FtraceClock.FTRACE_CLOCK_LOCAL,
    RAW: FtraceClock.FTRACE_CLOCK_MONO_RAW,
}
"""The values of clocks in a bundle; that of `boot` is absent."""


def choose(instance: Instance, *, raw: bool) -> None:
    """Set the clock, which clears the buffers.

    Args:
        instance: The folder.
        raw: Whether it should be CLOCK_MONOTONIC_RAW.

    Raises:
        TracefsError: The kernel doesn't have the clock.
    """
    known = instance.read("trace_clock").replace("[", " ").replace("]", " ").split()
    clock = RAW if raw and RAW in known else BOOT
    if clock not in known or not instance.change("trace_clock", clock):
        raise TracefsError("ftrace has no clock `boot` here: Linux 4.1 or later has it")


class ClockReader:
    """Reads the clock that an instance uses.

    Args:
        instance: The folder.
        now_ns: Reads the trace clock.
    """

    def __init__(self, instance: Instance, now_ns: Callable[[], int]) -> None:
        text = instance.read("trace_clock")
        found = re.search(r"\[([\w-]+)\]", text)
        name = found[1] if found else text.strip()
        self._clock = CLOCKS.get(name, FtraceClock.FTRACE_CLOCK_UNKNOWN)
        self._is_boot = name == BOOT
        self._instance = instance
        self._now_ns = now_ns

    def fields(self) -> bytes:
        """Return the fields that tell a bundle's clock, encoded; none for the trace clock."""
        if self._is_boot:
            return b""
        boot = self._now_ns()
        now = round(self._instance.cpu_stats(0).get("now ts", 0.0) * 1e6) * 1000
        values = {"ftrace_clock": self._clock, "ftrace_timestamp": now, "boot_timestamp": boot}
        layout = FtraceEventBundle.LAYOUT
        return b"".join(
            varint_field(layout.field(name).number, value) for name, value in values.items()
        )
