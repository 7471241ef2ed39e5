-- The arguments of _interval_intersect! are lists, so it is written in Python (list_macros.py).
include perfetto module intervals.overlap;

-- The part of each interval that lies between `ts` and `ts + dur`.
create perfetto macro _interval_intersect_single(ts Expr, dur Expr, t TableOrSubquery)
returns TableOrSubquery as
(
    select id, start_ts as ts, end_ts - start_ts as dur
    from (
        select id, dur, iif(ts > $ts, ts, $ts) as start_ts,
            iif(ts + dur < $ts + $dur, ts + dur, $ts + $dur) as end_ts
        from $t
    )
    where start_ts < end_ts or dur = 0 and start_ts = end_ts and start_ts < $ts + $dur
);

-- Which intervals are open between each two times at which one begins or ends.
create perfetto macro interval_self_intersect(intervals TableOrSubquery)
returns TableOrSubquery as
(
    with bounds as (
        select ts, row_number() over (order by ts) as group_id, lead(ts) over (order by ts) as next_ts
        from (select ts from $intervals union select ts + dur from $intervals))
    select b.ts, coalesce(b.next_ts - b.ts, 0) as dur, b.group_id, i.id,
        i.ts + i.dur = b.ts as interval_ends_at_ts
    from bounds b join $intervals i on i.ts <= b.ts and b.ts <= i.ts + i.dur
);
