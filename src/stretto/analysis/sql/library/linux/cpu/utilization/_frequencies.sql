-- When threads ran, with the frequency of their CPU; kHz times ns are millionths of a cycle.
include perfetto module linux.cpu.frequency;

create perfetto view _runs as
select ts, dur, ucpu, cpu, utid, upid from sched join thread using (utid) where not is_idle;

create perfetto view _finished_runs as
select * from _runs where dur <> -1;

create perfetto view _frequencies as
select ts, dur, ucpu, freq from cpu_frequency_counters;

create virtual table _runs_at_frequencies
using span_left_join(_finished_runs partitioned ucpu, _frequencies partitioned ucpu);

create perfetto macro _cycles(spans TableOrSubquery, key ColumnName)
returns TableOrSubquery as
(
    select $key, millicycles, millicycles / 1000000000 as megacycles, runtime, min_freq, max_freq,
        millicycles / (runtime / 1000) as avg_freq
    from (
        select $key, sum(dur * freq / 1000) as millicycles, sum(dur) as runtime,
            min(freq) as min_freq, max(freq) as max_freq
        from $spans group by $key
    )
);

-- The part of each period in which CPUs ran: of all CPUs, and of one. As in the trace processor, a
-- run belongs to the period in which it begins, up to the end of this period.
create perfetto macro _utilization(runs TableOrSubquery, period Expr)
returns TableOrSubquery as
(
    select period * $period as ts, ran / (select max(cpu) + 1 from cpu) as utilization,
        ran as unnormalized_utilization
    from (
        select ts / $period as period,
            sum(min(dur, (ts / $period + 1) * $period - ts)) * 1.0 / $period as ran
        from $runs group by ts / $period
    )
);
