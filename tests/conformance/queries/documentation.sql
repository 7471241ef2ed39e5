-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/metrics.md#L184
CREATE VIEW view_defined_in_foo AS
SELECT *
FROM slice
LIMIT 1;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/metrics.md#L236
CREATE VIEW choreographer_slices AS
SELECT *
FROM slice
WHERE slice.name = 'Chroeographer#doFrame';
CREATE VIEW long_choreographer_slices AS
SELECT *
FROM choreographer_slices
WHERE dur > 1e6;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/metrics.md#L357
CREATE VIEW top_five_processes_by_cpu AS
SELECT
  process.name as process_name,
  CAST(SUM(sched.dur) / 1e6 as INT64) as cpu_time_ms,
  COUNT(DISTINCT utid) as num_threads
FROM sched
INNER JOIN thread USING(utid)
INNER JOIN process USING(upid)
GROUP BY process.name
ORDER BY cpu_time_ms DESC
LIMIT 5;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/metrics.md#L401
CREATE VIEW top_five_processes_output AS
SELECT TopProcesses(
  'process_info', (
    SELECT RepeatedField(
      ProcessInfo(
        'process_name', process_name,
        'cpu_time_ms', cpu_time_ms,
        'num_threads', num_threads
      )
    )
    FROM top_five_processes_by_cpu
  )
);

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/metrics.md#L461
CREATE VIEW top_five_processes_by_cpu AS
SELECT
  process.name as process_name,
  CAST(SUM(sched.dur) / 1e6 as INT64) as cpu_time_ms,
  COUNT(DISTINCT utid) as num_threads
FROM sched
INNER JOIN thread USING(utid)
INNER JOIN process USING(upid)
GROUP BY process.name
ORDER BY cpu_time_ms DESC
LIMIT 5;
CREATE VIEW top_five_processes_output AS
SELECT TopProcesses(
  'process_info', (
    SELECT RepeatedField(
      ProcessInfo(
        'process_name', process_name,
        'cpu_time_ms', cpu_time_ms,
        'num_threads', num_threads
      )
    )
    FROM top_five_processes_by_cpu
  )
);

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/perfetto-sql-backcompat.md#L63
select * from ancestor_slice_by_stack((select stack_id from slice where id = 123));

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/perfetto-sql-backcompat.md#L69
select * from ancestor_slice(123);

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/perfetto-sql-backcompat.md#L75
select s2.* from slice s1
join slice s2 on s1.category = s2.category and s1.name = s2.name
where s1.id = 123;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/perfetto-sql-backcompat.md#L123
select name, type from track where name in ('process_track', 'thread_track');

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/perfetto-sql-backcompat.md#L129
select name, 'process_track' as type from process_track
union all
select name, 'thread_track' as type from thread_track;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/perfetto-sql-backcompat.md#L137
select * from track where type = 'track';

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/perfetto-sql-backcompat.md#L143
select * from track where dimension_arg_set_id is null;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/perfetto-sql-getting-started.md#L93
SELECT ts, dur, utid
FROM sched
WHERE cpu = 0
LIMIT 10;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/perfetto-sql-getting-started.md#L108
INCLUDE PERFETTO MODULE sched.with_context;
SELECT ts, dur, cpu, thread_name, process_name
FROM sched_with_thread_process
WHERE thread_name = 'RenderThread'
LIMIT 10;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/perfetto-sql-getting-started.md#L134
SELECT
  s.ts,
  s.utid,
  f.name AS function_name,
  m.name AS binary_name
FROM perf_sample AS s
JOIN stack_profile_callsite AS c ON s.callsite_id = c.id
JOIN stack_profile_frame AS f ON c.frame_id = f.id
JOIN stack_profile_mapping AS m ON f.mapping = m.id
LIMIT 10;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/perfetto-sql-getting-started.md#L154
INCLUDE PERFETTO MODULE stacks.cpu_profiling;
SELECT ts, thread_name, callsite_id
FROM cpu_profiling_samples
LIMIT 10;
SELECT name, mapping_name, self_count, cumulative_count
FROM cpu_profiling_summary_tree
ORDER BY cumulative_count DESC
LIMIT 20;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/perfetto-sql-getting-started.md#L180
SELECT ts, upid, size, count
FROM heap_profile_allocation
WHERE size > 0
ORDER BY size DESC
LIMIT 10;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/perfetto-sql-getting-started.md#L191
SELECT
  a.ts,
  a.size,
  f.name AS function_name,
  m.name AS binary_name
