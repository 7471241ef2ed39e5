-- Names of scheduling states.
create perfetto function sched_state_to_human_readable_string(state STRING)
returns STRING as
select case $state
    when 'Running' then 'Running'
    when 'R' then 'Runnable'
    when 'R+' then 'Runnable (Preempted)'
    when 'S' then 'Sleeping'
    when 'D' then 'Uninterruptible Sleep'
    when 'T' then 'Stopped'
    when 't' then 'Traced'
    when 'X' then 'Exit (Dead)'
    when 'Z' then 'Exit (Zombie)'
    when 'x' then 'Task Dead'
    when 'I' then 'Idle'
    when 'K' then 'Wakekill'
    when 'W' then 'Waking'
    when 'P' then 'Parked'
    when 'N' then 'No Load'
    else $state
end;

create perfetto function sched_state_io_to_human_readable_string(sched_state STRING, io_wait BOOL)
returns STRING as
select coalesce(sched_state_to_human_readable_string($sched_state), '') || case $io_wait
    when 1 then ' (IO)'
    when 0 then ' (non-IO)'
    else ''
end;
