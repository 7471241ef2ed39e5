-- The frequencies of CPUs over time.
include perfetto module counters.intervals;

create perfetto table cpu_frequency_counters as
select i.id, i.track_id, i.ts, i.dur, cast(i.value as int) as freq, cpu.ucpu, cpu.cpu
from counter_leading_intervals!((
    select c.id, c.ts, c.track_id, c.value
    from counter c join cpu_counter_track t on c.track_id = t.id
    where t.type = 'cpu_frequency'
)) i
join cpu_counter_track t on i.track_id = t.id
join cpu on t.cpu = cpu.cpu;