FROM heap_profile_allocation AS a
JOIN stack_profile_callsite AS c ON a.callsite_id = c.id
JOIN stack_profile_frame AS f ON c.frame_id = f.id
JOIN stack_profile_mapping AS m ON f.mapping = m.id
WHERE a.size > 0
LIMIT 10;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/perfetto-sql-getting-started.md#L231
SELECT
  c.name AS class_name,
  SUM(o.self_size) AS total_size,
  COUNT() AS object_count
FROM heap_graph_object AS o
JOIN heap_graph_class AS c ON o.type_id = c.id
WHERE o.reachable
GROUP BY c.name
ORDER BY total_size DESC
LIMIT 10;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/perfetto-sql-getting-started.md#L296
SELECT ts, dur, name FROM slice LIMIT 10;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/perfetto-sql-getting-started.md#L319
INCLUDE PERFETTO MODULE slices.with_context;
SELECT ts, dur, name, thread_name, process_name, tid, pid
FROM thread_slice
WHERE name = 'measure';

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/perfetto-sql-getting-started.md#L327
INCLUDE PERFETTO MODULE slices.with_context;
SELECT ts, dur, name, process_name, pid
FROM process_slice
WHERE name LIKE 'MyEvent%';

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/perfetto-sql-getting-started.md#L337
INCLUDE PERFETTO MODULE slices.with_context;
SELECT ts, dur, name, thread_name, process_name
FROM thread_or_process_slice
WHERE dur > 1000000;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/perfetto-sql-getting-started.md#L357
SELECT tid, name
FROM thread
WHERE utid = 10;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/perfetto-sql-getting-started.md#L366
SELECT upid
FROM counter
JOIN process_counter_track ON process_counter_track.id = counter.track_id
WHERE process_counter_track.name = 'mem.swap' AND value > 1000;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/perfetto-sql-getting-started.md#L375
SELECT thread.name AS thread_name
FROM slice
JOIN thread_track ON slice.track_id = thread_track.id
JOIN thread USING(utid)
WHERE slice.name = 'measure'
GROUP BY thread_name;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/perfetto-sql-getting-started.md#L404
SELECT * FROM slice LIMIT 10;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/perfetto-sql-getting-started.md#L413
INCLUDE PERFETTO MODULE time.conversion;
SELECT name, time_to_ms(dur) AS dur_ms
FROM slice
WHERE dur > time_from_ms(10);

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/perfetto-sql-getting-started.md#L442
SELECT EXTRACT_ARG(arg_set_id, 'prev_comm')
FROM ftrace_event
WHERE name = 'sched_switch';

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/perfetto-sql-getting-started.md#L481
CREATE VIEW sp_sched AS
SELECT ts, dur, cpu, utid
FROM sched;
CREATE VIEW sp_frequency AS
SELECT
  ts,
  lead(ts) OVER (PARTITION BY track_id ORDER BY ts) - ts as dur,
  cpu,
  value as freq
FROM counter
JOIN cpu_counter_track ON counter.track_id = cpu_counter_track.id
WHERE cpu_counter_track.name = 'cpufreq';
CREATE VIRTUAL TABLE sched_with_frequency
USING SPAN_JOIN(sp_sched PARTITIONED cpu, sp_frequency PARTITIONED cpu);
SELECT ts, dur, cpu, utid, freq
FROM sched_with_frequency;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/perfetto-sql-getting-started.md#L563
CREATE VIEW interesting_slices AS
SELECT id, ts, dur, track_id
FROM slice WHERE name LIKE "%interesting slice name%";
SELECT
  *
FROM
  interesting_slices LEFT JOIN
  ancestor_slice(interesting_slices.id) AS ancestor ON ancestor.depth = 0;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/perfetto-sql-getting-started.md#L602
CREATE VIEW interesting_slices AS
SELECT id, ts, dur, track_id
FROM slice WHERE name LIKE "%interesting slice name%";
SELECT
  interesting_slices.*,
  (
    SELECT COUNT(*)
    FROM descendant_slice(interesting_slices.id)
  ) AS total_descendants
