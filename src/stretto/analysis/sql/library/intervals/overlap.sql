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
    order by ts
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
