-- Each value of a counter, as a floating-point number, with the time until the next value of its
-- track.
create perfetto macro counter_leading_intervals(counters TableOrSubquery)
returns TableOrSubquery as
(
    select id, ts, coalesce(lead(ts) over (partition by track_id order by ts, id), trace_end()) - ts
        as dur, track_id, cast(value as double) as value,
        lead(cast(value as double)) over (partition by track_id order by ts, id) as next_value,
        cast(value as double)
            - lag(cast(value as double)) over (partition by track_id order by ts, id) as delta_value
    from $counters
);
