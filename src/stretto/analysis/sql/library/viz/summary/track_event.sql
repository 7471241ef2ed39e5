-- The tracks of track events in the order in which a user interface shows them.
create perfetto table _first_events as
select track_id, min(ts) as ts
from (select track_id, ts from slice union all select track_id, ts from counter)
group by track_id;

create perfetto table _event_tracks as
select t.id, t.name, t.parent_id, t.type, t.source_arg_set_id, t.dimension_arg_set_id,
    coalesce(t.track_group_id, -1 - t.id) as track_group,
    extract_arg(t.source_arg_set_id, 'child_ordering') as child_ordering,
    coalesce(cast(extract_arg(t.source_arg_set_id, 'sibling_order_rank') as int), 0) as place,
    first.ts as first_ts
from track t left join _first_events first on first.track_id = t.id
where t.type glob '*_track_event';

create perfetto table _track_event_tracks_ordered_groups as
with placed as (
    select t.*, row_number() over (
        partition by t.parent_id
        order by iif(p.child_ordering = 'explicit', t.place, null),
            iif(p.child_ordering = 'chronological', t.first_ts, null),
            iif(p.child_ordering in ('explicit', 'chronological'), null, t.name)) as order_id
    from _event_tracks t left join _event_tracks p on t.parent_id = p.id
)
select min(cast(extract_arg(t.dimension_arg_set_id, 'upid') as int)) as upid,
    min(cast(extract_arg(t.dimension_arg_set_id, 'utid') as int)) as utid,
    min(t.parent_id) as parent_id, max(t.type glob '*counter*') as is_counter,
    min(t.name) as name, min(extract_arg(t.source_arg_set_id, 'description')) as description,
    min(c.unit) as unit,
    min(extract_arg(t.source_arg_set_id, 'builtin_counter_type')) as builtin_counter_type,
    min(extract_arg(t.source_arg_set_id, 'y_axis_share_key')) as y_axis_share_key,
    max(t.first_ts is not null) as has_data,
    max(t.id in (select parent_id from _event_tracks where parent_id is not null)) as has_children,
    group_concat(t.id) as track_ids, min(t.order_id) as order_id
from placed t left join counter_track c on c.id = t.id
group by t.track_group
order by 3, 13;
