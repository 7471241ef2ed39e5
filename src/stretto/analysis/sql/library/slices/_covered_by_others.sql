include perfetto module slices._covered;

-- How much of each slice the spans of other keys cover: what any spans cover, less the time in which
-- only those of its own key do. The keys are numbers from -1 on.
create perfetto macro _covered_by_others(slices TableOrSubquery, spans TableOrSubquery)
returns TableOrSubquery as
(
    with merged as (select key, ts, dur from _merged_spans!($spans)),
    edges as (
        select key, ts, 1 as n from merged union all select key, ts + dur, -1 from merged),
    pieces as (
        select ts, lead(ts) over (order by ts) - ts as dur, sum(sum(n)) over (order by ts) as keys,
            sum(sum(n * key)) over (order by ts) as only_key
        from edges group by ts
    )
    select id, sum(iif(key = -2, covered, -covered)) as covered
    from _covered_time!(
        (select id, -2 as key, ts, dur from $slices union all select id, key, ts, dur from $slices),
        (select -2 as key, ts, dur from pieces where keys > 0
            union all select only_key, ts, dur from pieces where keys = 1))
    group by id having sum(iif(key = -2, covered, -covered)) > 0
);