FROM interesting_slices;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/perfetto-sql-getting-started.md#L652
SELECT (SELECT COUNT(*) FROM FOLLOWING_FLOW(slice_id)) as following FROM slice;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/perfetto-sql-syntax.md#L125
CREATE PERFETTO TABLE constant_table AS
SELECT column1 as ts, column2 as dur
FROM (
  VALUES
  (100, 10),
  (200, 20)
);
CREATE PERFETTO TABLE slice_sub_table AS
SELECT *
FROM slice
WHERE name = 'foo';

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/perfetto-sql-syntax.md#L149
CREATE PERFETTO TABLE foo(x LONG, y STRING) AS
SELECT 1 as x, 'test' as y;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/perfetto-sql-syntax.md#L175
CREATE PERFETTO TABLE foo AS
SELECT * FROM slice;
CREATE PERFETTO INDEX foo_track ON foo(track_id);
CREATE OR REPLACE PERFETTO INDEX foo_track_and_name ON foo(track_id, name);

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/perfetto-sql-syntax.md#L217
CREATE PERFETTO VIEW foo(x LONG, y STRING) AS
SELECT 1 as x, 'test' as y;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/trace-processor.md#L93
SELECT ts, value FROM counter LIMIT 10;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/trace-summary.md#L280
CREATE PERFETTO VIEW game_frame_stats AS
SELECT
  'game_frame' AS frame_type,
  MIN(dur) AS min_duration_ns,
  MAX(dur) AS max_duration_ns,
  AVG(dur) AS avg_duration_ns
FROM slice
WHERE name = 'game_frame'
GROUP BY 1;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/concepts/buffers.md#L197
select * from stats where name like 'ftrace_cpu_overrun_end';

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/concepts/buffers.md#L232
select * from stats where name = 'traced_buf_trace_writer_packet_loss';

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/concepts/buffers.md#L256
select * from stats where name = 'traced_buf_chunks_overwritten' or name = 'traced_buf_chunks_discarded';

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/concepts/buffers.md#L269
select * from stats where name = 'long_trace_mode_bytes_overwritten';

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/contributing/common-tasks.md#L47
CREATE PERFETTO VIEW android_binder_metrics_by_process(
  process_name STRING,
  pid INT,
  slice_name STRING,
  event_count INT
) AS
SELECT
  process.name AS process_name,
  process.pid AS pid,
  slice.name AS slice_name,
  COUNT(*) AS event_count
FROM slice
JOIN thread_track ON slice.track_id = thread_track.id
JOIN thread ON thread.utid = thread_track.utid
JOIN process ON thread.upid = process.upid
WHERE
  slice.name GLOB 'binder*'
GROUP BY
  process_name,
  slice_name;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/data-sources/android-log.md#L36
select l.ts, t.tid, p.pid, p.name as process, l.prio, l.tag, l.msg
from android_logs as l left join thread as t using(utid) left join process as p using(upid);

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/data-sources/atrace.md#L66
select s.ts, t.name as thread_name, t.tid, s.name as slice_name, s.dur
from slice as s left join thread_track as trk on s.track_id = trk.id
left join thread as t on trk.utid = t.utid;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/data-sources/atrace.md#L83
select ts, p.name as process_name, p.pid, t.name as counter_name, c.value
from counter as c left join process_counter_track as t on c.track_id = t.id
left join process as p on t.upid = p.upid;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/data-sources/battery-counters.md#L67
select ts, t.name, value from counter as c left join counter_track t on c.track_id = t.id;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/data-sources/cpu-freq.md#L99
select ts, t.name, cpu, value from counter as c
left join cpu_counter_track as t on c.track_id = t.id
where t.name = 'cpuidle' or t.name = 'cpufreq';

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/data-sources/cpu-scheduling.md#L38
select ts, dur, cpu, end_state, priority, process.name, thread.name
from sched_slice left join thread using(utid) left join process using(upid);

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/data-sources/java-heap-profiler.md#L50
select c.name, sum(o.self_size)
       from heap_graph_object o join heap_graph_class c on (o.type_id = c.id)
       where reachable = 1 group by 1 order by 2 desc;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/data-sources/memory-counters.md#L26
