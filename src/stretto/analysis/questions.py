"""Questions about a trace. Each has a name, and a query in PerfettoSQL that answers it.

In a query, `$slice` stands for the name of a slice. The name may be a pattern of `glob`. `lasted`
is the duration of a slice; unfinished ones last to the trace's end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stretto.analysis.sql.macros import substitute
from stretto.base.nearest_name import nearest

if TYPE_CHECKING:
    from stretto.analysis.trace_processor import TraceProcessor


class Question(NamedTuple):
    """A question, and the query that answers it.

    Attributes:
        text: The question.
        sql: The query.
        needs: A column that has a value in at least one slice of each trace that has the answer.
    """

    text: str
    sql: str
    needs: str = ""

    @property
    def needs_slice(self) -> bool:
        """Whether the question is about a slice that the user names."""
        return "$slice" in self.sql


_LASTING = """lasting as (
    select *, min(iif(dur < 0, trace_end() - ts, dur), 9223372036854775807 - max(ts, 0)) as lasted
    from slice)"""
"""Unfinished slices last to the trace's end; no slice lasts beyond 64 bits."""

_OWN_TRACK = "k.parent_id is null and coalesce(k.name, '') = ''"
"""Whether a track is what its thread does, and not beside it, as `event loop`."""

QUESTIONS = {
    "longest": Question(
        "the longest slices; unfinished ones last to the trace's end",
        f"""
with {_LASTING}
select s.ts - trace_start() as start, s.lasted as dur, s.name,
    coalesce(t.name, lane.name) as thread, p.name as process
from lasting s left join track lane on s.track_id = lane.id
left join thread_track k on s.track_id = k.id left join thread t using (utid)
left join process_track l on s.track_id = l.id
left join process p on p.upid = coalesce(t.upid, l.upid)
order by s.lasted desc, s.id limit 20""",
    ),
    "p99": Question(
        "the percentiles of a slice's duration",
        # Interpolated values have two digits; what is behind them differs between the engines.
        f"""
with {_LASTING}
select name, count(*) as calls, round(percentile(lasted, 50), 2) as p50,
    round(percentile(lasted, 90), 2) as p90, round(percentile(lasted, 99), 2) as p99,
    max(lasted) as longest
from lasting where name glob $slice and dur <> 0 group by name order by p99 desc, name""",
    ),
    "callers": Question(
        "the slices directly around a slice, by time",
        f"""
with {_LASTING}
select parent.name as caller, count(*) as calls, sum(s.lasted) as total
from lasting s left join slice parent on s.parent_id = parent.id
where s.name glob $slice group by parent.name order by total desc, caller""",
    ),
    "inside": Question(
        "the slices directly inside a slice, by time",
        f"""
with {_LASTING}
select child.name, count(*) as calls, sum(child.lasted) as total, max(child.lasted) as longest
from slice s join lasting child on child.parent_id = s.id
where s.name glob $slice group by child.name order by total desc, child.name""",
    ),
    "meanwhile": Question(
        "the outermost slices of other threads while a slice ran, by time",
        # What a task does is on its thread, too: its lane, which has no thread, isn't counted then.
        f"""
include perfetto module slices._covered_by_others;
with {_LASTING},
asked as (
    select coalesce(k.utid, -1) as key, s.name, s.ts, s.lasted as dur
    from lasting s left join thread_track k on s.track_id = k.id where s.name glob $slice),
ran as (
    select key, ts, dur from asked
    where key <> -1 or name not in (select name from asked where key <> -1)),
outermost as (
    select s.id, s.name, s.ts, s.lasted as dur, k.utid as key
    from lasting s join thread_track k on s.track_id = k.id where s.depth = 0)
select p.name as process, t.name as thread, t.tid, o.name, count(*) as calls,
    cast(sum(c.covered) as int) as overlap
from _covered_by_others!(outermost, ran) c
join outermost o on o.id = c.id join thread t on t.utid = o.key
left join process p on p.upid = t.upid
group by t.utid, o.name order by overlap desc, t.utid, o.name limit 20""",
    ),
    "while-waiting": Question(
        "the calls in a slice that waited: for more than half of their time the thread had no CPU",
        # A call may be in several slices that match, as in those of a recursive function.
        """
with waited as (
    select distinct i.id, i.name, i.dur, i.thread_dur
    from slice s join descendant_slice(s.id) i
    where s.name glob $slice and i.thread_dur * 2 < i.dur)
select name, count(*) as calls, sum(dur - thread_dur) as waiting, sum(dur) as total
from waited group by name order by waiting desc, name limit 20""",
        needs="thread_dur",
    ),
    "threads": Question(
        "the time that each thread spent in slices of its own track",
        f"""
include perfetto module slices._covered;
with {_LASTING},
outermost as (
    select k.utid as key, s.ts, s.lasted as dur
    from lasting s join thread_track k on s.track_id = k.id
    where s.depth = 0 and s.dur <> 0 and {_OWN_TRACK})
select p.name as process, t.name as thread, t.tid, cast(sum(merged) as int) as slices,
    cast(sum(dur) as int) as busy
from _merged_spans!(outermost) join thread t on t.utid = key left join process p using (upid)
group by t.utid order by busy desc, t.utid""",
    ),
    "counters": Question(
        "the smallest value of each counter, its mean over time, and the largest",
        # A recorder writes 0 when a process ends: that value lasts no time.
        """
with lasting as (
    select *, lead(ts) over (partition by track_id order by ts) - ts as lasted from counters)
select name, count(*) as samples, min(value) as smallest,
    coalesce(sum(value * lasted) / nullif(sum(lasted), 0), avg(value)) as mean,
    max(value) as largest, unit
from lasting group by track_id order by name""",
    ),
    "gc": Question(
        "the garbage collector's runs",
        f"""
with {_LASTING}
select name, count(*) as runs, sum(lasted) as total, max(lasted) as longest
from lasting where category = 'python.gc' group by name order by total desc, name""",
    ),
    "logs": Question(
        "the messages of the log",
        """
select l.ts - trace_start() as time, t.name as thread, l.prio, l.tag, l.msg
from android_logs l left join thread t using (utid) order by l.ts""",
    ),
    "losses": Question(
        "what was lost, and what went wrong",
        """
select name, idx, severity, value from stats
where severity in ('error', 'data_loss') and value > 0
union all
select name, null, 'data_loss', sum(cast(extract_arg(arg_set_id, 'debug.too_many') as int))
from slice where name in ('tasks without a lane', 'waits without a slice')
and category = 'python.asyncio' group by name
union all
select name, null, 'data_loss', sum(cast(extract_arg(arg_set_id, 'debug.number') as int))
from slice where category = 'python.samples' group by name
order by name""",
    ),
}
"""The questions by name."""

