-- The time that slices of threads ran on a CPU.
include perfetto module slices.with_context;
include perfetto module slices._covered;

create perfetto table thread_slice_cpu_time as
select s.id, s.name, s.utid, s.thread_name, s.upid, s.process_name,
    cast(c.covered as int) as cpu_time
from _covered_time!(
    (select id, ts, dur, utid as key from thread_slice where utid > 0 and dur > 0),
    (select ts, dur, utid as key from sched where dur > 0)
) c
join thread_slice s on s.id = c.id;
