-- The largest resident memory of each process up to each time.
include perfetto module counters.intervals;
include perfetto module linux.memory.process;

create perfetto view memory_rss_high_watermark_per_process as
select i.ts, i.dur, p.upid, p.pid, p.name as process_name, cast(i.value as int) as rss_high_watermark
from counter_leading_intervals!((
    select row_number() over (order by ts, upid) as id, ts, upid as track_id,
        max(coalesce(file_rss, 0) + coalesce(anon_rss, 0) + coalesce(shmem_rss, 0))
            over (partition by upid order by ts) as value
    from _memory_of_processes
)) i
join process p on p.upid = i.track_id;
