"""How long the threads of a trace ran, waited for a CPU, and were blocked.

Auto detail measures it, and writes it at the end of each process that no signal kills:

    instant `stack samples`    threads.4711.running_ns, .ready_ns, .blocked_ns

`ready_ns` is the time in which the thread could have run, but had no CPU. Where the kernel doesn't
tell it, there is `waiting_ns` instead, the sum of both.

The CPU time of the thread's slices (`cpu`) is a part of `running_ns`, except on CPython 3.11, where
both are estimated from samples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stretto import _native

_EVENT = "stack samples"


class ThreadTimes(NamedTuple):
    """The times of a thread, in ns.

    Attributes:
        running: On a CPU.
        ready: Ready to run, without a CPU; None if it is unknown.
        blocked: Neither; if `ready` is unknown, including it.
    """

    running: int
    ready: int | None
    blocked: int


def thread_times(
    importer: _native.TraceImporter,
    tracks: Sequence[dict[str, Any]],
    threads: Sequence[dict[str, Any]],
) -> dict[int, ThreadTimes]:
    """Return the times of threads by `utid`, as far as the trace has them.

    Args:
        importer: the imported trace.
        tracks: the rows of its table of tracks.
        threads: the rows of its table of threads.
    """
    utids = {(row["upid"], str(row["tid"])): utid for utid, row in enumerate(threads)}
    found = {}
    for _, _, track, _, arguments in importer.slices_named(_EVENT):
        utid = tracks[track]["utid"]
        upid = threads[utid]["upid"] if utid is not None else tracks[track]["upid"]
        for tid, times in _by_thread(arguments).items():
            if (utid := utids.get((upid, tid))) is not None:
                blocked = times.get("blocked_ns", times.get("waiting_ns", 0))
                running = times.get("running_ns", 0)
                found[utid] = ThreadTimes(running, times.get("ready_ns"), blocked)
    return found


def _by_thread(arguments: dict[str, Any]) -> dict[str, dict[str, int]]:
    """Return the arguments `debug.threads.TID.NAME` as numbers by TID and NAME."""
    found: dict[str, dict[str, int]] = {}
    for key, value in arguments.items():
        words = key.split(".")
        if words[:2] == ["debug", "threads"] and len(words) == 4 and isinstance(value, int):
            found.setdefault(words[2], {})[words[3]] = value
    return found
