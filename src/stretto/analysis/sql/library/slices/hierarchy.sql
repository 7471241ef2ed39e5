-- Slices with the slices around and inside them.
create perfetto function _slice_ancestor_and_self(slice_id LONG)
returns table(
    id LONG, ts LONG, dur LONG, track_id LONG, category STRING, name STRING, depth LONG,
    parent_id LONG, arg_set_id LONG, thread_ts LONG, thread_dur LONG) as
select id, ts, dur, track_id, category, name, depth, parent_id, arg_set_id, thread_ts, thread_dur
from slice where id = $slice_id
union all
select id, ts, dur, track_id, category, name, depth, parent_id, arg_set_id, thread_ts, thread_dur
from ancestor_slice($slice_id);

create perfetto function _slice_descendant_and_self(slice_id LONG)
returns table(
    id LONG, ts LONG, dur LONG, track_id LONG, category STRING, name STRING, depth LONG,
    parent_id LONG, arg_set_id LONG, thread_ts LONG, thread_dur LONG) as
select id, ts, dur, track_id, category, name, depth, parent_id, arg_set_id, thread_ts, thread_dur
from slice where id = $slice_id
union all
select id, ts, dur, track_id, category, name, depth, parent_id, arg_set_id, thread_ts, thread_dur
from descendant_slice($slice_id);

-- The slices in which a column is not NULL. The parent of each is the nearest of them around it.
create perfetto macro _slice_remove_nulls_and_reparent(
    slice_table TableOrSubquery, column_name ColumnName)
returns TableOrSubquery as
(
    with recursive kept as (select * from $slice_table where $column_name is not null),
    outward(id, at) as (
        select id, parent_id from kept where parent_id is not null
        union all
        select outward.id, slice.parent_id from outward join slice on slice.id = outward.at
        where slice.parent_id is not null and outward.at not in (select id from kept))
    select kept.id, parent.id as parent_id, coalesce(parent.depth, 0) as depth,
        kept.$column_name as $column_name
    from kept
    left join (select o.id, k.id as parent_id from outward o join kept k on k.id = o.at) found
        on found.id = kept.id
    left join kept parent on parent.id = found.parent_id
    order by kept.id
);
