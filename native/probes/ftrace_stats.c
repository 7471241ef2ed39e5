#include "probes/ftrace_stats.h"

#include "core/fields.h"

#define CPU_STATS(name) ST_FIELD_FTRACE_CPU_STATS_##name

struct row {
  const char* name;
  uint32_t field;
  /* Whether the value is a time, in seconds with a fraction. */
  bool is_time;
};

static const struct row kRows[] = {
    {"entries", CPU_STATS(ENTRIES), false},
    {"overrun", CPU_STATS(OVERRUN), false},
    {"commit overrun", CPU_STATS(COMMIT_OVERRUN), false},
    {"bytes", CPU_STATS(BYTES_READ), false},
    {"oldest event ts", CPU_STATS(OLDEST_EVENT_TS), true},
    {"now ts", CPU_STATS(NOW_TS), true},
    {"dropped events", CPU_STATS(DROPPED_EVENTS), false},
    {"read events", CPU_STATS(READ_EVENTS), false}};

enum { ROWS = sizeof kRows / sizeof *kRows };

/* Returns the number of decimal digits and one point.  Without more digits than
 * a double holds, the division is exact up to the last bit. */
static double seconds_of(struct st_text text) {
  double digits = 0, scale = 1;
  bool has_point = false;
  for (const char* p = text.at; p < text.end; p++) {
    if (*p >= '0' && *p <= '9') {
      digits = digits * 10 + (*p - '0');
      scale *= has_point ? 10 : 1;
    }
    has_point |= *p == '.';
  }
  return digits / scale;
}

static void append_value(const struct row* row, struct st_text value,
                         struct st_message* cpu_stats) {
  uint64_t number = 0;
  if (row->is_time) {
    double seconds = seconds_of(value);
    memcpy(&number, &seconds, sizeof number);
    st_message_append_fixed64(cpu_stats, row->field, number);
  } else if (st_text_u64(&value, &number)) {
    st_message_append_varint(cpu_stats, row->field, number);
  }
}

static void append_line(struct st_text line, struct st_message* cpu_stats) {
  const char* colon = memchr(line.at, ':', st_text_size(line));
  if (!colon)
    return;
  struct st_text name = {line.at, colon}, value = {colon + 1, line.end};
  for (int i = 0; i < ROWS; i++) {
    if (st_text_is(name, kRows[i].name))
      append_value(&kRows[i], value, cpu_stats);
  }
}

void st_write_ftrace_cpu_stats(struct st_text text, uint32_t cpu,
                               struct st_message* stats) {
  struct st_message cpu_stats;
  struct st_text line;
  st_message_begin_nested(stats, &cpu_stats, ST_FIELD_FTRACE_STATS_CPU_STATS);
  st_message_append_varint(&cpu_stats, CPU_STATS(CPU), cpu);
  while (st_text_line(&text, &line))
    append_line(line, &cpu_stats);
  st_message_finalize(&cpu_stats);
}
