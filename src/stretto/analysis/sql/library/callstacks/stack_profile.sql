-- The nodes of all stacks: the functions of each callsite, from the innermost inlined one (place 1)
-- to the one that they are inlined in.
create perfetto table _callstack_spc_nodes as
select row_number() over (order by c.id, s.id) - 1 as id, c.id as callsite_id,
    c.parent_id as parent_callsite_id,
    row_number() over (partition by c.id order by s.id) as place,
    count(*) over (partition by c.id) as places,
    coalesce(s.name, f.deobfuscated_name, f.name, '[Unknown]') as name, f.mapping as mapping_id,
    s.source_file, s.line_number
from stack_profile_callsite c join stack_profile_frame f on c.frame_id = f.id
left join stack_profile_symbol s using (symbol_set_id);

create perfetto table _callstack_spc_forest as
select n.id, coalesce(o.id, p.id) as parent_id, n.name, n.mapping_id, n.source_file,
    n.line_number, 0 as column_number, n.callsite_id,
    n.place = 1 as is_leaf_function_in_callsite_frame
from _callstack_spc_nodes n
left join _callstack_spc_nodes o on o.callsite_id = n.callsite_id and o.place = n.place + 1
left join _callstack_spc_nodes p
    on n.place = n.places and p.callsite_id = n.parent_callsite_id and p.place = 1
order by n.id;

-- The nodes of the stacks of samples.
create perfetto macro _callstacks_for_stack_profile_samples(spc_samples TableOrSubquery)
returns TableOrSubquery as
(
    with recursive reached(id) as (
        select f.id from $spc_samples s join _callstack_spc_forest f using (callsite_id)
        where f.is_leaf_function_in_callsite_frame
        union
        select f.parent_id from reached r join _callstack_spc_forest f using (id)
        where f.parent_id is not null
    )
    select f.id, f.parent_id, f.callsite_id, f.name, m.name as mapping_name, f.source_file,
        f.line_number, f.is_leaf_function_in_callsite_frame
    from reached join _callstack_spc_forest f using (id)
    join stack_profile_mapping m on f.mapping_id = m.id
);

-- The same, with the number of samples that end at each node.
create perfetto macro _callstacks_for_callsites(samples TableOrSubquery)
returns TableOrSubquery as
(
    with counts as (select callsite_id, count(*) as n from $samples group by callsite_id)
    select c.id, c.parent_id, c.name, c.mapping_name, c.source_file, c.line_number,
        iif(c.is_leaf_function_in_callsite_frame, coalesce(n, 0), 0) as self_count
    from _callstacks_for_stack_profile_samples!(counts) c left join counts using (callsite_id)
);

-- The number of samples in each node and below it.
create perfetto macro _callstacks_self_to_cumulative(callstacks TableOrSubquery)
returns TableOrSubquery as
(
    with recursive above(id, n) as (
        select id, self_count from $callstacks where self_count > 0
        union all
        select c.parent_id, a.n from above a join $callstacks c using (id)
        where c.parent_id is not null
    )
    select id, sum(n) as cumulative_count from above group by id
);
