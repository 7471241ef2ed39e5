include perfetto module callstacks.stack_profile;

-- The samples of all profilers of CPUs.
create perfetto table cpu_profiling_samples as
select row_number() over (order by s.ts) as id, s.ts, s.utid, s.ucpu, s.callsite_id, t.tid,
    t.name as thread_name, c.cpu
from (
    select ts, utid, cpu as ucpu, callsite_id from perf_sample
    union all select ts, utid, cpu, callsite_id from instruments_sample
    union all select ts, utid, null, callsite_id from cpu_profile_stack_sample
) s left join thread t using (utid) left join cpu c using (ucpu)
order by s.ts;

create perfetto table _cpu_profiling_self_callsites as
select * from _callstacks_for_callsites!((select callsite_id from cpu_profiling_samples))
order by id;

create perfetto table cpu_profiling_summary_tree as
select r.id, r.parent_id, r.name, r.mapping_name, r.source_file, r.line_number, r.self_count,
    a.cumulative_count
from _cpu_profiling_self_callsites r
join _callstacks_self_to_cumulative!(_cpu_profiling_self_callsites) a using (id)
order by r.id;
