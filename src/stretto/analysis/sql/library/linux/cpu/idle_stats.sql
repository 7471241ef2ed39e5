-- For each idle state of each CPU: how often and how long the CPU was in it.
include perfetto module linux.cpu.idle;

create perfetto table cpu_idle_stats as
select cpu, idle + 1 as state, count(*) as count, sum(dur) as dur, sum(dur) / count(*) as avg_dur,
    100.0 * sum(dur) / (select sum(t.dur) from cpu_idle_counters t where t.cpu = c.cpu)
        as idle_percent
from cpu_idle_counters c
where idle >= 0
group by cpu, idle
order by cpu, idle;
