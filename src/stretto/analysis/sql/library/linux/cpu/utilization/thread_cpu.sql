-- The cycles of CPUs by threads, on each CPU.
include perfetto module linux.cpu.utilization._frequencies;
include perfetto module time.conversion;

create perfetto table cpu_cycles_per_thread_per_cpu as
select s.utid, cpu.ucpu, cpu.cpu, c.millicycles, c.megacycles, c.runtime, c.min_freq, c.max_freq,
    c.avg_freq
from _cycles!((select utid * 65536 + ucpu as pair, dur, freq from _runs_at_frequencies), pair) c
join (select distinct utid, ucpu, utid * 65536 + ucpu as pair from _runs) s using (pair)
join cpu using (ucpu);
