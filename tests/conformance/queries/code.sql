-- source: https://github.com/alliec45/mixed_reality_defense/blob/HEAD/test_traceproc.py
SELECT id, name, type
FROM track
ORDER BY name;

-- source: https://github.com/alliec45/mixed_reality_defense/blob/HEAD/test_traceproc.py
SELECT c.ts, c.value, ct.name AS counter_name
FROM counter c
JOIN counter_track ct ON c.track_id = ct.id
ORDER BY c.ts;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/batch-trace-processor.md#L72
select count(1) from slice;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/trace-processor-python.md#L26
SELECT name FROM slice;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/trace-processor-python.md#L50
SELECT ts, name FROM slice;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/trace-processor-python.md#L157
SELECT ts, dur, name FROM slice;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/trace-processor-python.md#L235
SELECT ts, value FROM counter WHERE track_id=50;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/python/example.py#L50
select * from slice limit 10;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/python/test/api_integrationtest.py#L164
select count(*) as cnt from slice;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/ai/skills/perfetto/infra-references/querying.md#L32
SELECT ts, dur, name FROM slice WHERE dur > 5e8 LIMIT 5;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/ai/skills/perfetto/infra-references/querying.md#L109
SELECT * FROM slice LIMIT 0;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/ai/skills/perfetto/infra-references/querying.md#L111
SELECT * FROM (SELECT ts, dur, name FROM slice WHERE dur > 0) LIMIT 0;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/ai/skills/perfetto/infra-references/querying.md#L142
INCLUDE PERFETTO MODULE slices.with_context;
SELECT name, dur, thread_name, process_name
FROM thread_or_process_slice
WHERE dur > 1e9
ORDER BY dur DESC
LIMIT 20;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/ai/skills/perfetto/infra-references/querying.md#L253
SELECT
count(*) as total_count,
sum(IIF(slice.dur = -1, trace_end() - slice.ts, slice.dur)) / 1000000.0 as total_dur_ms
FROM slice
WHERE slice.name GLOB '*handle*';

-- source: https://developer.android.com/agents/skills/profilers/perfetto-sql/skill
SELECT name, IIF(dur = -1, trace_end() - ts, dur) AS dur FROM slice WHERE name GLOB '*RenderThread*';

-- source: https://developer.android.com/agents/skills/profilers/perfetto-sql/skill
SELECT ts, name FROM slice WHERE LOWER(name) GLOB '*rend*';

-- source: https://source.chromium.org/chromium/chromium/src/+/main:base/tracing/stdlib/chrome/tasks.sql
CREATE PERFETTO FUNCTION _has_parent_slice_with_name(
  id LONG,
  parent_name STRING)
RETURNS BOOL AS
SELECT EXISTS(
  SELECT 1
  FROM ancestor_slice($id)
  WHERE name = $parent_name
  LIMIT 1
);
SELECT id, name FROM slice WHERE _has_parent_slice_with_name(id, 'measure');

-- source: https://source.chromium.org/chromium/chromium/src/+/main:base/tracing/stdlib/chrome/tasks.sql
CREATE PERFETTO FUNCTION _extract_mojo_ipc_hash(slice_id LONG)
RETURNS LONG AS
SELECT EXTRACT_ARG(arg_set_id, "chrome_mojo_event_info.ipc_hash")
FROM descendant_slice($slice_id)
WHERE name="ScopedSetIpcHash"
ORDER BY id
LIMIT 1;
SELECT id, _extract_mojo_ipc_hash(id) AS hash FROM slice;

-- source: https://android.googlesource.com/platform/external/perfetto/+/refs/heads/main/src/trace_processor/perfetto_sql/stdlib/android/binder.sql
SELECT
  process.name AS process_name,
  process.pid AS pid,
  slice.name AS slice_name,
  count(*) AS event_count
FROM slice
JOIN thread_track
  ON slice.track_id = thread_track.id
JOIN thread
  ON thread.utid = thread_track.utid
JOIN process
  ON thread.upid = process.upid
WHERE
  slice.name GLOB 'binder*'
GROUP BY
  process_name,
  slice_name;

-- source: https://source.chromium.org/chromium/chromium/src/+/main:base/tracing/stdlib/chrome/tasks.sql
CREATE PERFETTO FUNCTION _extract_frame_type(slice_id LONG)
RETURNS LONG AS
SELECT EXTRACT_ARG(arg_set_id, "render_frame_host.frame_type")
FROM descendant_slice($slice_id)
WHERE name IN (
  "RenderFrameHostImpl::BeginNavigation",
  "RenderFrameHostImpl::DidCommitProvisionalLoad"
)
LIMIT 1;
SELECT name, _extract_frame_type(id) IS NULL AS without FROM slice WHERE depth = 0;

-- source: https://source.chromium.org/chromium/chromium/src/+/main:base/tracing/stdlib/chrome/tasks.sql
CREATE PERFETTO FUNCTION _human_readable_navigation_task_name(
  task_name STRING)
RETURNS STRING AS
SELECT
  CASE
    WHEN $task_name = "content.mojom.FrameHost message (hash=2168461044)"
      THEN "FrameHost::BeginNavigation"
    WHEN $task_name = "measure"
      THEN "FrameHost::DidCommitProvisionalLoad"
  END;
SELECT name, _human_readable_navigation_task_name(name) AS task FROM slice;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/perfetto-sql-syntax.md#L188
SELECT * FROM slice WHERE track_id = 10 AND name > "b";

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/docs/analysis/perfetto-sql-syntax.md#L188
SELECT * FROM slice JOIN track WHERE slice.track_id = track.id;

-- source: https://github.com/google/perfetto/blob/ec5d16b14b/python/test/api_integrationtest.py#L231
select dur from slice limit 1;
