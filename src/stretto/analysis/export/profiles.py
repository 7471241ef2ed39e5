"""Writes stacks: collapsed stacks, speedscope, pprof, pstats, Firefox's profiler."""

from __future__ import annotations

import gzip
import json
import marshal
from operator import add
from typing import TYPE_CHECKING, Any

from stretto.analysis.export.stacks import NANOSECONDS
from stretto.protozero.wire import bytes_field, varint, varint_field

if TYPE_CHECKING:
    from stretto.analysis.export.stacks import Stacks

    Key = tuple[str, int, str]


def collapsed(stacks: Stacks) -> bytes:
    """Return a line per stack: `lane;outer;inner 12`, in whole µs or samples, without zeros."""
    divisor = 1000 if stacks.unit == NANOSECONDS else 1
    lines = []
    for stack in stacks.stacks:
        names = [name.replace(";", ":").replace("\n", " ") for name in (stack.lane, *stack.names)]
        if stack.value >= divisor:
            lines.append(f"{';'.join(names)} {stack.value // divisor}\n")
    return "".join(lines).encode(errors="replace")


class _Indexes(dict[Any, int]):
    """Numbers values in the order of their first use."""

    def __missing__(self, key: Any) -> int:
        self[key] = len(self)
        return self[key]


def speedscope(stacks: Stacks, name: str) -> bytes:
    """Return speedscope's JSON: a profile per lane."""
    frames = _Indexes()
    profiles = []
    for lane in dict.fromkeys(stack.lane for stack in stacks.stacks):
        own = [stack for stack in stacks.stacks if stack.lane == lane]
        profiles.append(
            {
                "type": "sampled",
                "name": lane,
                "unit": stacks.unit,
                "startValue": 0,
                "endValue": sum(stack.value for stack in own),
                "samples": [[frames[frame] for frame in stack.names] for stack in own],
                "weights": [stack.value for stack in own],
            }
        )
    file = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "name": name,
        "exporter": "stretto",
        "activeProfileIndex": 0,
        "shared": {"frames": [{"name": frame} for frame in frames]},
        "profiles": profiles,
    }
    return json.dumps(file, ensure_ascii=False).encode(errors="replace")


def pprof(stacks: Stacks) -> bytes:
    """Return pprof's Profile, compressed by gzip. A sample has the label `lane`."""
    texts = _Indexes({"": 0})
    functions = _Indexes()
    value = ("time", "nanoseconds") if stacks.unit == NANOSECONDS else ("samples", "count")
    is_timed = stacks.is_sampled and stacks.unit == NANOSECONDS
    types = [("samples" if is_timed else "calls", "count"), value]
    made = [bytes_field(1, _numbers(texts[kind], texts[unit])) for kind, unit in types]
    for stack in stacks.stacks:
        # Locations are ordered from the innermost; ids begin with 1.
        ids = b"".join(varint(functions[name] + 1) for name in reversed(stack.names))
        values = varint(stack.calls) + varint(stack.value)
        label = _numbers(texts["lane"], texts[stack.lane])
        sample = bytes_field(1, ids) + bytes_field(2, values) + bytes_field(3, label)
        made.append(bytes_field(2, sample))
    for name, index in functions.items():
        line = varint_field(1, index + 1)
        location = varint_field(1, index + 1) + bytes_field(4, line)
        made.append(bytes_field(4, location))
        function = varint_field(1, index + 1) + varint_field(2, texts[name])
        made.append(bytes_field(5, function))
    made += [bytes_field(6, text.encode(errors="replace")) for text in texts]
    return gzip.compress(b"".join(made), mtime=0)


def _numbers(*values: int) -> bytes:
    """Return a message whose fields 1, 2, … are numbers."""
    return b"".join(varint_field(at, value) for at, value in enumerate(values, 1))


def pstats(stacks: Stacks) -> bytes:
    """Return the statistics that the module `pstats` reads: calls and times by function.

    A function that calls itself is counted once per stack in its total time. Of samples, the calls
    are their number; one counts as a second if the trace doesn't tell its time.
    """
    totals: dict[Key, list[Any]] = {}
    for stack in stacks.stacks:
        seconds = stack.value / 1e9 if stacks.unit == NANOSECONDS else float(stack.value)
        keys = [("~", 0, name) for name in stack.names]
        _count(totals, keys, seconds, stack.calls)
    return marshal.dumps({key: tuple(entry) for key, entry in totals.items()})


def _count(totals: dict[Key, list[Any]], keys: list[Key], seconds: float, calls: int) -> None:
    for at, key in enumerate(keys):
        entry = totals.setdefault(key, [0, 0, 0.0, 0.0, {}])
        is_called, is_outermost = at == len(keys) - 1, key not in keys[:at]
        added = (
            calls if is_called and is_outermost else 0,
            calls if is_called else 0,
            seconds if is_called else 0.0,
            seconds if is_outermost else 0.0,
        )
        entry[:4] = map(add, entry, added)
        if at:
            # By caller, the order is: all calls, calls that aren't recursive.
            before = entry[4].get(keys[at - 1], (0, 0, 0.0, 0.0))
            by_caller = (added[1], added[0], *added[2:])
            entry[4][keys[at - 1]] = tuple(map(add, before, by_caller))


def firefox(stacks: Stacks, name: str) -> bytes:
    """Return the JSON that profiler.firefox.com reads: a thread per lane, a sample per stack."""
    lanes = list(dict.fromkeys(stack.lane for stack in stacks.stacks))
    file = {
        "meta": {
            "version": 24,
            "startTime": 0,
            "interval": 1,
            "product": name,
            "processType": 0,
            "stackwalk": 0,
            "debug": 0,
            "gcpoison": 0,
            "asyncstack": 0,
            "shutdownTime": None,
            "categories": [{"name": "Other", "color": "grey", "subcategories": ["Other"]}],
            "markerSchema": [],
        },
        "libs": [],
        "pages": [],
        "processes": [],
        "pausedRanges": [],
        "threads": [_firefox_thread(stacks, lane, tid) for tid, lane in enumerate(lanes, 1)],
    }
    return json.dumps(file, ensure_ascii=False).encode(errors="replace")


def _firefox_thread(stacks: Stacks, lane: str, tid: int) -> dict[str, Any]:
    texts, frames, nodes = _Indexes(), _Indexes(), _Indexes()
    samples = []
    time = 0.0
    for stack in stacks.stacks:
        if stack.lane != lane:
            continue
        node = None
        for frame in stack.names:
            node = nodes[node, frames[texts[frame]]]
        weight = stack.value / 1e6 if stacks.unit == NANOSECONDS else float(stack.value)
        samples.append([node, time, 0, weight])
        time += weight
    return {
        "name": lane,
        "processType": "default",
        "tid": tid,
        "pid": 0,
        "registerTime": 0,
        "unregisterTime": None,
        "markers": {"schema": {"name": 0, "startTime": 1, "data": 2}, "data": []},
        "samples": {
            "schema": {"stack": 0, "time": 1, "eventDelay": 2, "weight": 3},
            "weightType": "tracing-ms" if stacks.unit == NANOSECONDS else "samples",
            "data": samples,
        },
        "frameTable": {
            "schema": {"location": 0, "relevantForJS": 1, "innerWindowID": 2, "category": 3},
            "data": [[text, False, 0, 0] for text in frames],
        },
        "stackTable": {
            "schema": {"prefix": 0, "frame": 1},
            "data": [[prefix, frame] for prefix, frame in nodes],
        },
        "stringTable": list(texts),
    }
