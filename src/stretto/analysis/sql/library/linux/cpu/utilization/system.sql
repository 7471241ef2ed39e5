-- The cycles and the utilization of all CPUs.
include perfetto module linux.cpu.utilization._frequencies;
include perfetto module time.conversion;

create perfetto table cpu_cycles as
select millicycles, megacycles, runtime, min_freq, max_freq, avg_freq
from _cycles!((select 1 as whole, dur, freq from _runs_at_frequencies), whole);

create perfetto table cpu_cycles_per_cpu as
select ucpu, cpu, millicycles, megacycles, runtime, min_freq, max_freq, avg_freq
from _cycles!(_runs_at_frequencies, ucpu) join cpu using (ucpu);

create perfetto function cpu_utilization_per_period(interval LONG)
returns TABLE(ts TIMESTAMP, utilization DOUBLE, unnormalized_utilization DOUBLE) as
select * from _utilization!((select ts, dur from _runs), $interval) order by ts;

create perfetto table cpu_utilization_per_second as
select * from _utilization!((select ts, dur from _runs), 1000000000) order by ts;
