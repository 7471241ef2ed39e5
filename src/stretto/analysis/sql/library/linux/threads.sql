-- The kernel's threads: those of kthreadd's process, and of processes that it has started.
create perfetto table linux_kernel_threads as
select upid, utid, pid, tid, process.name as process_name, thread.name as thread_name,
    thread.machine_id
from thread join process using (upid)
where pid = 2 or parent_upid in (select upid from process where pid = 2);
