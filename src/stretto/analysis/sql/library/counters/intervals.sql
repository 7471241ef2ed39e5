-- Each value of a counter, as a floating-point number, with the time until the next value of its
-- track. Of equal values in a row only the first two have rows, as in the trace processor.
create perfetto macro counter_leading_intervals(counters TableOrSubquery)
returns TableOrSubquery as
(
    select id, ts, coalesce(lead(ts) over (partition by track_id order by ts, id), trace_end()) - ts
        as dur, track_id, value, lead(value) over (partition by track_id order by ts, id) as next_value,
        value - last_value as delta_value
    from (
        select id, ts, track_id, cast(value as double) as value,
            lag(cast(value as double)) over (partition by track_id order by ts, id) as last_value,
            lag(cast(value as double), 2) over (partition by track_id order by ts, id) as second_last
        from $counters
    )
    where value is not last_value or last_value is not second_last
);
