/* Parses PerfSample: samples of the stacks of threads, with counters. */
#include <stdio.h>

#include "core/fields.h"
#include "importer.h"
#include "messages.h"

enum {
  /* PerfSample, and its ProducerEvent */
  SAMPLE_CPU = 1,
  SAMPLE_PID = 2,
  SAMPLE_TID = 3,
  SAMPLE_CALLSTACK = 4,
  SAMPLE_CPU_MODE = 5,
  SAMPLE_TIMEBASE = 6,
  SAMPLE_FOLLOWERS = 7,
  SAMPLE_UNWIND_ERROR = 16,
  SAMPLE_LOST = 17,
  SAMPLE_SKIPPED = 18,
  SAMPLE_EVENT = 19,
  STOP_REASON = 1,
  STOPPED_BY_GUARDRAIL = 1,
  SKIPPED_READ = 1,
  SKIPPED_UNWIND = 2,
  SKIPPED_ENQUEUE = 3,
  /* PerfSampleDefaults */
  TIMEBASE = 1,
  SHARD_COUNT = 2,
  SHARD = 3,
  FOLLOWERS = 4,
  /* PerfEvents.Timebase, and FollowerEvent */
  TIMEBASE_PERIOD = 1,
  TIMEBASE_TRACEPOINT = 3,
  TIMEBASE_COUNTER = 4,
  TIMEBASE_RAW = 5,
  TIMEBASE_NAME = 10,
  FOLLOWER_COUNTER = 1,
  FOLLOWER_TRACEPOINT = 2,
  FOLLOWER_RAW = 3,
  FOLLOWER_NAME = 4,
};

static const char* counter_name(uint64_t counter) {
  static const char* const kNames[] = {
      NULL,
      "cpu-clock",
      "page-faults",
      "task-clock",
      "context-switches",
      "cpu-migrations",
      "minor-faults",
      "major-faults",
      "alignment-faults",
      "emulation-faults",
      "cpu-cycles",
      "instructions",
      "cache-references",
      "cache-misses",
      "branch-instructions",
      "branch-misses",
      "bus-cycles",
      "stalled-cycles-frontend",
      "stalled-cycles-backend",
      "ref-cycles",
      "dummy",
  };
  if (!counter || counter >= sizeof kNames / sizeof *kNames)
    return "unknown";
  return kNames[counter];
}

static st_string raw_name(struct st_importer* m, struct st_field event) {
  struct st_field f[5];
  char name[80];
  st_message_read(event, f, 5);
  int size =
      snprintf(name, sizeof name, "raw.0x%x.0x%llx.0x%llx.0x%llx",
               (unsigned)f[1].value, (unsigned long long)f[2].value,
               (unsigned long long)f[3].value, (unsigned long long)f[4].value);
  return st_string_add(&m->storage.strings, name, (size_t)size);
}

/* Returns the name of an event: the given one, or that of the counter, the
 * tracepoint or the raw event. */
static st_string event_name(struct st_importer* m, struct st_field name,
                            struct st_field counter, struct st_field tracepoint,
                            struct st_field raw) {
  if (name.size)
    return st_field_text(&m->storage, name);
  if (counter.number)
    return st_intern(&m->storage, counter_name(counter.value));
  if (tracepoint.number)
    return st_field_text(&m->storage, st_message_find(tracepoint, 1));
  if (raw.number)
    return raw_name(m, raw);
  return st_intern(&m->storage, "unknown");
}

static uint32_t counter_track(struct st_importer* m, uint32_t cpu,
                              uint32_t session, st_string name,
                              bool is_timebase) {
  struct st_arg_list source = {0};
  st_arg_add_int(&source, st_intern(&m->storage, "is_timebase"), ST_ARG_BOOL,
                 is_timebase);
  uint32_t row = st_tracks_fixed_row(
      &m->tracks, &(struct st_fixed_track){
                      .type = "perf_cpu_counter",
                      .name = name,
                      .is_counter = true,
                      .dimensions = {{"cpu", .number = cpu},
                                     {"perf_session_id", .number = session},
                                     {"name", .text = name, .is_text = true}},
                      .source = &source});
  st_arg_list_free(&source);
  return row;
}