select c.ts, c.value, t.name as counter_name, p.name as proc_name, p.pid
from counter as c left join process_counter_track as t on c.track_id = t.id
left join process as p using (upid)
where t.name like 'mem.%';

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/data-sources/memory-counters.md#L187
select c.ts, t.name, c.value / 1024 as value_kb from counters as c left join counter_track as t on c.track_id = t.id;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/data-sources/memory-counters.md#L301
SELECT ts, process.name, process.pid
FROM instant
JOIN process_track ON instant.track_id = process_track.id
JOIN process USING (upid)
WHERE instant.name = 'mem.lmk';

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/data-sources/native-heap-profiler.md#L522
select a.callsite_id, a.ts, a.upid, f.name, f.rel_pc, m.build_id, m.name as mapping_name,
        sum(a.size) as space_size, sum(a.count) as space_count
      from heap_profile_allocation a join
           stack_profile_callsite c ON (a.callsite_id = c.id) join
           stack_profile_frame f ON (c.frame_id = f.id) join
           stack_profile_mapping m ON (f.mapping = m.id)
      group by 1, 2, 3, 4, 5, 6, 7 order by space_size desc;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/data-sources/syscalls.md#L26
select ts, dur, t.name as thread, s.name, depth from slices as s
left join thread_track as tt on s.track_id = tt.id
left join thread as t on tt.utid = t.utid
where s.name like 'sys_%';

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/getting-started/android-trace-analysis.md#L74
SELECT *
FROM slice
WHERE name GLOB '*interesting_slice*'
LIMIT 10;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/getting-started/android-trace-analysis.md#L90
SELECT
  name,
  COUNT(dur) AS count_slice,
  AVG(dur) / 1000000 AS avg_dur_ms,
  CAST(MAX(dur) AS DOUBLE) / 1000000 AS max_dur_ms,
  CAST(MIN(dur) AS DOUBLE) / 1000000 AS min_dur_ms,
  PERCENTILE(dur,50) / 1000000 AS P50_dur_ms,
  PERCENTILE(dur,90) / 1000000 AS P90_dur_ms,
  PERCENTILE(dur,99) / 1000000 AS P99_dur_ms
FROM slice
WHERE name REGEXP '.*interesting_slice.*'
GROUP BY name
ORDER BY count_slice DESC
LIMIT 10;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/getting-started/android-trace-analysis.md#L111
SELECT
  s.id AS id,
  s.ts AS ts,
  s.track_id AS track_id,
  s.slice_id AS slice_id,
  s.dur AS dur,
  s.name AS slice,
  p.name AS process,
  t.name AS thread
FROM slice s
JOIN thread_track tt ON s.track_id = tt.id
JOIN thread t on tt.utid = t.utid
JOIN process p on t.upid = p.upid
WHERE s.name LIKE '%interesting_slice%'
AND p.name = 'com.example.myapp'
AND t.is_main_thread
ORDER BY dur DESC;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/getting-started/android-trace-analysis.md#L298
SELECT blocked_function, COUNT(thread_state.id), SUM(dur)
FROM thread_state
JOIN thread USING (utid)
JOIN process USING (upid)
WHERE process.name = "com.google.android.youtube"
GROUP BY blocked_function
ORDER BY SUM(dur) DESC;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/getting-started/android-trace-analysis.md#L376
INCLUDE PERFETTO MODULE slices.with_context;
SELECT
  ts,
  dur,
  SUBSTR(name, INSTR(name, ' ') + 1, INSTR(name, ' to ') - INSTR(name, ' ') - 1) as process_name,
  SUBSTR(name, INSTR(name, ' to ') + 4) AS group_id
