-- How long the CPUs were in each idle state between two samples. C0 is the state of a busy CPU.
create perfetto table _idle_residency as
select ts, machine_id, state, cpu, track_id, residency, (ts - previous_ts) / 1000 as time_slice
from (
    select c.ts, t.machine_id, extract_arg(t.dimension_arg_set_id, 'state') as state,
        cast(extract_arg(t.dimension_arg_set_id, 'cpu') as int) as cpu, c.track_id,
        c.value - lag(c.value) over (partition by c.track_id order by c.ts) as residency,
        lag(c.ts) over (partition by c.track_id order by c.ts) as previous_ts
    from counter c join track t on c.track_id = t.id
    where t.type = 'cpu_idle_state'
)
where previous_ts is not null;

create perfetto view _busy_residency as
select ts, machine_id, cpu, time_slice,
    iif(time_slice > sum(residency), time_slice - sum(residency), 0.0) as residency
from _idle_residency
group by ts, machine_id, cpu, time_slice;

create perfetto table linux_per_cpu_idle_time_in_state_counters as
select ts, machine_id, state, cpu,
    iif(residency > time_slice, 100.0, 100.0 * residency / time_slice) as idle_percentage,
    residency as total_residency, time_slice
from (
    select 0 as place, track_id, ts, machine_id, state, cpu, residency, time_slice
    from _idle_residency
    union all
    select 1, null, ts, machine_id, 'C0', cpu, residency, time_slice from _busy_residency
)
order by place, track_id, ts, cpu;

create perfetto table linux_cpu_idle_time_in_state_counters as
select ts, machine_id, state,
    iif(sum(total_residency) > sum(time_slice), 100.0,
        100.0 * sum(total_residency) / sum(time_slice)) as idle_percentage,
    sum(total_residency) as total_residency, sum(time_slice) as time_slice
from linux_per_cpu_idle_time_in_state_counters
group by ts, machine_id, state
order by ts, state, machine_id;
