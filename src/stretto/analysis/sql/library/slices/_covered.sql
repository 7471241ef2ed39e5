-- How much of each slice spans cover. The spans of a key don't overlap each other; slices may.
-- The covered time up to t is the sum of t - begin over all begins up to t, less that of the ends.
create perfetto macro _covered_time(slices TableOrSubquery, spans TableOrSubquery)
returns TableOrSubquery as
(
    with changes as (
        select key, ts, 1 as n, ts as at, null as id, 0 as sign from $spans
        union all
        select key, ts + dur, -1, -(ts + dur), null, 0 from $spans
        union all
        select key, ts, 0, 0, id, -1 from $slices
        union all
        select key, ts + dur, 0, 0, id, 1 from $slices
    ),
    sums as (
        select id, key, sign, ts * sum(n) over up_to - sum(at) over up_to as covered
        from changes window up_to as (partition by key order by ts)
    )
    select id, key, sum(sign * covered) as covered
    from sums where id is not null group by id, key having sum(sign * covered) > 0
);

-- The time of each key that its spans cover, each moment once, and how many spans cover it.
create perfetto macro _merged_spans(spans TableOrSubquery)
returns TableOrSubquery as
(
    select key, min(ts) as ts, max(ts_end) - min(ts) as dur, count(*) as merged
    from (
        select key, ts, ts_end,
            sum(is_first) over (partition by key order by ts, ts_end) as number
        from (
            select key, ts, ts + dur as ts_end,
                coalesce(ts > max(ts + dur) over (
                    partition by key order by ts, ts + dur
                    rows between unbounded preceding and 1 preceding), 1) as is_first
            from $spans
        )
    )
    group by key, number
);
