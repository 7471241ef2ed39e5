-- How long it took to clone the buffers of a session, since the clone or its trigger began.
create perfetto table traced_clone_flush_latency as
select done.idx as buffer_id, done.value - started.value as duration_ns
from stats done join stats started
where done.name = 'traced_buf_clone_done_timestamp_ns'
    and started.name = 'traced_clone_started_timestamp_ns' and started.value <> 0
order by done.idx;

create perfetto table traced_trigger_clone_flush_latency as
select done.idx as buffer_id, done.value - fired.value as duration_ns
from stats done join stats fired
where done.name = 'traced_buf_clone_done_timestamp_ns'
    and fired.name = 'traced_clone_trigger_timestamp_ns' and fired.value <> 0
order by done.idx;
