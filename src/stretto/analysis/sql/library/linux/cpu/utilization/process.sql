-- The cycles and the utilization of CPUs by processes.
include perfetto module linux.cpu.utilization._frequencies;
include perfetto module time.conversion;

create perfetto table cpu_cycles_per_process as
select upid, millicycles, megacycles, runtime, min_freq, max_freq, avg_freq
from _cycles!(_runs_at_frequencies, upid) where upid is not null;

create perfetto function cpu_process_utilization_per_period(interval LONG, upid LONG)
returns TABLE(ts TIMESTAMP, utilization DOUBLE, unnormalized_utilization DOUBLE) as
select * from _utilization!((select ts, dur from _runs where upid = $upid), $interval) order by ts;

create perfetto function cpu_process_utilization_per_second(upid LONG)
returns TABLE(ts TIMESTAMP, utilization DOUBLE, unnormalized_utilization DOUBLE) as
select * from _utilization!((select ts, dur from _runs where upid = $upid), 1000000000) order by ts;
