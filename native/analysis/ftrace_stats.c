/* Reads FtraceStats: the statistics and errors of the kernel's tracing. */
#include <string.h>

#include "core/fields.h"
#include "importer.h"
#include "messages.h"

enum {
  /* FtraceStats */
  PHASE = 1,
  CPU_STATS = 2,
  ATRACE_ERRORS = 5,
  UNKNOWN_EVENTS = 6,
  FAILED_EVENTS = 7,
  PRESERVE_BUFFER = 8,
  PARSE_ERRORS = 9,
  KPROBE_STATS = 10,
  EXCLUSIVE_ERROR = 13,
  PHASE_START = 1,
  PHASE_END = 2,
  ZERO_DATA_LENGTH = 12, /* Of FtraceParseStatus. */
};

/* The names of a CPU's statistics, by field number in FtraceCpuStats: at the
 * start, at the end, and of the difference (NULL if there is none). */
static const struct {
  const char *begin, *end, *difference, *severity;
} kCpuStats[] = {
    {0},
    {0},
    {"ftrace_cpu_entries_begin", "ftrace_cpu_entries_end",
     "ftrace_cpu_entries_delta", "info"},
    {"ftrace_cpu_overrun_begin", "ftrace_cpu_overrun_end",
     "ftrace_cpu_overrun_delta", "info"},
    {"ftrace_cpu_commit_overrun_begin", "ftrace_cpu_commit_overrun_end",
     "ftrace_cpu_commit_overrun_delta", "error"},
    {"ftrace_cpu_bytes_begin", "ftrace_cpu_bytes_end", "ftrace_cpu_bytes_delta",
     "info"},
    {"ftrace_cpu_oldest_event_ts_begin", "ftrace_cpu_oldest_event_ts_end", NULL,
     "info"},
    {"ftrace_cpu_now_ts_begin", "ftrace_cpu_now_ts_end", NULL, "info"},
    {"ftrace_cpu_dropped_events_begin", "ftrace_cpu_dropped_events_end",
     "ftrace_cpu_dropped_events_delta", "error"},
    {"ftrace_cpu_read_events_begin", "ftrace_cpu_read_events_end",
     "ftrace_cpu_read_events_delta", "info"},
};

enum { CPU = 1, FIRST = 2, OLDEST = 6, NOW = 7, FIELDS = 10 };

/* Converts seconds, in the bits of a double, to ns.  Values out of range become
 * INT64_MAX or INT64_MIN. */
static int64_t to_ns(uint64_t bits) {
  double seconds;
  memcpy(&seconds, &bits, sizeof seconds);
  double ns = seconds * 1e9;
  if (!(ns < 9223372036854775807.0))
    return INT64_MAX;
  return ns > -9223372036854775808.0 ? (int64_t)ns : INT64_MIN;
}

static void read_cpu(struct st_importer* m, struct st_field stats,
                     bool is_end) {
  int64_t values[FIELDS] = {0};
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, stats.data, stats.size);
  while (st_decoder_next(&d, &f)) {
    if (f.number < FIELDS)
      values[f.number] = f.number == OLDEST || f.number == NOW
                             ? to_ns(f.value)
                             : (int64_t)f.value;
  }
  int64_t cpu = (uint32_t)values[CPU];
  for (uint32_t i = FIRST; i < FIELDS; i++) {
    int64_t begin = st_get_stat(m, kCpuStats[i].begin, cpu);
    st_set_stat(m, is_end ? kCpuStats[i].end : kCpuStats[i].begin, cpu, "info",
                "trace", values[i]);
    if (is_end && kCpuStats[i].difference)
      st_set_stat(m, kCpuStats[i].difference, cpu, kCpuStats[i].severity,
                  "trace", (int64_t)((uint64_t)values[i] - (uint64_t)begin));
  }
}

struct errors {
  char* text;
  size_t size;
};

static void append(struct errors* e, const char* text, size_t size) {
  memcpy(e->text + e->size, text, size);
  e->size += size;
}

/* Appends an error to the text.  Each name of an event has a line of its
 * own. */
static void add_error(struct st_importer* m, struct errors* e,
                      struct st_field f) {
  const char* label = f.number == FAILED_EVENTS    ? "Ftrace event failed: "
                      : f.number == UNKNOWN_EVENTS ? "Ftrace event unknown: "
                      : f.number == ATRACE_ERRORS
                          ? "Atrace failures: "
                          : "Ftrace exclusive feature error: ";
  bool is_event = f.number == FAILED_EVENTS || f.number == UNKNOWN_EVENTS;
  if (!is_event && !f.size)
    return;
  m->ftrace.setup_errors++;
  append(e, label, strlen(label));
  append(e, (const char*)f.data, f.size);
  if (is_event)
    append(e, "\n", 1);
}

/* Reads the errors of a packet from the start of the recording.  Only the first
 * packet of a sequence that has errors is used. */
static void read_errors(struct st_importer* m, uint32_t sequence,
                        const uint8_t* data, size_t size) {
  static const uint32_t kFields[] = {FAILED_EVENTS, UNKNOWN_EVENTS,
                                     ATRACE_ERRORS, EXCLUSIVE_ERROR};
  uint32_t* is_known = st_map_at(&m->ftrace.failed_sequences,
                                 st_tracks_key(&m->tracks, sequence));
  if (*is_known)
    return;
  /* A label has at most 32 bytes, and the field of an error at least 2.  So the
   * text is less than 20 times as long as the packet. */
  struct errors e = {st_bytes_take(&m->arena, size * 20 + 64), 0};
  for (uint32_t i = 0; i < 4; i++) {
    struct st_decoder d;
    struct st_field f;
    st_decoder_init(&d, data, size);
    while (st_decoder_next(&d, &f)) {
      if (f.number == kFields[i] && f.data)
        add_error(m, &e, f);
    }
  }
  if (!e.size)
    return;
  *is_known = 1;
  st_add_metadata(m, "ftrace_setup_errors", true, ST_NULL,
                  st_string_add(&m->storage.strings, e.text, e.size));
}

/* Counts the errors of the recorder: with one, a part of the events is lost,
 * except with a page that is padded by zeros. */
static void count_parse_errors(struct st_importer* m, const uint8_t* data,
                               size_t size) {
  struct st_integers errors;
  uint64_t error;
  st_integers_init(&errors, (struct st_field){.data = data, .size = size},
                   PARSE_ERRORS);
  while (st_integers_next(&errors, &error)) {
    if (error == ZERO_DATA_LENGTH)
      st_increment_stat(m, "ftrace_abi_errors_skipped_zero_data_length",
                        ST_NO_INDEX, "info", "analysis", 1);
    else
      st_increment_stat(m, "stretto_ftrace_parse_errors", (int64_t)(error & 31),
                        "data_loss", "trace", 1);
  }
}

void st_read_ftrace_stats(struct st_importer* m, uint32_t sequence,
                          const uint8_t* data, size_t size) {
  struct st_decoder d;
  struct st_field f;
  uint64_t phase = 0;
  st_decoder_init(&d, data, size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == PHASE)
      phase = f.value;
    else if (f.number == PRESERVE_BUFFER && f.value)
      m->ftrace.preserves_buffer = true;
  }
  if (phase != PHASE_START && phase != PHASE_END)
    return;
  st_decoder_init(&d, data, size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == CPU_STATS && f.data)
      read_cpu(m, f, phase == PHASE_END);
  }
  count_parse_errors(m, data, size);
  if (phase == PHASE_START)
    read_errors(m, sequence, data, size);
}