FROM thread_slice
WHERE process_name = 'system_server'
AND thread_name = 'OomAdjuster'
AND name LIKE 'setProcessGroup %';

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/getting-started/android-trace-analysis.md#L406
INCLUDE PERFETTO MODULE slices.with_context;
SELECT
  ts,
  dur,
  SUBSTR(name, INSTR(name, ' ') + 1, INSTR(name, ' to ') - INSTR(name, ' ') - 1) as process_name,
  CASE SUBSTR(name, INSTR(name, ' to ') + 4)
    WHEN '-1' THEN 'SP_DEFAULT'
    WHEN '0' THEN 'SP_BACKGROUND'
    WHEN '1' THEN 'SP_FOREGROUND'
    WHEN '2' THEN 'SP_SYSTEM'
    WHEN '3' THEN 'SP_AUDIO_APP'
    WHEN '4' THEN 'SP_AUDIO_SYS'
    WHEN '5' THEN 'SP_TOP_APP'
    WHEN '6' THEN 'SP_RT_APP'
    WHEN '7' THEN 'SP_RESTRICTED'
    WHEN '8' THEN 'SP_FOREGROUND_WINDOW'
    ELSE SUBSTR(name, INSTR(name, ' to ') + 4)
  END AS group_name
FROM thread_slice
WHERE process_name = 'system_server'
AND thread_name = 'OomAdjuster'
AND name LIKE 'setProcessGroup %';

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/getting-started/android-trace-analysis.md#L444
INCLUDE PERFETTO MODULE slices.with_context;
DROP VIEW IF EXISTS setProcessGroup;
CREATE VIEW setProcessGroup AS
SELECT
  ts,
  dur,
  SUBSTR(name, INSTR(name, ' ') + 1, INSTR(name, ' to ') - INSTR(name, ' ') - 1) as process_name,
  LEAD(ts) OVER (PARTITION BY SUBSTR(name, INSTR(name, ' ') + 1, INSTR(name, ' to ') - INSTR(name, ' ') - 1) ORDER BY ts) AS next_ts,
  CASE SUBSTR(name, INSTR(name, ' to ') + 4)
    WHEN '-1' THEN 'SP_DEFAULT'
    WHEN '0' THEN 'SP_BACKGROUND'
    WHEN '1' THEN 'SP_FOREGROUND'
    WHEN '2' THEN 'SP_SYSTEM'
    WHEN '3' THEN 'SP_AUDIO_APP'
    WHEN '4' THEN 'SP_AUDIO_SYS'
    WHEN '5' THEN 'SP_TOP_APP'
    WHEN '6' THEN 'SP_RT_APP'
    WHEN '7' THEN 'SP_RESTRICTED'
    WHEN '8' THEN 'SP_FOREGROUND_WINDOW'
    ELSE SUBSTR(name, INSTR(name, ' to ') + 4)
  END AS group_name
FROM thread_slice
WHERE process_name = 'system_server'
AND thread_name = 'OomAdjuster'
AND name LIKE 'setProcessGroup %';
SELECT
  ts,
  dur,
  process_name,
  group_name,
  next_ts,
  IIF(
    next_ts IS NOT NULL,
    next_ts - ts,
    (SELECT MAX(ts + dur) FROM slice) - ts
  ) AS dur_until_next
FROM setProcessGroup;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/getting-started/android-trace-analysis.md#L624
INCLUDE PERFETTO MODULE linux.cpu.utilization.process;
select
  name AS process_name,
  SUM(megacycles) AS sum_megacycles,
  time_to_ms(SUM(runtime)) AS runtime_msec,
  MIN(min_freq) AS min_freq,
  MAX(max_freq) AS max_freq
FROM cpu_cycles_per_process
JOIN process USING (upid)
WHERE process_name = 'system-server'
GROUP BY process_name;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/getting-started/android-trace-analysis.md#L660
INCLUDE PERFETTO MODULE linux.cpu.utilization.slice;
SELECT
  name,
  millicycles,
  megacycles,
  process_name
FROM cpu_cycles_per_thread_slice
WHERE process_name = 'com.google.android.GoogleCamera'
ORDER BY megacycles DESC;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/getting-started/android-trace-analysis.md#L685
select
  COUNT(*) as num_idle_exits
FROM counter AS c
LEFT JOIN cpu_counter_track AS t
ON c.track_id = t.id
WHERE t.name = 'cpuidle'
AND value = 4294967295;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/getting-started/android-trace-analysis.md#L714
SELECT
  COUNT(*),
  cpu
