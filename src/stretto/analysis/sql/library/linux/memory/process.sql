-- Resident and swapped memory of processes over time.
create perfetto macro _memory_counter(counter Expr, column ColumnName)
returns TableOrSubquery as
(
    select ts, lead(ts, 1, trace_end() + 1) over (partition by track_id order by ts) - ts as dur, upid,
        value as $column
    from counter join process_counter_track t on counter.track_id = t.id
    where t.name = $counter
);

create perfetto view _anon_rss as
select * from _memory_counter!('mem.rss.anon', anon_rss);

create perfetto view _file_rss as
select * from _memory_counter!('mem.rss.file', file_rss);

create perfetto view _shmem_rss as
select * from _memory_counter!('mem.rss.shmem', shmem_rss);

create perfetto view _swap as
select * from _memory_counter!('mem.swap', swap);

create virtual table _anon_and_swap
using span_outer_join(_anon_rss partitioned upid, _swap partitioned upid);

create virtual table _anon_swap_and_file
using span_outer_join(_anon_and_swap partitioned upid, _file_rss partitioned upid);

create virtual table _resident_and_swapped
using span_outer_join(_anon_swap_and_file partitioned upid, _shmem_rss partitioned upid);

create perfetto table _memory_of_processes as
select ts, dur, upid, cast(anon_rss as int) as anon_rss, cast(file_rss as int) as file_rss,
    cast(shmem_rss as int) as shmem_rss, cast(swap as int) as swap
from _resident_and_swapped;

create perfetto view memory_rss_and_swap_per_process as
select m.ts, m.dur, m.upid, process.pid, process.name as process_name, anon_rss, file_rss,
    shmem_rss, file_rss + anon_rss + coalesce(shmem_rss, 0) as rss, swap,
    anon_rss + coalesce(swap, 0) as anon_rss_and_swap,
    anon_rss + file_rss + coalesce(shmem_rss, 0) + coalesce(swap, 0) as rss_and_swap
from _memory_of_processes m join process using (upid);