static void add_followers(struct st_importer* m, struct st_perf_cpu* cpu,
                          uint32_t number, uint32_t session,
                          struct st_field defaults) {
  struct st_decoder d;
  struct st_field follower, f[FOLLOWER_NAME + 1];
  st_decoder_init(&d, defaults.data, defaults.size);
  while (st_decoder_next(&d, &follower) &&
         cpu->follower_count < ST_MAX_FOLLOWERS) {
    if (follower.number != FOLLOWERS || !follower.data)
      continue;
    st_message_read(follower, f, FOLLOWER_NAME + 1);
    st_string name = event_name(m, f[FOLLOWER_NAME], f[FOLLOWER_COUNTER],
                                f[FOLLOWER_TRACEPOINT], f[FOLLOWER_RAW]);
    cpu->followers[cpu->follower_count++] =
        counter_track(m, number, session, name, false);
  }
}

/* Reads the event whose count ends each period of the samples. */
static struct st_sample_period read_timebase(struct st_importer* m,
                                             struct st_field defaults) {
  struct st_field f[TIMEBASE_NAME + 1];
  /* Without defaults, the samples are those of a timer. */
  if (!defaults.data)
    return (struct st_sample_period){0, st_intern(&m->storage, "cpu-clock")};
  st_message_read(st_message_find(defaults, TIMEBASE), f, TIMEBASE_NAME + 1);
  return (struct st_sample_period){
      .period = f[TIMEBASE_PERIOD].value,
      .counter = event_name(m, f[TIMEBASE_NAME], f[TIMEBASE_COUNTER],
                            f[TIMEBASE_TRACEPOINT], f[TIMEBASE_RAW])};
}

/* Reads the names of the counters of a CPU, and adds their tracks. */
static void add_counters(struct st_importer* m, struct st_perf_cpu* cpu,
                         uint32_t number, uint32_t session,
                         struct st_field defaults) {
  struct st_field d[FOLLOWERS + 1];
  st_message_read(defaults, d, FOLLOWERS + 1);
  st_string name = read_timebase(m, defaults).counter;
  cpu->timebase = counter_track(m, number, session, name, true);
  add_followers(m, cpu, number, session, defaults);
  if (!d[SHARD_COUNT].value)
    return;
  st_set_stat(m, "perf_process_shard_count", session, "info", "trace",
              (int64_t)d[SHARD_COUNT].value);
  st_set_stat(m, "perf_chosen_process_shard", session, "info", "trace",
              (int64_t)d[SHARD].value);
}

/* Returns the session of a sequence. */
static uint32_t session_of(struct st_importer* m, uint32_t sequence) {
  struct st_table* t = &m->storage.tables[ST_PERF_SESSION_TABLE];
  uint32_t* session = st_map_at(&m->perf.sessions, sequence);
  if (!*session) {
    *session = t->rows + 1;
    st_table_add(t, (struct st_cell[ST_PERF_SESSION_COLUMNS]){
                        [ST_PERF_SESSION_id] = st_int(t->rows)});
  }
  return *session - 1;
}

/* Returns the tracks of a session's counters on a CPU. */
static struct st_perf_cpu counters_of(struct st_importer* m, uint32_t cpu,
                                      uint32_t session, uint32_t generation) {
  uint32_t number =
      st_key_number(&m->perf.cpu_keys, (struct st_key){session, cpu, 0});
  if (number == m->perf.cpus.size) {
    struct st_perf_cpu added = {0};
    add_counters(m, &added, cpu, session,
                 m->sequences.generations.data[generation].defaults.perf);
    *ST_PUSH(&m->perf.cpus) = added;
  }
  return m->perf.cpus.data[number];
}

/* Returns the period of samples with the defaults of a generation. */
static struct st_sample_period period_of(struct st_importer* m,
                                         uint32_t generation) {
  if (m->perf.generation != generation + 1) {
    m->perf.generation = generation + 1;
    m->perf.period = read_timebase(
        m, m->sequences.generations.data[generation].defaults.perf);
  }
  return m->perf.period;
}

static void count_skipped(struct st_importer* m, uint64_t reason) {
  if (reason == SKIPPED_READ || reason == SKIPPED_UNWIND)
    st_increment_stat(m, "perf_samples_skipped", ST_NO_INDEX, "error",
                      "analysis", 1);
  else if (reason == SKIPPED_ENQUEUE)
    st_increment_stat(m, "perf_samples_skipped_dataloss", ST_NO_INDEX,
                      "data_loss", "trace", 1);
}

