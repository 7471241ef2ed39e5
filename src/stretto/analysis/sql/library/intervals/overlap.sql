-- The number of open intervals, at each time at which it changes. A duration of -1 means no end.
create perfetto macro intervals_overlap_count(
    segments TableOrSubquery, ts_column ColumnName, dur_column ColumnName)
returns TableOrSubquery as
(
    select ts, sum(sum(change)) over (order by ts) as value
    from (
        select $ts_column as ts, 1 as change from $segments
        union all
        select $ts_column + $dur_column as ts, -1 as change from $segments where $dur_column <> -1
    )
    group by ts
    order by ts
);

create perfetto macro intervals_overlap_count_by_group(
    segments TableOrSubquery, ts_column ColumnName, dur_column ColumnName,
    group_column ColumnName)
returns TableOrSubquery as
(
    select ts, sum(sum(change)) over (partition by group_name order by ts) as value, group_name
    from (
        select $ts_column as ts, 1 as change, $group_column as group_name from $segments
        union all
        select $ts_column + $dur_column as ts, -1 as change, $group_column as group_name
        from $segments where $dur_column <> -1
    )
    group by group_name, ts
    order by ts, group_name
);

create perfetto macro interval_merge_overlapping(intervals TableOrSubquery, epsilon Expr)
returns TableOrSubquery as
(
    select min(ts) as ts, max(ts_end) - min(ts) as dur
    from (
        select ts, ts_end, sum(is_first) over (order by ts, ts_end) as number
        from (
            select ts, ts + dur as ts_end,
                coalesce(ts > max(ts + dur) over (
                    order by ts, ts + dur rows between unbounded preceding and 1 preceding)
                    + $epsilon, 1) as is_first
            from $intervals
        )
    )
    group by number
    order by 1
);

-- Whether two of the intervals overlap.
create perfetto macro _intervals_overlap_in_table(intervals TableOrSubquery)
returns TableOrSubquery as
(
    select coalesce(max(previous_end > ts), 0) as has_overlaps
    from (select ts, lag(ts + dur) over (order by ts) as previous_end from $intervals)
);

-- Children with their roots, and roots without children. Those without a duration are left out.
create perfetto macro _intervals_merge_root_and_children(
    roots_table TableOrSubquery, children_table TableOrSubquery)
returns TableOrSubquery as
(
    select r.id as root_id, r.ts as root_ts, r.dur as root_dur, c.id, c.parent_id, c.ts, c.dur
    from (select * from $roots_table where dur > 0) r
    left join (select * from $children_table where dur > 0) c on c.root_id = r.id
);

-- Children with the roots that they overlap and whose key is the same.
create perfetto macro _intervals_merge_root_and_children_by_intersection(
    roots_table TableOrSubquery, children_table TableOrSubquery, key ColumnName)
returns TableOrSubquery as
(
    select ts, ts_end - ts as dur, id, parent_id, root_id, root_ts, root_dur, $key
    from (
        select iif(c.ts > r.ts, c.ts, r.ts) as ts,
            iif(c.ts + c.dur < r.ts + r.dur, c.ts + c.dur, r.ts + r.dur) as ts_end, c.id,
            coalesce(c.parent_id, r.id) as parent_id, r.id as root_id, r.ts as root_ts,
            r.dur as root_dur, c.$key
        from (select * from $roots_table where dur > 0) r
        join (select * from $children_table where dur > 0) c on c.$key = r.$key
    )
    where ts < ts_end
);

-- The time of each root in pieces; each piece has the id of the innermost interval.
create perfetto macro _intervals_flatten(children_with_roots_table TableOrSubquery)
returns TableOrSubquery as
(
    with nested as (
        select * from $children_with_roots_table where root_dur > 0 and coalesce(dur, 1) > 0),
    cuts as (
        select root_id, root_ts as cut from nested union select root_id, root_ts + root_dur from nested
        union select root_id, ts from nested where id is not null
        union select root_id, ts + dur from nested where id is not null),
    pieces as (
        select root_id, cut, lead(cut) over (partition by root_id order by cut) as next_cut from cuts),
    ranked as (
        select p.root_id, n.id, p.cut, p.next_cut,
            row_number() over (partition by p.root_id, p.cut order by n.ts desc, n.dur) as place
        from pieces p left join nested n
            on n.root_id = p.root_id and n.ts <= p.cut and n.ts + n.dur >= p.next_cut
        where p.next_cut is not null)
    select root_id, coalesce(id, root_id) as id, cut as ts, next_cut - cut as dur
    from ranked where place = 1
);