DURATIONS = frozenset("busy dur longest overlap p50 p90 p99 total waiting".split())
"""The columns of answers that are durations, in ns."""
INSTANTS = frozenset(("start", "time"))
"""The columns of answers that are times since the trace's start, in ns."""


def query_of(name: str, slice_name: str) -> str:
    """Return the query of a question.

    Args:
        name: A key of QUESTIONS.
        slice_name: The name of the slice that the question is about, or a pattern of `glob`;
            ignored if the question is not about a slice.
    """
    return substitute(QUESTIONS[name].sql.strip(), {"slice": _quoted(slice_name)})


def no_answer(trace: TraceProcessor, name: str, slice_name: str) -> str:
    """Return why a trace can't answer a question; empty if it can.

    Args:
        trace: The trace.
        name: A key of QUESTIONS.
        slice_name: The name that the question is about, or a pattern of `glob`; ignored if the
            question is not about a slice.
    """
    question = QUESTIONS[name]
    if question.needs_slice and not _has_slice(trace, f"name glob {_quoted(slice_name)}"):
        names = trace.query("select distinct name from slice where name is not null").fetchall()
        advice = nearest(slice_name, (name for (name,) in names))
        return f"no slice has the name {slice_name!r}.{advice}"
    if question.needs and not _has_slice(trace, f"{question.needs} is not null"):
        return "the slices have no CPU times: record them with --cpu"
    return ""


def _has_slice(trace: TraceProcessor, condition: str) -> bool:
    return bool(trace.query(f"select 1 from slice where {condition} limit 1").fetchall())


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
