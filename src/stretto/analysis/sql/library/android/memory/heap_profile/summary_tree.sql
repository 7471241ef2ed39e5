include perfetto module callstacks.stack_profile;

create perfetto table _android_heap_profile_raw_callstacks as
with metrics as (
    select callsite_id, sum(size) as size, sum(max(size, 0)) as alloc_size
    from heap_profile_allocation group by callsite_id
)
select c.id, c.parent_id, c.name, c.mapping_name, c.source_file, c.line_number,
    coalesce(m.size, 0) as self_size, coalesce(m.alloc_size, 0) as self_alloc_size
from _callstacks_for_stack_profile_samples!(metrics) c left join metrics m using (callsite_id);

-- The bytes that were allocated and not freed, and all that were allocated, in each node of the
-- stacks (self) and below it (cumulative).
create perfetto table android_heap_profile_summary_tree as
with recursive above(id, size, alloc_size) as (
    select id, self_size, self_alloc_size from _android_heap_profile_raw_callstacks
    union all
    select c.parent_id, a.size, a.alloc_size
    from above a join _android_heap_profile_raw_callstacks c using (id)
    where c.parent_id is not null
), sums as (
    select id, sum(size) as cumulative_size, sum(alloc_size) as cumulative_alloc_size
    from above group by id
)
select r.id, r.parent_id, r.name, r.mapping_name, r.source_file, r.line_number, r.self_size,
    s.cumulative_size, r.self_alloc_size, s.cumulative_alloc_size
from _android_heap_profile_raw_callstacks r join sums s using (id)
order by r.id;
