-- The numbers of threads that are runnable, blocked or on a CPU, at each time at which they change.
include perfetto module intervals.overlap;

create perfetto table sched_runnable_thread_count as
select ts, value as runnable_thread_count
from intervals_overlap_count!(
    (select ts, dur from thread_state where state = 'R'), ts, dur);

create perfetto table sched_uninterruptible_sleep_thread_count as
select ts, value as uninterruptible_sleep_thread_count
from intervals_overlap_count!((select ts, dur from thread_state where state = 'D'), ts, dur);

create perfetto table sched_active_cpu_count as
select ts, value as active_cpu_count
from intervals_overlap_count!(
    (select ts, dur from sched where utid not in (select utid from thread where is_idle)),
    ts, dur);
