"""Questions about a trace. Each has a name, and a query in PerfettoSQL that answers it.

In a query, `$slice` stands for the name of a slice. The name may be a pattern of `glob`.
"""

from __future__ import annotations

from typing import NamedTuple

from stretto.analysis.sql.macros import substitute


class Question(NamedTuple):
    """A question, and the query that answers it."""

    text: str
    sql: str

    @property
    def needs_slice(self) -> bool:
        """Whether the question is about a slice that the user names."""
        return "$slice" in self.sql


QUESTIONS = {
    "longest": Question(
        "the longest slices",
        """
select s.ts - trace_start() as start, s.dur, s.name, coalesce(t.name, lane.name) as thread,
    p.name as process
from slice s left join track lane on s.track_id = lane.id
left join thread_track k on s.track_id = k.id left join thread t using (utid)
left join process_track l on s.track_id = l.id
left join process p on p.upid = coalesce(t.upid, l.upid)
order by s.dur desc limit 20""",
    ),
    "p99": Question(
        "the percentiles of a slice's duration",
        """
select name, count(*) as calls, percentile(dur, 50) as p50, percentile(dur, 90) as p90,
    percentile(dur, 99) as p99, max(dur) as longest
from slice where name glob $slice and dur > 0 group by name order by p99 desc""",
    ),
    "callers": Question(
        "the slices directly around a slice, by time",
        """
select parent.name as caller, count(*) as calls, sum(s.dur) as total
from slice s left join slice parent on s.parent_id = parent.id
where s.name glob $slice and s.dur >= 0 group by parent.name order by total desc""",
    ),
    "inside": Question(
        "the slices directly inside a slice, by time",
        """
select child.name, count(*) as calls, sum(child.dur) as total, max(child.dur) as longest
from slice s join slice child on child.parent_id = s.id
where s.name glob $slice and child.dur >= 0 group by child.name order by total desc""",
    ),
    "meanwhile": Question(
        "the slices of other threads during a slice, by time",
        """
select t.name as thread, o.name, count(*) as calls,
    sum(min(o.ts + o.dur, s.ts + s.dur) - max(o.ts, s.ts)) as overlap
from slice s
join slice o on o.ts < s.ts + s.dur and o.ts + o.dur > s.ts and o.track_id <> s.track_id
join thread_track k on o.track_id = k.id join thread t using (utid)
where s.name glob $slice and s.dur > 0 and o.depth = 0
group by t.name, o.name order by overlap desc limit 20""",
    ),
    "while-waiting": Question(
        "the calls in a slice that waited: for more than half of their time the thread had no CPU",
        """
select inner_slice.name, count(*) as calls,
    sum(inner_slice.dur - inner_slice.thread_dur) as waiting, sum(inner_slice.dur) as total
from slice s
join descendant_slice(s.id) inner_slice
where s.name glob $slice and inner_slice.thread_dur * 2 < inner_slice.dur
group by inner_slice.name order by waiting desc limit 20""",
    ),
    "threads": Question(
        "the time that each thread spent in slices",
        """
select p.name as process, t.name as thread, t.tid, count(*) as slices, sum(s.dur) as busy
from slice s join thread_track k on s.track_id = k.id join thread t using (utid)
left join process p using (upid)
where s.depth = 0 and s.dur > 0 group by utid order by busy desc""",
    ),
    "counters": Question(
        "the smallest, mean and largest value of each counter",
        """
select name, count(*) as samples, min(value) as smallest, avg(value) as mean, max(value) as largest,
    unit
from counters group by track_id order by name""",
    ),
    "gc": Question(
        "the garbage collector's runs",
        """
select name, count(*) as runs, sum(dur) as total, max(dur) as longest
from slice where category = 'python.gc' group by name order by total desc""",
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
order by name""",
    ),
}
"""The questions by name."""


def query_of(name: str, slice_name: str) -> str:
    """Return the query of a question.

    Args:
        name: A key of QUESTIONS.
        slice_name: The name of the slice that the question is about, or a pattern of `glob`;
            ignored if the question is not about a slice.
    """
    quoted = "'" + slice_name.replace("'", "''") + "'"
    return substitute(QUESTIONS[name].sql.strip(), {"slice": quoted})
