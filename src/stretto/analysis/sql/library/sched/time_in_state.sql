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
where s.utid = $utid and s.ts < $ts + $dur and s.ts + s.dur > $ts and s.dur > 0
group by s.state, s.io_wait, s.blocked_function;

create perfetto function sched_time_in_state_and_cpu_for_thread_in_interval(
    ts TIMESTAMP, dur DURATION, utid LONG)
returns TABLE(state STRING, io_wait BOOL, cpu LONG, blocked_function STRING, dur DURATION) as
select s.state, s.io_wait, s.cpu, s.blocked_function,
    sum(min(s.ts + s.dur, $ts + $dur) - max(s.ts, $ts)) as dur
from thread_state s
where s.utid = $utid and s.ts < $ts + $dur and s.ts + s.dur > $ts and s.dur > 0
group by s.state, s.io_wait, s.cpu, s.blocked_function;

create perfetto function sched_time_in_state_for_cpu_in_interval(
    cpu LONG, ts TIMESTAMP, dur DURATION)
returns TABLE(end_state STRING, dur DURATION) as
select s.end_state, sum(min(s.ts + s.dur, $ts + $dur) - max(s.ts, $ts)) as dur
from sched s
where s.cpu = $cpu and s.ts < $ts + $dur and s.ts + s.dur > $ts and s.dur > 0
group by s.end_state;

create perfetto table sched_percentage_of_time_in_state as
select utid,
    sum(iif(state = 'Running', percentage_in_state, null)) as running,
    sum(iif(state = 'R', percentage_in_state, null)) as runnable,
    sum(iif(state = 'R+', percentage_in_state, null)) as runnable_preempted,
    sum(iif(state = 'S', percentage_in_state, null)) as sleeping,
    sum(iif(state = 'D', percentage_in_state, null)) as uninterruptible_sleep,
    sum(iif(state in ('Running', 'R', 'R+', 'S', 'D'), null, percentage_in_state)) as other
from sched_time_in_state_for_thread group by utid;
