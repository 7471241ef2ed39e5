-- Scheduling slices with their threads and processes.
create perfetto view sched_with_thread_process as
select sched.id, sched.ts, sched.dur, sched.utid, thread.upid, thread.name as thread_name,
    process.name as process_name, sched.cpu, sched.end_state, sched.priority
from sched join thread using (utid) left join process using (upid);
