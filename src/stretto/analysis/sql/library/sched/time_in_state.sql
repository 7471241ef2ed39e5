-- How long threads were in each scheduling state.
create perfetto table sched_time_in_state_for_thread as
select utid, total_runtime, state, time_in_state,
    time_in_state * 100 / total_runtime as percentage_in_state
from (
    select utid, state, sum(dur) as time_in_state,
        sum(sum(dur)) over (partition by utid) as total_runtime
    from thread_state group by utid, state
);

create perfetto function sched_time_in_state_for_thread_in_interval(
    ts TIMESTAMP, dur DURATION, utid LONG)
returns TABLE(state STRING, io_wait BOOL, blocked_function STRING, dur DURATION) as
select s.state, s.io_wait, s.blocked_function,
    sum(min(s.ts + s.dur, $ts + $dur) - max(s.ts, $ts)) as dur
from thread_state s
where s.utid = $utid and s.ts < $ts + $dur and s.ts + s.dur > $ts
group by s.state, s.io_wait, s.blocked_function;