FROM sched_slice
JOIN thread USING (utid)
JOIN process USING (upid)
WHERE process.name = 'com.google.android.GoogleCamera'
GROUP BY cpu;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/getting-started/converting.md#L539
SELECT ts, value FROM counter
JOIN track ON counter.track_id = track.id
WHERE track.name = 'Outstanding Network Requests';

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/getting-started/converting.md#L660
SELECT slice_out.name AS source_slice, slice_in.name AS dest_slice
FROM flow
JOIN slice AS slice_out ON flow.slice_out = slice_out.id
JOIN slice AS slice_in ON flow.slice_in = slice_in.id;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/getting-started/converting.md#L777
SELECT slice.ts, slice.dur, slice.name, track.name AS track_name
FROM slice
JOIN track ON slice.track_id = track.id
WHERE track.name IN ('Main System', 'Subsystem A', 'Subsystem B', 'Detail A.1')
ORDER BY slice.ts;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/getting-started/converting.md#L894
SELECT slice.ts, slice.dur, slice.name, track.name AS service
FROM slice
JOIN track ON slice.track_id = track.id
WHERE track.name LIKE '%Request%' OR track.name LIKE '%Service%'
ORDER BY slice.ts;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/getting-started/converting.md#L1015
SELECT slice.name, EXTRACT_ARG(slice.arg_set_id, 'debug.query_id') AS query_id
FROM slice
JOIN track ON slice.track_id = track.id
WHERE track.name = 'Debug Annotations Example';

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/getting-started/converting.md#L1099
SELECT slice.name,
       EXTRACT_ARG(slice.arg_set_id, 'debug.config.database') AS database,
       EXTRACT_ARG(slice.arg_set_id, 'debug.server_list[0]') AS first_server
FROM slice
JOIN track ON slice.track_id = track.id
WHERE track.name = 'Nested Debug Annotations';

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/getting-started/converting.md#L1320
SELECT name, ifnull(str_value, cast(int_value as text)) AS value
FROM metadata
WHERE name GLOB 'trace_attribute.*';

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/getting-started/cpu-profiling.md#L390
INCLUDE PERFETTO MODULE linux.perf.samples;
SELECT
  id,
  parent_id,
  name,
  mapping_name,
  source_file,
  line_number,
  self_count,
  cumulative_count
FROM linux_perf_samples_summary_tree;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/getting-started/ftrace.md#L312
SELECT * FROM ftrace_event JOIN args USING (arg_set_id);

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/getting-started/ftrace.md#L415
SELECT *
FROM counter
JOIN counter_track ct ON ct.id = counter.track_id
WHERE ct.type = 'ticker';

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/getting-started/in-app-tracing.md#L262
SELECT
  dur AS duration_ns,
  EXTRACT_ARG(slice.arg_set_id, 'debug.player_number') AS player_number
FROM slice
WHERE slice.name = 'DrawPlayer';

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/getting-started/in-app-tracing.md#L277
SELECT ts AS timestamp_ns, value AS frame_rate
FROM counter
JOIN track ON track.id = counter.track_id
WHERE name = 'Framerate';

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/getting-started/periodic-trace-snapshots.md#L294
INCLUDE PERFETTO MODULE linux.cpu.frequency;
SELECT *
FROM cpu_frequency_counters
LIMIT 100;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/getting-started/periodic-trace-snapshots.md#L314
SELECT ts, t.name, value
FROM counter AS c
LEFT JOIN counter_track AS t ON c.track_id = t.id
WHERE t.name GLOB 'batt.*';

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/getting-started/periodic-trace-snapshots.md#L323
SELECT ts, t.name, value
FROM counter AS c
LEFT JOIN counter_track AS t ON c.track_id = t.id
WHERE t.name GLOB '*thermal*';

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/getting-started/system-tracing.md#L224
INCLUDE PERFETTO MODULE sched.with_context;
SELECT *
FROM sched_with_thread_process
LIMIT 100;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/getting-started/system-tracing.md#L244
INCLUDE PERFETTO MODULE slices.with_context;
SELECT *
FROM thread_or_process_slice
LIMIT 100;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/getting-started/system-tracing.md#L254
SELECT *
FROM counter
LIMIT 100;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/learning-more/multi-machine-tracing.md#L205
SELECT id, raw_id, sysname, release, arch, num_cpus FROM machine;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/learning-more/multi-machine-tracing.md#L218
SELECT cpu.machine_id, COUNT(*) AS num_events
FROM ftrace_event
JOIN cpu USING (ucpu)
GROUP BY cpu.machine_id;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/reference/synthetic-track-event.md#L141
SELECT counter.ts, counter.value, process.name AS process_name
FROM counter
JOIN process_counter_track ON counter.track_id = process_counter_track.id
JOIN process USING(upid)
WHERE process.pid = 1234;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/reference/synthetic-track-event.md#L278
INCLUDE PERFETTO MODULE slices.with_context;
SELECT ts, dur, name, thread_name
FROM thread_slice
WHERE tid = 5678;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/reference/synthetic-track-event.md#L1588
SELECT
  slice.name,
  EXTRACT_ARG(slice.arg_set_id, 'request_metadata.request_id') AS request_id,
  EXTRACT_ARG(slice.arg_set_id, 'request_metadata.endpoint') AS endpoint,
  EXTRACT_ARG(slice.arg_set_id, 'request_metadata.retry_latencies_ms[0]') AS first_retry_ms
