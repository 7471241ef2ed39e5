include perfetto module slices._covered;

-- How much of each slice the spans of other keys cover: what any spans cover, less the time in which
-- only those of its own key do. The keys are numbers from -1 on. This text is for DuckDB: the covered
-- time up to a moment is that of the latest piece before it, which an ASOF join finds.
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
    ),
    sums as (
        select ts, keys, sum(iif(keys > 0, dur, 0)) over up_to as covered
        from pieces
        window up_to as (order by ts rows between unbounded preceding and 1 preceding)
    ),
    own_sums as (
        select only_key as key, ts, dur, sum(dur) over up_to as covered
        from pieces where keys = 1
        window up_to as (
            partition by only_key order by ts rows between unbounded preceding and 1 preceding)
    ),
    moments as (
        select id, key, ts, -1 as sign from $slices
        union all select id, key, ts + dur, 1 from $slices
    ),
    covered_up_to as (
        select m.id, m.sign, coalesce(s.covered, 0) + iif(s.keys > 0, m.ts - s.ts, 0)
            - coalesce(o.covered, 0)
            - iif(o.ts is null, 0, iif(m.ts - o.ts < o.dur, m.ts - o.ts, o.dur)) as covered
        from moments m left join sums s on _latest(m.ts >= s.ts)
        left join own_sums o on _latest(m.key = o.key and m.ts >= o.ts)
    )
    select id, sum(sign * covered) as covered
    from covered_up_to group by id having sum(sign * covered) > 0
);
