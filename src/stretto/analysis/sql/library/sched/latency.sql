-- How long threads were runnable before they ran.
include perfetto module sched.runnable;

create perfetto table sched_latency_for_running_interval as
select s.id as thread_state_id, sched.id as sched_id, s.utid,
    p.prev_runnable_id as runnable_latency_id, r.dur as latency_dur
from sched_previous_runnable_on_thread p
join thread_state s on p.id = s.id
join thread_state r on p.prev_runnable_id = r.id
join sched on s.ts = sched.ts and s.utid = sched.utid;
