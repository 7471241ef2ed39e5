include perfetto module callstacks.stack_profile;

create perfetto table _linux_perf_raw_callstacks as
select * from _callstacks_for_callsites!((select callsite_id from perf_sample)) order by id;

create perfetto table linux_perf_samples_summary_tree as
select r.id, r.parent_id, r.name, r.mapping_name, r.source_file, r.line_number, r.self_count,
    a.cumulative_count
from _linux_perf_raw_callstacks r
join _callstacks_self_to_cumulative!(_linux_perf_raw_callstacks) a using (id)
order by r.id;
