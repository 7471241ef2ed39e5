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
