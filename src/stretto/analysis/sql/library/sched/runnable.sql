-- For each state in which a thread ran, the runnable states before it.
create perfetto table sched_previous_runnable_on_thread as
select id, prev_runnable_id, prev_wakeup_runnable_id
from (
    select id, state, dur,
        max(iif(state in ('R', 'R+'), id, null)) over before as prev_runnable_id,
        max(iif(state = 'R' and waker_utid is not null, id, null)) over before
            as prev_wakeup_runnable_id
    from thread_state
    window before as (
        partition by utid order by ts, id rows between unbounded preceding and 1 preceding)
)
where state = 'Running' and dur <> -1;