FROM slice
WHERE EXTRACT_ARG(slice.arg_set_id, 'request_metadata.request_id') IS NOT NULL;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/perfetto-sql-syntax.md#L256
CREATE PERFETTO MACRO constant_macro() RETURNS Expr AS (SELECT 1);
SELECT constant_macro!();

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/perfetto-sql-syntax.md#L256
CREATE PERFETTO MACRO constant_macro_no_bracket() RETURNS Expr AS 2;
SELECT constant_macro_no_bracket!();

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/perfetto-sql-syntax.md#L256
CREATE PERFETTO MACRO constant_macro() RETURNS Expr AS (SELECT 1);
CREATE PERFETTO MACRO single_arg_macro(x Expr) RETURNS Expr AS (SELECT $x);
SELECT constant_macro!() + single_arg_macro!(100);

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/perfetto-sql-syntax.md#L88
CREATE PERFETTO FUNCTION constant_fn() RETURNS LONG AS SELECT 1;
SELECT constant_fn();

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/perfetto-sql-syntax.md#L88
CREATE PERFETTO FUNCTION constant_tab_fn()
RETURNS TABLE(ts LONG, dur LONG) AS
SELECT column1 as ts, column2 as dur
FROM (
  VALUES
  (100, 10),
  (200, 20)
);
SELECT * FROM constant_tab_fn();

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/perfetto-sql-backcompat.md#L93
SELECT type from track where type = 'process_slice';

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/perfetto-sql-backcompat.md#L115
select * from track where type = 'process_track';

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/perfetto-sql-backcompat.md#L116
select * from process_track;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/concepts/buffers.md#L282
select * from stats where severity = 'data_loss' and value != 0;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/design-docs/batch-trace-processor.md#L134
SELECT ts, dur FROM slice;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/visualization/deep-linking-to-perfetto-ui.md#L208
SELECT ts, dur FROM slices WHERE id=3;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/src/trace_processor/perfetto_sql/stdlib/graphs/search.sql#L25
INCLUDE PERFETTO MODULE graphs.search;
SELECT *
FROM graph_reachable_dfs!(
  (
    SELECT
      owner_id AS source_node_id,
      owned_id as dest_node_id
    FROM heap_graph_reference
    WHERE owned_id IS NOT NULL
  ),
  (SELECT id AS node_id FROM heap_graph_object WHERE root_type IS NOT NULL)
);

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/src/trace_processor/perfetto_sql/stdlib/graphs/search.sql#L162
INCLUDE PERFETTO MODULE graphs.search;
SELECT *
FROM graph_next_sibling!(
  (
    SELECT
      id AS node_id,
      parent_id AS node_parent_id,
      ts AS sort_key
    FROM slice
    WHERE dur = 0
  )
);

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/src/trace_processor/perfetto_sql/stdlib/counters/intervals.sql#L17
INCLUDE PERFETTO MODULE counters.intervals;
SELECT * FROM counter_leading_intervals!((SELECT id, ts, track_id, value FROM counter));

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/src/trace_processor/perfetto_sql/stdlib/intervals/overlap.sql#L81
INCLUDE PERFETTO MODULE intervals.overlap;
SELECT * FROM intervals_overlap_count_by_group!((SELECT ts, dur, track_id FROM slice WHERE depth = 0 AND dur > 0), ts, dur, track_id);
