"""Probes of the kernel's functions, which a session defines and removes.

    p:stretto_p_PID_N/FUNCTION FUNCTION        an event when the function is called
    r:stretto_r_PID_N/FUNCTION FUNCTION        an event when it returns

The groups name the process, so that the next session removes what a killed process has left.
"""

from __future__ import annotations

import itertools
import os
import re

from stretto.protos.trace import KprobeEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from stretto.probes.tracefs import Tracefs
    from stretto.protos.config import FtraceConfig

FILE = "kprobe_events"
RETURNS_AT_ONCE = 1024
"""How many calls of a function may wait for their return at the same time."""
_FUNCTION = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_GROUP = re.compile(r"stretto_[pr]_(\d+)_\d+")
_sessions = itertools.count(1)


class Kprobe:
    """An event that a session defines.

    Args:
        function: The kernel's function.
        returns: Whether the event is the function's return, or its call.
        type_: A KprobeEvent.KprobeType, which is written to the trace.
    """

    def __init__(self, function: str, type_: int, *, returns: bool) -> None:
        self.function = function
        self.returns = returns
        self.message = KprobeEvent(name=function, type=type_).encode()


class Kprobes:
    """The probes of one session.

    Args:
        tracefs: The top folder; the events are then in all instances.
    """

    def __init__(self, tracefs: Tracefs) -> None:
        self._tracefs = tracefs
        self._number = next(_sessions)
        self._defined: list[str] = []

    def define(self, probe: Kprobe) -> str | None:
        """Define an event; return it as `group/name`, or None if the kernel refuses it."""
        if not _FUNCTION.fullmatch(probe.function):
            return None
        name = f"stretto_{'r' if probe.returns else 'p'}_{os.getpid()}_{self._number}"
        event = f"{name}/{probe.function}"
        kind = f"r{RETURNS_AT_ONCE}" if probe.returns else "p"
        if not self._tracefs.append(FILE, f"{kind}:{event} {probe.function}\n"):
            return None
        self._defined.append(event)
        return event

    def remove(self) -> None:
        """Remove the events, which no instance may use any more."""
        for event in self._defined:
            self._tracefs.append(FILE, f"-:{event}\n")
        self._defined.clear()


def wanted(options: FtraceConfig) -> Iterator[Kprobe]:
    """Yield the probes that a config asks for."""
    config = type(options).KprobeEvent
    for event in options.kprobe_events:
        if event.type == config.KPROBE_TYPE_KPROBE:
            yield Kprobe(event.probe, KprobeEvent.KPROBE_TYPE_INSTANT, returns=False)
        elif event.type == config.KPROBE_TYPE_KRETPROBE:
            yield Kprobe(event.probe, KprobeEvent.KPROBE_TYPE_INSTANT, returns=True)
        elif event.type == config.KPROBE_TYPE_BOTH:
            yield Kprobe(event.probe, KprobeEvent.KPROBE_TYPE_BEGIN, returns=False)
            yield Kprobe(event.probe, KprobeEvent.KPROBE_TYPE_END, returns=True)


def remove_left(tracefs: Tracefs) -> None:
    """Remove the events of processes that have ended."""
    for group in tracefs.names("events"):
        found = _GROUP.fullmatch(group)
        if found and not os.path.exists(f"/proc/{found[1]}"):
            for name in tracefs.names(f"events/{group}"):
                tracefs.append(FILE, f"-:{group}/{name}\n")
