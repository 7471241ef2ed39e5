"""What the UI shows when a trace is opened: names of the program's own functions.

- The lanes of the program and of tasks are expanded; those of the child process that does most of
  the work, too.
- The visible time begins with the first call of the program's own code, if much was imported
  before it.
- A table of the program's own functions is below the lanes, if their bars show few names: they are
  short, deep, or in child processes. The same place shows the table of log records otherwise, which
  the UI opens by itself.
"""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING, NamedTuple

from stretto.analysis.trace_tables import available
from stretto.base.installed_code import INSTALLED_FOLDERS
from stretto.protos.trace import TrackDescriptor
from stretto.viewer.own_calls import SOURCES, own_calls

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stretto.viewer.own_calls import OwnCalls

START_BYTES = 16 << 20
"""The part of a trace that is looked at."""

ENOUGH_NAMES = 5
"""So many functions with readable names need no table."""

LONG_START = 0.1
"""The part of the trace before the first own call that is worth leaving out."""


def _location(field: str) -> str:
    """Return an SQL expression for a field of a slice's source location."""
    values = ",".join(f"extract_arg(arg_set_id,'{where}.{field}')" for where in SOURCES)
    return f"coalesce({values})"


_INSTALLED = " ".join(f"and file not glob '*{folder}*'" for folder in INSTALLED_FOLDERS)
FUNCTIONS_SQL = f"""\
select id, name as function, ifnull(max(suspended),count()) as calls,
round(max(dur)/1e6,1) as longest_ms, round(sum(dur-inside)/1e6,1) as self_ms,
replace(file,rtrim(file,replace(file,'/','')),'')||':'||line as place,
id as slice_id, ts, dur, track_id
from (select s.*, ifnull(i.inside,0) as inside,
{_location("file_name")} as file, {_location("line_number")} as line from slice s left join
(select parent_id as id, sum(dur) as inside from slice group by 1) i using (id)
where category='python.functions' and dur>0)
left join (select name, count() as suspended from slice where category='python.asyncio'
and track_id not in (select id from thread_track) group by 1) using (name)
where line>1 and file not glob '<*' {_INSTALLED}
group by name, file, line order by longest_ms desc limit 100""".replace("\n", " ")
"""The own functions by their longest calls.

Each step of a coroutine is a slice of the thread, so its calls are counted in the lanes of tasks:
there each is one slice. If they have none, slices of the thread are counted, as for functions. The
trace lacks the number of calls of functions that auto detail has switched off. The column `id` is a
link to the longest call: the UI makes it one in rows that have `slice_id`, `ts`, `dur` and
`track_id`.
"""


class FirstView(NamedTuple):
    """What the address tells the UI.

    Attributes:
        commands: Commands, as JSON, that it runs when it has loaded the trace; "" for none.
        visible: The visible time in ns of the trace's clock; None for all.
    """

    commands: str = ""
    visible: tuple[int, int] | None = None


def first_view(start: bytes, *, whole: bool) -> FirstView:
    """Return the first view of a trace.

    The first process in a trace is the program: its child processes are described later.

    Args:
        start: The first bytes of the trace, up to `START_BYTES`.
        whole: Whether this is the whole trace.
    """
    pid = _program(start) if available() else None
    if pid is None:
        return FirstView()
    visible, own = None, own_calls(start, pid)
    opened = "|".join(map(str, [pid] if own is None else [pid, *own.worker]))
    # The names of the tracks of a process and its threads end with the pid and the tid.
    pattern = f" ({opened})$|^(asyncio|trio) tasks$"
    commands = [{"id": "dev.perfetto.ExpandTracksByRegex", "args": [pattern]}]
    if own is not None:
        visible = _visible(own) if whole else None
        if len(own.readable(*(visible or (own.begin, own.end)))) < ENOUGH_NAMES:
            commands.append({"id": "dev.perfetto.RunQueryAndShowTab", "args": [FUNCTIONS_SQL]})
    return FirstView(json.dumps(commands, separators=(",", ":")), visible)


def _visible(own: OwnCalls) -> tuple[int, int] | None:
    long_start = own.start - own.begin > LONG_START * (own.end - own.begin)
    return (own.start, own.end) if long_start else None


def _program(start: bytes) -> int | None:
    """Return the pid of the first process."""
    for data in _descriptors(start):
        process = TrackDescriptor.decode(data).process
        if process is not None:
            return process.pid
    return None


def _descriptors(start: bytes) -> Iterator[bytes]:
    """Yield the encoded TrackDescriptors, also those inside compressed packets."""
    from stretto.analysis.native import scan_trace

    *_, compressed, descriptors = scan_trace(start)
    yield from descriptors
    for packets in compressed:
        try:
            yield from scan_trace(zlib.decompress(packets))[-1]
        except zlib.error:
            return  # The packet is damaged.
