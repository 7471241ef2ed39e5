-- The cycles and the utilization of CPUs by threads.
include perfetto module linux.cpu.utilization._frequencies;
include perfetto module time.conversion;

create perfetto table cpu_cycles_per_thread as
select utid, millicycles, megacycles, runtime, min_freq, max_freq, avg_freq
from _cycles!(_runs_at_frequencies, utid);

create perfetto function cpu_thread_utilization_per_period(interval LONG, utid LONG)
returns TABLE(ts TIMESTAMP, utilization DOUBLE, unnormalized_utilization DOUBLE) as
select * from _utilization!((select ts, dur from _runs where utid = $utid), $interval) order by ts;

create perfetto function cpu_thread_utilization_per_second(utid LONG)
returns TABLE(ts TIMESTAMP, utilization DOUBLE, unnormalized_utilization DOUBLE) as
select * from _utilization!((select ts, dur from _runs where utid = $utid), 1000000000) order by ts;
