-- Slices with their threads and processes.
create perfetto view thread_slice as
select slice.id, slice.ts, slice.dur, slice.category, slice.name, slice.track_id,
    thread_track.name as track_name, thread.name as thread_name, thread.utid, thread.tid,
    thread.is_main_thread, process.name as process_name, process.upid, process.pid, slice.depth,
    slice.parent_id, slice.arg_set_id, slice.thread_ts, slice.thread_dur
from slice
join thread_track on slice.track_id = thread_track.id
join thread using (utid)
left join process using (upid);

create perfetto view process_slice as
select slice.id, slice.ts, slice.dur, slice.category, slice.name, slice.track_id,
    process_track.name as track_name, process.name as process_name, process.upid, process.pid,
    slice.depth, slice.parent_id, slice.arg_set_id, slice.thread_ts, slice.thread_dur
from slice
join process_track on slice.track_id = process_track.id
join process using (upid);

create perfetto view thread_or_process_slice as
select id, ts, dur, category, name, track_id, track_name, thread_name, utid, tid, process_name,
    upid, pid, depth, parent_id, arg_set_id
from thread_slice
union all
select id, ts, dur, category, name, track_id, track_name, null as thread_name, null as utid,
    null as tid, process_name, upid, pid, depth, parent_id, arg_set_id
from process_slice;
