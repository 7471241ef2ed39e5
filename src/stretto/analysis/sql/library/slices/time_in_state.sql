-- The time that slices of threads were in each scheduling state.
include perfetto module slices.with_context;
include perfetto module slices._covered;

create perfetto table _thread_state_kinds as
select row_number() over (order by utid) as key, utid, state, io_wait, blocked_function
from (select distinct utid, state, io_wait, blocked_function from thread_state);

create perfetto table thread_slice_time_in_state as
select s.id, s.name, s.utid, s.thread_name, s.upid, s.process_name, k.state, k.io_wait,
    k.blocked_function, cast(c.covered as int) as dur
from _covered_time!(
    (
        select id, ts, dur, key
        from thread_slice join _thread_state_kinds using (utid) where utid > 0 and dur > 0
    ),
    (
        select t.ts, t.dur, k.key
        from thread_state t join _thread_state_kinds k on t.utid = k.utid and t.state = k.state
            and t.io_wait is k.io_wait and t.blocked_function is k.blocked_function
        where t.dur > 0
    )
) c
join thread_slice s on s.id = c.id
join _thread_state_kinds k on k.key = c.key;
