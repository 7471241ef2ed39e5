-- The idle states of CPUs over time; -1 means not idle.
include perfetto module counters.intervals;

create perfetto table cpu_idle_counters as
select i.id, i.track_id, i.ts, i.dur,
    iif(i.value = 4294967295, -1, cast(i.value as int)) as idle, t.cpu
from counter_leading_intervals!((
    select c.id, c.ts, c.track_id, c.value
    from counter c join cpu_counter_track t on c.track_id = t.id
    where t.type = 'cpu_idle'
)) i
join cpu_counter_track t on i.track_id = t.id;
