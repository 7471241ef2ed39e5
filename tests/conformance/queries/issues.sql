-- source: https://github.com/google/perfetto/issues/924
SELECT * FROM args where flat_key = "debug.msg_id" and int_value = 1730449307563864;

-- source: https://github.com/google/perfetto/issues/924
SELECT * FROM slice where EXTRACT_ARG(arg_set_id, 'debug.msg_id') = 1730449307563864;

-- source: https://github.com/google/perfetto/issues/924
SELECT id, ts, track_id, dur, category, name FROM slice where EXTRACT_ARG(arg_set_id, 'debug.msg_id') = 1730449307563864 order by ts;

-- source: https://github.com/google/perfetto/issues/930
DROP VIEW IF EXISTS slice_with_utid;
CREATE VIEW slice_with_utid AS
SELECT
  ts,
  dur,
  slice.name as slice_name,
  slice.id as slice_id, utid,
  thread.name as thread_name
FROM slice
JOIN thread_track ON thread_track.id = slice.track_id
JOIN thread USING (utid);
SELECT slice_id as id, slice_name as name, dur FROM slice_with_utid WHERE slice_name LIKE 'handle%';

-- source: https://github.com/google/perfetto/issues/930
DROP VIEW IF EXISTS slice_with_utid;
CREATE VIEW slice_with_utid AS
SELECT ts, dur, slice.name as slice_name, slice.id as slice_id, utid, thread.name as thread_name
FROM slice
JOIN thread_track ON thread_track.id = slice.track_id
JOIN thread USING (utid);
DROP TABLE IF EXISTS slice_thread_state_breakdown;
CREATE VIRTUAL TABLE slice_thread_state_breakdown
USING SPAN_LEFT_JOIN(
  slice_with_utid PARTITIONED utid,
  thread_state PARTITIONED utid
);
SELECT slice_id as id, slice_name as name, dur
FROM slice_thread_state_breakdown
WHERE slice_name LIKE 'logLayerStats%';

-- source: https://github.com/google/perfetto/issues/757
INCLUDE PERFETTO MODULE sched.time_in_state;
INCLUDE PERFETTO MODULE slices.with_context;
SELECT s.*
FROM sched_time_in_state_for_thread_in_interval(t.ts, t.dur, t.utid) s
JOIN thread_slice t WHERE id = 3;

-- source: https://github.com/google/perfetto/issues/668
select ts, dur, cpu, end_state, priority, process.name, thread.name from sched_slice left join thread using(utid) left join process using(upid);

-- source: https://github.com/google/perfetto/issues/668
SELECT
ts,
dur,
cpu,
utid,
upid,
thread.name AS thread_name,
process.name AS process_name,
state
FROM thread_state
LEFT JOIN thread USING (utid)
LEFT JOIN process USING (upid);

-- source: https://github.com/google/perfetto/issues/396
select ts, dur from slice where dur > 0;

-- source: https://github.com/google/perfetto/pull/6634
SELECT sched.ts, sched.dur, thread.name, process.name
FROM thread LEFT JOIN process USING(upid) JOIN sched USING(utid);

-- source: https://github.com/google/perfetto/pull/6632
SELECT (MAX(ts) - MIN(ts)) / 1000 / 1000 AS len
FROM slice s
LEFT JOIN thread_track tt ON s.track_id = tt.id
LEFT JOIN thread t ON t.utid = tt.utid
LEFT JOIN process p ON t.upid = p.upid
WHERE (t.name = "CrProcessMain" OR t.name = "CrBrowserMain")
  AND p.name = "Browser";

-- source: https://github.com/google/perfetto/pull/6632
SELECT a.key, a.int_value, count(*)
FROM slice s
LEFT JOIN thread_track tt ON s.track_id = tt.id
LEFT JOIN track tr ON tt.id = tr.id
LEFT JOIN args a ON tr.source_arg_set_id = a.arg_set_id
GROUP BY a.key, a.int_value;

-- source: https://github.com/google/perfetto/pull/1963
INCLUDE PERFETTO MODULE linux.cpu.utilization.slice;
SELECT
  slice.name,
  SUM(millicycles),
  SUM(megacycles) as megacycles,
  process_name
FROM cpu_cycles_per_thread_slice
JOIN slice ON slice.id = cpu_cycles_per_thread_slice.id;

-- source: https://github.com/google/perfetto/pull/2108
SELECT
  thread.name,
  thread_track.id AS track_id
FROM thread
JOIN process
  USING (upid)
JOIN thread_track
  USING (utid)
WHERE
  thread.is_main_thread;

-- source: https://github.com/google/perfetto/pull/2741
select distinct
  utid,
  tid,
  thread.name as threadName,
  upid
from perf_sample
join thread using (utid)
where callsite_id is not null;

-- source: https://github.com/precice/precice.github.io/pull/819
SELECT name, COUNT(*) AS n FROM slice GROUP BY name ORDER BY n DESC LIMIT 30;

-- source: https://github.com/precice/precice.github.io/pull/819
SELECT name, COUNT(*) AS n, ROUND(SUM(dur)/1e9, 6) AS total_s, ROUND(AVG(dur)/1e6, 3) AS avg_ms FROM slice WHERE name IN ('advance', 'initialize', 'solver.advance', 'solver.initialize', 'construction', 'finalize') GROUP BY name ORDER BY total_s DESC;

-- source: https://github.com/precice/precice.github.io/pull/819
SELECT ROUND(ts/1e9, 6) AS start_s, ROUND(dur/1e6, 3) AS dur_ms, track_id FROM slice WHERE name = 'advance' ORDER BY dur DESC LIMIT 20;

-- source: https://github.com/precice/precice.github.io/pull/635
INCLUDE PERFETTO MODULE slices.with_context;
CREATE PERFETTO TABLE synctime AS
SELECT a.id AS sid, sum(s.dur) AS synctime
FROM slice a JOIN slice s ON s.parent_id = a.id
WHERE s.name GLOB '*.sync'
GROUP BY a.id;
SELECT name, dur - ifnull(synctime, 0) AS active
FROM thread_slice LEFT JOIN synctime ON thread_slice.id = sid;

-- source: https://github.com/precice/precice.github.io/pull/635
INCLUDE PERFETTO MODULE slices.with_context;
select *
from thread_slice
where process_name = 'B' and thread_name = 'Rank 0';

-- source: https://github.com/google/perfetto/pull/6632
SELECT (MAX(ts) - MIN(ts)) / 1000 / 1000 AS len
FROM slice s
WHERE s.track_id IN (
  SELECT tt.id FROM thread_track tt JOIN thread t USING (utid) WHERE t.is_main_thread = 1);

-- source: https://github.com/google/perfetto/issues/567
CREATE VIEW sp_a AS SELECT ts, dur, track_id, name AS a_name FROM slice WHERE depth = 0 AND dur > 0;
CREATE VIEW sp_b AS SELECT ts, dur, track_id, name AS b_name FROM slice WHERE depth = 1 AND dur > 0;
CREATE VIRTUAL TABLE sp_ab USING SPAN_JOIN(sp_a PARTITIONED track_id, sp_b PARTITIONED track_id);
SELECT * FROM sp_ab;