static void add_values(struct st_importer* m, int64_t ts,
                       const struct st_perf_cpu* cpu, struct st_field sample,
                       uint64_t timebase) {
  struct st_integers followers;
  uint64_t value;
  st_add_counter(m, ts, cpu->timebase, (double)timebase);
  st_integers_init(&followers, sample, SAMPLE_FOLLOWERS);
  for (uint32_t i = 0;
       i < cpu->follower_count && st_integers_next(&followers, &value); i++)
    st_add_counter(m, ts, cpu->followers[i], (double)value);
}

static st_string cpu_mode(struct st_importer* m, uint64_t mode) {
  static const char* const kModes[] = {
      "unknown", "kernel", "user", "hypervisor", "guest_kernel", "guest_user"};
  bool is_known = mode < sizeof kModes / sizeof *kModes;
  return st_intern(&m->storage, kModes[is_known ? mode : 0]);
}

static st_string unwind_error(struct st_importer* m, struct st_field error) {
  static const char* const kErrors[] = {
      "unknown",
      "none",
      "memory_invalid",
      "unwind_info",
      "unsupported",
      "invalid_map",
      "max_frames_exceeded",
      "repeated_frame",
      "invalid_elf",
      "system_call",
      "thread_timeout",
      "thread_does_not_exist",
      "bad_arch",
      "maps_parse",
      "invalid_parameter",
      "ptrace_call",
  };
  if (!error.number)
    return 0;
  bool is_known = error.value < sizeof kErrors / sizeof *kErrors;
  return st_intern(&m->storage, kErrors[is_known ? error.value : 0]);
}

static void add_row(struct st_importer* m, int64_t ts, uint32_t generation,
                    const struct st_field* f, uint32_t session) {
  struct st_table* t = &m->storage.tables[ST_PERF_SAMPLE_TABLE];
  int64_t pid = (uint32_t)f[SAMPLE_PID].value;
  uint32_t utid =
      st_thread_get(&m->processes, (uint32_t)f[SAMPLE_TID].value, pid);
  uint32_t upid = st_process_get(&m->processes, pid);
  uint32_t callsite =
      f[SAMPLE_CALLSTACK].number
          ? st_interned_stack(m, generation, upid, f[SAMPLE_CALLSTACK].value)
          : ST_NO_ROW;
  if (callsite != ST_NO_ROW)
    st_sample_hits_add(&m->perf.hits, utid, callsite, period_of(m, generation));
  struct st_cell cells[ST_PERF_SAMPLE_COLUMNS] = {
      [ST_PERF_SAMPLE_id] = st_int(t->rows),
      [ST_PERF_SAMPLE_ts] = st_int(ts),
      [ST_PERF_SAMPLE_utid] = st_int(utid),
      [ST_PERF_SAMPLE_cpu] = st_int((uint32_t)f[SAMPLE_CPU].value),
      [ST_PERF_SAMPLE_cpu_mode] =
          st_text(cpu_mode(m, f[SAMPLE_CPU_MODE].value)),
      [ST_PERF_SAMPLE_callsite_id] = st_row(callsite),
      [ST_PERF_SAMPLE_unwind_error] =
          st_text(unwind_error(m, f[SAMPLE_UNWIND_ERROR])),
      [ST_PERF_SAMPLE_perf_session_id] = st_int(session),
  };
  st_table_add(t, cells);
}

void st_parse_perf_sample(struct st_importer* m, const struct st_event* e,
                          uint32_t generation) {
  struct st_field f[SAMPLE_EVENT + 1];
  struct st_field sample = {.data = e->data, .size = e->size};
  st_message_read(sample, f, SAMPLE_EVENT + 1);
  uint32_t cpu = (uint32_t)f[SAMPLE_CPU].value;
  uint32_t session =
      session_of(m, m->sequences.generations.data[generation].sequence);
  struct st_perf_cpu counters = counters_of(m, cpu, session, generation);
  if (f[SAMPLE_LOST].value) {
    st_increment_stat(m, "perf_cpu_lost_records", cpu, "data_loss", "trace",
                      (int64_t)f[SAMPLE_LOST].value);
    return;
  }
  if (f[SAMPLE_EVENT].number) {
    if (st_message_find(f[SAMPLE_EVENT], STOP_REASON).value ==
        STOPPED_BY_GUARDRAIL)
      st_set_stat(m, "perf_guardrail_stop_ts", session, "data_loss", "trace",
                  e->ts);
    return;
  }
  count_skipped(m, f[SAMPLE_SKIPPED].value);
  add_values(m, e->ts, &counters, sample, f[SAMPLE_TIMEBASE].value);
  add_row(m, e->ts, generation, f, session);
}
